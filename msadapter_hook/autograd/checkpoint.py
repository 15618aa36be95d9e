"""Checkpoints: a part of the graph that is computed again in backward instead of being kept."""

import numpy as np

from msadapter_hook.tape import Node, Value, enable_grad
from msadapter_hook.tape.recording import state
from msadapter_hook.tensor import Size, Tensor
from msadapter_hook.tensor.device import cpu
from msadapter_hook.tensor.generator import default_generator

from .engine import Backward
from .passes import current_pass, key_of


class _Region:
    """The primitive of a checkpoint: its gradient runs the function again and differentiates that."""

    name = "checkpoint"
    outputs = None
    kernel = None
    number = 0

    def __init__(self, function, places, contexts, rng, reentrant, kept):
        self.function, self.places, self.contexts, self.rng = function, places, contexts, rng
        self.reentrant = reentrant
        self.kept = kept  # what the first run saved, where the second one is checked against it

    def compute(self, inputs, attributes, replay):
        raise RuntimeError("a checkpointed value that nobody holds cannot be read again")

    def cotangents(self, node, grads, needs):
        if self.reentrant and current_pass().captured is not None and current_pass().observe:
            raise RuntimeError(REENTRANT_GRAD)
        tensors = [Tensor._make(_fresh(v)) for v in node.inputs[: len(self.places)]]
        rng = default_generator.get_state() if self.rng is not None else None
        create_graph = state.enabled
        try:
            if self.rng is not None:
                default_generator.set_state(self.rng)
            with enable_grad(), self.contexts():
                given = dict(zip(self.places, tensors))
                outputs = _tuple(self.function(given))
                roots = [(o.value, g) for o, g in zip(outputs, grads)
                         if g is not None and isinstance(o, Tensor) and o.requires_grad]
                if self.kept is not None:
                    compare(self.kept, saved_of(outputs, [t.value for t in tensors]))
        finally:
            if rng is not None:
                default_generator.set_state(rng)
        keys = [key_of(v) if v.requires_grad else None for v in node.inputs]
        with enable_grad():
            for i, t in enumerate(tensors):
                keys[i] = key_of(t.value) if t.requires_grad else None
        # what was handed in may itself come from a checkpoint that uses the same parameters: that is not this region's part
        handed_in = {k for k in keys[: len(tensors)] if isinstance(k, tuple)}
        found = Backward(roots, {k for k in keys if k is not None}, accumulate=False, create_graph=create_graph,
                         retain_graph=create_graph, observe=False, ends=handed_in).run()
        return [found.pop(k, None) if k is not None else None for k in keys]  # once, where a value was handed in twice


REENTRANT_GRAD = (
    "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
    ".backward(). To "
    "resolve this error, you can either set use_reentrant=False, or call .backward() without passing the `inputs` argument.")


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function is unlike the first. Source: PyTorch, torch.utils.checkpoint.CheckpointError."""

    __module__ = "torch.utils.checkpoint"


def saved_of(outputs, arguments):
    """(shape, dtype) of what PyTorch saves between the arguments and the outputs of a function, in order of recording."""
    nodes, marks = {}, {id(v.node) for v in arguments if v.node is not None}
    stack = [o.value.node for o in outputs if isinstance(o, Tensor) and o.requires_grad and o._leaf is None]
    while stack:
        node = stack.pop()
        if node is None or node.sequence in nodes or id(node) in marks:
            continue
        nodes[node.sequence] = node
        stack.extend([v.node for v in node.inputs if v.requires_grad and v.leaf is None])
    return [(tuple(size), dtype) for sequence in sorted(nodes) for _, _, size, dtype, *_ in nodes[sequence].saved or ()]


_DETAILS = (
    "\nTip: To see a more detailed error message, either pass `debug=True` to\n`torch.utils.checkpoint.checkpoint(...)` or wrap "
    "the code "
    "block\nwith `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to\nenable checkpoint-debug mode globally.\n")


def compare(first, again):
    """CheckpointError where the second run saved other things than the first. (More of them is fine: PyTorch stops early.)"""
    if len(again) < len(first):
        raise CheckpointError(
            "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
            f"Number of tensors saved during forward: {len(first)}\nNumber of tensors saved during recomputation: {len(again)}.\n"
            + _DETAILS)
    wrong = []
    for i, (a, b) in enumerate(zip(first, again)):
        if a != b:
            one, two = ({"shape": Size(size), "dtype": dtype, "device": cpu} for size, dtype in (a, b))
            wrong.append(f"tensor at position {i}:\nsaved metadata: {one}\nrecomputed metadata: {two}")
    if wrong:
        raise CheckpointError("torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                              "during "
                              "the forward pass.\n" + "\n".join(wrong) + "\n" + _DETAILS)


def _fresh(value: Value) -> Value:
    """The same value to a second run of the function: its history is the original's."""
    return Value(value.shape, value.dtype, value.numpy, None, value.node, value.index, value.requires_grad, value.leaf)


