"""Reverse mode over segments: order the graph, sum the cotangents of a value, run its hooks, ask the segment for its vjp.

A segment is a run of recorded MindSpore operations with nothing to observe inside; it is replayed as one program through
`mindspore.grad`. Everything else (host kernels, custom functions, and every node while a graph of the gradient itself is
made) passes cotangents on by its own vjp.
"""

from collections import defaultdict

import numpy as np

from msadapter_hook import prims, report
from msadapter_hook.ops import dispatch
from msadapter_hook.tape import Program, Value, enable_grad, late
from msadapter_hook.tape.abstract import unwatched, watched
from msadapter_hook.tape.recording import state
from msadapter_hook.tape.sparse import SparseValue
from msadapter_hook.tape.value import SECOND_TIME
from msadapter_hook.tensor import Leaf, Tensor
from msadapter_hook.tensor.sparse import accumulated, gradient_of

from . import anomaly, passes
from .graph import modified, public_node
from .layouts import LARGE, follow, kept, matters
from .passes import key_of


class Tap:
    """What watches one output of a node: hooks on its gradient, tensors that keep it, requests that capture it."""

    __slots__ = ("hooks", "retained")

    def __init__(self):
        self.hooks = {}
        self.retained = None  # weak reference to the tensor that asked


class Backward:
    """One backward pass from `roots` ((Value, cotangent Value) pairs).

    `implicit`: the cotangents that are ones because nothing was given. `observe`: run the hooks on what is asked for.
    `captured`: keys whose gradients are asked for (None: every leaf accumulates). `accumulate`: put leaf gradients into
    `.grad`. `layouts`: the strides of the cotangents, where it matters how gradients lie in memory. `ends`: keys of captured values
    that the walk does not go beyond. The gradients asked for are in `result` afterwards, by key, and how they lie in `layouts`.
    """

    def __init__(self, roots, captured=None, accumulate=True, retain_graph=False, create_graph=False,
                 implicit=(), observe=True, layouts=None, ends=()):
        self.captured = set(captured) if captured is not None else None
        self.accumulate = accumulate
        self.retain_graph = retain_graph
        self.create_graph = create_graph
        self.cotangents = {}
        self.owned = set()  # keys of cotangents whose memory nobody else holds: more is added to them in place
        self.segments = 0
        self.result = {}
        self.roots = roots
        self.ones = implicit
        self.observe = observe
        self.callbacks = []
        self.seen = False  # by a dispatch mode
        self.layouts = layouts
        self.ends = ends

    # -------------------------------------------------------------------------------------------- order
    def _graph(self):
        """The nodes between the roots and what is asked for, in order of recording, and the leaves."""
        nodes, leaves, stack = {}, set(), []
        for value, _ in self.roots:
            if value.leaf is not None:
                leaves.add(value.leaf)
            elif value.node is not None and (value.node, value.index) not in self.ends:
                stack.append(value.node)
        while stack:
            node = stack.pop()
            if node.sequence in nodes:
                continue
            nodes[node.sequence] = node
            for v in node.inputs:
                if v.requires_grad:
                    if v.leaf is not None:
                        leaves.add(v.leaf)
                    elif v.node is not None and v.node.sequence not in nodes and (v.node, v.index) not in self.ends:
                        stack.append(v.node)
        ordered = [nodes[s] for s in sorted(nodes)]
        if self.captured is None:
            return ordered, leaves
        return self._towards(ordered), leaves & self.captured

    def _towards(self, ordered):
        """Only the nodes through which a gradient asked for can be reached."""
        wanted_nodes = {id(k[0]) for k in self.captured if isinstance(k, tuple)}
        self.useful = useful = set()
        kept = []
        for node in ordered:
            for v in node.inputs:
                if v.requires_grad and (key_of(v) in self.captured or v.node is not None and id(v.node) in useful):
                    useful.add(id(node))
                    break
            if id(node) in useful or id(node) in wanted_nodes:
                kept.append(node)
        return kept

    def _needed(self, node, v):
        if not v.requires_grad:
            return False
        if self.captured is None:
            return True
        return key_of(v) in self.captured or (v.node is not None and id(v.node) in self.useful)

    def _levels(self, ordered):
        """Nodes by level: cotangents flow from higher levels to lower ones; the replayable nodes of a level are one segment."""
        level = {}
        joining = {node.sequence for node in ordered if self._joins(node)}
        for node in ordered:
            deep = 0
            joins = node.sequence in joining
            for v in node.inputs:
                if v.requires_grad and v.node is not None:
                    below = level.get(v.node.sequence)
                    if below is not None:
                        if not (joins and v.node.sequence in joining and not self._observed(v)):
                            below += 1
                        if below > deep:
                            deep = below
            level[node.sequence] = deep
        return level

    def _joins(self, node):
        return (node.replayable and not node.freed and not self.create_graph and node.hooks is None and node.prehooks is None
                and not self.seen and not state.anomaly and not state.levels)

    def _observed(self, v):
        if v.node.taps is not None and v.index in v.node.taps:
            return True
        return self.captured is not None and (v.node, v.index) in self.captured

    # -------------------------------------------------------------------------------------------- walk
    def run(self):
        before = state.enabled
        state.enabled = self.create_graph
        passes.begun(self)
        self.seen = bool(dispatch.state.modes) and not dispatch.state.disabled
        if self.seen:
            self.roots = [(value, dispatch.seen_cotangent(value, c, any(c is one for one in self.ones))) for value, c in self.roots]
        try:
            self._run()
            self.result = {key: unwatched(v) for key, v in self.result.items()} if self.seen else self.result
            for callback in self.callbacks:  # which may queue further ones
                callback()
        finally:
            outermost = passes.ended()
            state.enabled = before
        if outermost:
            late.flush()
        return self.result

    def reached(self, tensors):
        """How many of `tensors` this pass gives a gradient."""
        with enable_grad():
            keys = [key_of(prims.origin(t.value)) for t in tensors]
        return sum(1 for k in keys if (k in self.leaves if not isinstance(k, tuple) else id(k[0]) in self.visited))

    def _run(self):
        ordered, leaves = self._graph()
        self.leaves, self.visited = leaves, {id(n) for n in ordered}
        if self.layouts is not None and self.captured is None and (len(ordered) > LARGE or not matters(ordered)):
            self.layouts = None
        if self.layouts is not None:
            given = [(value, stride) for (value, _), stride in zip(self.roots, self.layouts)]
            self.layouts = follow(ordered, given, self._needed, self.captured, self.create_graph)
        level = self._levels(ordered)
        layers = defaultdict(list)
        for node in ordered:
            layers[level[node.sequence]].append(node)
        ready = self._ready(ordered, leaves, level)
        for value, cotangent in self.roots:
            self._add(value, cotangent)
        for at in sorted(layers, reverse=True):
            segment, alone = [], []
            for node in layers[at]:
                (segment if self._joins(node) else alone).append(node)
            if segment and self._abstract(segment):
                alone, segment = layers[at], []
            if segment:
                self._replay(segment)
            for node in reversed(alone):
                self._pass(node)
            for leaf in sorted(ready.pop(at, ()), key=lambda a: a.sequence):
                self._deliver(leaf)
        for leaf in ready.pop(-1, ()):
            self._deliver(leaf)
        self.result.update({key: self.cotangents.pop(key) for key in self.ends if key in self.cotangents})
        if report.enabled:
            report.backward(self.segments)

    @staticmethod
    def _ready(ordered, leaves, level):
        """The leaves by the layer after which they have all their gradient: the lowest that uses them, -1 where none does."""
        last_use = {}
        for node in ordered:
            for v in node.inputs:
                if v.leaf is not None and v.leaf in leaves:
                    at = level[node.sequence]
                    last_use[v.leaf] = min(at, last_use.get(v.leaf, at))
        ready = defaultdict(list)
        for leaf in leaves:
            ready[last_use.get(leaf, -1)].append(leaf)
        return ready

    def _abstract(self, nodes):
        """Whether a cotangent of the nodes has no data, so that they cannot be replayed."""
        found = [self.cotangents.get((node, i)) for node in nodes for i in range(len(node.outputs))]
        return any(g is not None and g.abstract for g in found)

    def _add(self, value, cotangent):
        if cotangent is None:
            return
        key = key_of(value)
        have = self.cotangents.get(key)
        if have is None:
            self.cotangents[key] = cotangent
        elif type(have) is type(cotangent) is SparseValue:
            self.cotangents[key] = have.plus(cotangent)
        elif key in self.owned:
            np.add(have.numpy, cotangent.numpy, out=have.numpy)
        else:
            self.cotangents[key] = prims.add(have, cotangent)
            if self._plain() and have.dtype.kind == "f" and not (have.abstract or cotangent.abstract):
                self.owned.add(key)

    def _plain(self):
        """Whether nothing follows how gradients are computed: neither a graph of them nor tangents."""
        return not (self.create_graph or state.levels or state.anomaly)

    def _take(self, node, index):
        """The summed cotangent of an output, after its hooks; None where no gradient reached it."""
        key = (node, index)
        cotangent = self.cotangents.pop(key, None)
        tap = node.taps.get(index) if node.taps is not None else None
        asked = self.captured is not None and key in self.captured
        if asked and not self.observe:
            tap = None
        if asked and cotangent is not None and id(node) in self.useful:
            self.result[key] = cotangent  # PyTorch hands out what arrives, before hooks, where the node passes it on
            asked = False
        if tap is not None and cotangent is not None:
            cotangent = run_hooks(tap.hooks, unwatched(cotangent))
            cotangent = watched(cotangent) if self.seen else cotangent
            if tap.retained is not None and tap.retained() is not None:
                accumulate(tap.retained()._extra_state(), "grad", cotangent, self.create_graph)
        if asked and cotangent is not None:
            self.result[key] = cotangent
        return cotangent

    def _check(self, node):
        if state.mutation and not node.freed:
            return
        if node.saved:
            if node.freed:
                raise RuntimeError(SECOND_TIME)
            for counter, version, size, dtype, whose, _ in node.saved:
                if counter.count != version:
                    raise modified(counter.count, version, size, dtype, node if isinstance(whose, int) else whose(), whose)
        elif node.freed and node.primitive.name == "function":
            raise RuntimeError(SECOND_TIME)

    def _replay(self, nodes):
        """One segment: cotangents of its outputs in, cotangents of its inputs out, through MindSpore's gradient."""
        wanted, cotangents = [], []
        for node in nodes:
            for i in range(len(node.outputs)):
                g = self._take(node, i)
                if g is not None:
                    wanted.append((node, i))
                    cotangents.append(g)
        if not wanted:
            return
        self.segments += 1
        nodes = self._reaching(nodes, wanted)
        for node in reversed(nodes):
            self._check(node)
        if self.captured is not None and not any(self._needed(n, v) for n in nodes for v in n.inputs):
            return
        for v, g in self._differentiate(nodes, wanted, cotangents):
            if self._needed(None, v):
                self._add(v, g)
        if not self.retain_graph:
            for node in reversed(nodes):
                node.release()

    def _differentiate(self, nodes, wanted, cotangents):
        """(input, gradient) of a segment: those that came with an early read of the loss, or from a replay now."""
        root = wanted[0][0]
        if len(wanted) == 1 and root.prefetched is not None and root.prefetched[0] == len(nodes) and cotangents[0] in self.ones:
            _, grads, inputs = root.prefetched
            return [(v, grads[id(v)]) for v in inputs if id(v) in grads]
        carried = late.held(nodes)
        program, inputs = Program.trace(nodes, wanted, carried)
        grads = program.run(wanted + [c for c in carried if c not in wanted], inputs, cotangents)
        return [(inputs[p], g) for p, g in zip(program.positions, grads)]

    def _reaching(self, nodes, wanted):
        """The nodes of a segment that the wanted outputs depend on."""
        keep = {id(n) for n, _ in wanted}
        for node in reversed(nodes):
            if id(node) in keep:
                for v in node.inputs:
                    if v.requires_grad and v.node is not None:
                        keep.add(id(v.node))
        return [n for n in nodes if id(n) in keep]

    def _pass(self, node):
        """One node by its own vjp."""
        grads = [self._take(node, i) for i in range(len(node.outputs))]
        if node.primitive.name != "function" and all(g is None for g in grads):  # a Function is asked even then
            return
        needs = [self._needed(node, v) for v in node.inputs]
        if self.captured is not None and not any(needs):
            return
        self._check(node)
        if node.prehooks:
            grads = run_node_hooks(node.prehooks, grads, None)
        kernel = node.primitive.kernel
        if (kernel is not None and kernel.into is not None and needs[0] and grads[0].dtype in kernel.dtypes
                and self._plain() and not node.hooks and not grads[0].abstract):
            self._add_into(kernel, node, grads[0])
            results = ()
        elif state.anomaly:
            results = self._watched(node, grads, needs)
        else:
            results = node.primitive.cotangents(node, grads, needs)
        if node.hooks:
            results = run_node_hooks(node.hooks, results, grads)
        for v, g, need in zip(node.inputs, results, needs):
            if need and g is not None:
                self._add(v, g)
        if not self.retain_graph:
            node.release()

    def _add_into(self, kernel, node, grad):
        """The gradient of the first input by a kernel that adds it to what has been summed so far."""
        value, *rest = node.inputs
        key = key_of(value)
        have = self.cotangents.get(key)
        total = have.numpy if key in self.owned else None
        made = kernel.into(total, grad.numpy, value.shape, value.dtype, *[v.numpy for v in rest], **node.attributes)
        if total is None:
            self._add(value, Value(made.shape, made.dtype, made))
            self.owned.add(key)  # what was made, or the sum with it, is new

    def _watched(self, node, grads, needs):
        """The vjp in anomaly mode: a failure or NaN tells where the operation was recorded."""
        name = public_node(node).name()
        try:
            results = node.primitive.cotangents(node, grads, needs)
            for i, g in enumerate(results if state.anomaly_check else ()):
                if g is not None and g.dtype.kind in "fc" and g.size and (g.numpy != g.numpy).any():
                    raise RuntimeError(f"Function '{name}' returned nan values in its {i}th output.")
        except Exception:
            anomaly.report(name, node.metadata)
            raise
        return results

    def _deliver(self, leaf):
        """A leaf has all its gradient: run its hooks, then keep it or hand it out."""
        cotangent = self.cotangents.pop(leaf, None)
        if cotangent is None:
            return
        if self.seen:
            cotangent = dispatch.seen_gradient(cotangent, leaf.grad)
        if leaf.hooks and self.observe:
            cotangent = run_hooks(leaf.hooks, cotangent)
        if self.captured is not None:
            if leaf in self.captured:
                self.result[leaf] = cotangent
            if not self.accumulate:
                return
        tensor = leaf.tensor() if leaf.tensor is not None else None
        if tensor is None or tensor._leaf is not None:  # otherwise it has been frozen since it was recorded
            accumulate(leaf, "grad", cotangent, self.create_graph, self.layouts)
        if leaf.post_hooks:
            for hook in list(leaf.post_hooks.values()):
                hook(tensor)