def _tuple(x):
    return x if isinstance(x, tuple) else (x,)


def checkpoint_region(function, args, contexts, contexts_again, preserve_rng_state, reentrant=False, check=True):
    """Run `function(*args)` and record it as one node.

    `contexts`, `contexts_again`: makers of contexts for the first and the later run. `reentrant`: as PyTorch's older kind, every
    floating output requires grad, and gradients cannot be asked for by name. `check`: the later run must save what the first did.
    The tensors that the function uses
    besides its arguments (parameters) are found on the first run.
    """
    places = tuple([i for i, a in enumerate(args) if isinstance(a, Tensor)])
    rng = default_generator.get_state() if preserve_rng_state else None

    def run(given):
        return function(*[given.get(i, a) for i, a in enumerate(rest)])

    rest = [None if i in places else a for i, a in enumerate(args)]
    tensors = [args[i] for i in places]
    with contexts():
        result = function(*args)
    if not state.enabled:
        return result
    outputs = _tuple(result)
    arguments = [t.value for t in tensors]
    outside = _outside(outputs, arguments)
    recorded = [o for o in outputs if isinstance(o, Tensor) and o.requires_grad]
    if not recorded:
        return result
    kept = saved_of(outputs, arguments) if check and not reentrant else None
    node = Node(_Region(run, places, contexts_again, rng, reentrant, kept), {}, tuple(arguments + outside), False)
    node.operator = "CheckpointFunctionBackward" if reentrant else recorded[0].grad_fn and recorded[0].grad_fn.name()
    made, values = [], []
    for i, out in enumerate(outputs):
        floating = isinstance(out, Tensor) and (out._dtype.is_floating_point or out._dtype.is_complex)
        if not floating or not (out.requires_grad or reentrant) or any(out is t for t in tensors):
            made.append(out)
            values.append(Value((), np.dtype(np.float32)))
            continue
        v = out.value
        value = Value(v.shape, v.dtype, v.numpy, None, node, i, True)
        values.append(value)
        made.append(Tensor._make(value, out._dtype))
    node.bind(values)
    return tuple(made) if isinstance(result, tuple) else made[0]


def _outside(outputs, arguments):
    """The differentiable values that the function used besides its arguments: leaves and nodes older than its run."""
    known = {key_of(v) for v in arguments if v.requires_grad}
    found, seen, stack = {}, set(), []
    first = None
    for v in arguments:
        if v.node is not None:
            first = max(first or 0, v.node.sequence)
    marks = {id(v.node) for v in arguments if v.node is not None}
    for o in outputs:
        if isinstance(o, Tensor) and o.requires_grad:
            stack.append(o.value)
    while stack:
        v = stack.pop()
        if not v.requires_grad:
            continue
        key = key_of(v)
        if key in known:
            continue
        if v.leaf is not None:
            found[key] = v
            continue
        if v.node is None or id(v.node) in seen or id(v.node) in marks:
            continue
        seen.add(id(v.node))
        stack.extend(v.node.inputs)
    return list(found.values())