def accumulate(holder, name, cotangent, create_graph, layouts=None):
    """Add a gradient to `holder.grad` (a Leaf, or the extra state of a tensor)."""
    have, cotangent = holder.get(name) if isinstance(holder, dict) else getattr(holder, name), unwatched(cotangent)
    if type(cotangent) is SparseValue or have is not None and have._compound:
        how = layouts.get(holder) if layouts else None
        new = accumulated(have, cotangent, how is not None and not any(how.stride))
        if new is None:
            return
    elif have is None:
        if type(holder) is Leaf:
            new = kept(cotangent, holder, layouts.get(holder) if layouts is not None else None, create_graph)
        else:
            new = Tensor._make(cotangent)
    elif create_graph or cotangent.wrapped or have._dispatches:
        new = Tensor._make(prims.add(have.value, cotangent))
    else:
        have._write(prims.add(have.value, cotangent))
        return
    if isinstance(holder, dict):
        holder[name] = new
    else:
        setattr(holder, name, new)


def run_hooks(hooks, cotangent: Value) -> Value:
    """Tensor hooks in order of registration; each may give another gradient of the same shape and dtype."""
    for hook in list(hooks.values()):
        given = Tensor._make(cotangent)
        result = hook(given)
        if result is None:
            if given._version:  # written in place by the hook
                cotangent = gradient_of(given)
            continue
        if not isinstance(result, Tensor):
            raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
        if result._size != given._size:
            raise RuntimeError(f"hook '{getattr(hook, '__name__', type(hook).__name__)}' has changed the size of value")
        cotangent = gradient_of(result)
        if cotangent.dtype != given._dtype.numpy:
            raise RuntimeError(f"hook '{getattr(hook, '__name__', type(hook).__name__)}' has changed the type of value (was "
                               f"torch.{given._dtype.scalar_name}Tensor got torch.{result._dtype.scalar_name}Tensor)")
    return cotangent


def run_node_hooks(hooks, grads, outputs):
    """Hooks of a whole node: on the cotangents of its outputs before (`outputs` None), of its inputs after."""
    def wrap(gs):
        return tuple([Tensor._make(g) if g is not None else None for g in gs])

    for hook in list(hooks.values()):
        result = hook(wrap(grads)) if outputs is None else hook(wrap(grads), wrap(outputs))
        if result is not None:
            if isinstance(result, Tensor):
                result = (result,)
            name = getattr(hook, "__name__", type(hook).__name__)
            if not isinstance(result, tuple):
                raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
            if len(result) != len(grads):
                raise RuntimeError(f"hook '{name}' has returned an incorrect number of values (got {len(result)}, but expected "
                                   f"{len(grads)})")
            grads = [gradient_of(r) if isinstance(r, Tensor) else r for r in result]
    return grads
