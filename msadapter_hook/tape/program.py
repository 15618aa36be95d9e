"""Program: a straight-line pure function made of recorded nodes, replayed through MindSpore's gradient.

Programs are kept by structure (primitives, attributes, wiring, shapes, dtypes), so a training step that
repeats builds its program once.
"""

import weakref
from collections import OrderedDict

import numpy as np

from msadapter_hook import backend

from .replay import Replay
from .simplify import simplify
from .value import Value

_KEPT = 256
_programs = OrderedDict()
_families = weakref.WeakValueDictionary()  # structure without the values that are only carried along -> what its programs share


class _Family:
    __slots__ = ("differentiated", "__weakref__")


class Program:
    """The function of `nodes` (in order of recording): arrays of the inputs in, arrays of the outputs out."""

    __slots__ = ("source", "function", "positions", "zeros", "_family", "_replay")

    def __init__(self, source, function, positions, base, carried):
        self.source = source
        self.function = function
        self.positions = positions
        self._family = _families.get(base)
        if self._family is None:
            self._family = _families[base] = _Family()
            self._family.differentiated = False
        self.zeros = tuple([constant_zeros(shape, dtype) for shape, dtype in carried])
        self._replay = Replay(function, positions, source.count("\n"))

    def differentiated(self):
        """Whether a backward pass has differentiated a program of this structure."""
        return self._family.differentiated

    def run(self, outputs, inputs, cotangents):
        """Replay: fill the pending Values among `outputs`, and give one gradient per differentiated input, in the order of
        `positions`. `cotangents`: one Value per wanted output."""
        self._family.differentiated = True
        given = tuple([g.array for g in cotangents]) + self.zeros
        results, grads = self._replay(distinct_arrays(inputs), given)
        for (node, i), result in zip(outputs, results):
            value = node.outputs[i]()
            if value is not None and value.pending:
                # as NumPy's memory: MindSpore's tensor remembers the inputs of this replay, and one that takes it together
                # with them would lose their gradient
                value.fill(backend.as_numpy(result))
        return [Value(inputs[p].shape, inputs[p].dtype, None, g) for p, g in zip(self.positions, grads)]

    @classmethod
    def trace(cls, nodes, wanted, carried=()):
        """The program of `nodes` with outputs `wanted` and, without gradient, `carried` ((node, index) pairs); and its
        input Values. Inputs that require grad are differentiated.
        """
        place = {id(n): i for i, n in enumerate(nodes)}
        inputs, slots, wiring = [], {}, []
        for n in nodes:
            args = []
            for v in n.inputs:
                made = place.get(id(v.node)) if v.node is not None and v.leaf is None else None
                if made is not None:
                    args.append((made, v.index))
                    continue
                key = (id(v.node), v.index) if v.node is not None and v.requires_grad else id(v)
                slot = slots.get(key)
                if slot is None:
                    slot = slots[key] = len(inputs)
                    inputs.append(v)
                args.append(slot)
            wiring.append((n.primitive, tuple(n.attributes.items()), tuple(args), len(n.outputs)))
        results = tuple([(place[id(n)], i) for n, i in wanted])
        base = (tuple(wiring), results, tuple([(v.shape, v.dtype.num, v.requires_grad) for v in inputs]))
        carried = [c for c in carried if c not in wanted]
        extra = tuple([(place[id(n)], i) for n, i in carried])
        key = (base, extra)
        program = _programs.get(key)
        if program is None:
            program = _programs[key] = cls._build(wiring, [n.specs for n in nodes], results, extra, inputs, base)
            if len(_programs) > _KEPT:
                _programs.popitem(last=False)
        else:
            _programs.move_to_end(key)
        return program, inputs

    @classmethod
    def _build(cls, wiring, specs, results, extra, inputs, base):
        environment, lines = {"__name__": __name__}, []

        def name(a):
            if isinstance(a, int):
                return f"x{a}"
            return f"v{a[0]}[{a[1]}]" if a[0] in several else f"v{a[0]}"

        steps, outputs = simplify(wiring, specs, [v.shape for v in inputs], results + extra)
        several = {i for i, primitive, _, _ in steps if primitive.outputs != 1}
        last = {a[0]: i for i, _, _, args in steps for a in args if isinstance(a, tuple)}
        used = {a for _, _, _, args in steps for a in args if isinstance(a, tuple)}.union(outputs)
        for node, _ in outputs:
            last.pop(node, None)
        reached = set()  # steps through which gradients flow
        dead = {}
        for made, i in last.items():
            dead.setdefault(i, []).append(f"v{made}")
        for i, primitive, attributes, args in steps:
            needs = tuple([inputs[a].requires_grad if isinstance(a, int) else a[0] in reached for a in args])
            if any(needs):
                reached.add(i)
            environment[f"p{i}"] = primitive.bound(**attributes) if primitive.partial is None else primitive.partial(
                tuple([k for k in range(primitive.outputs) if (i, k) in used]), needs, **attributes)
            lines.append(f"    v{i} = p{i}({', '.join(map(name, args))})  # {primitive.name}")
            if i in dead:  # what nobody reads again is let go, as in code written by hand
                lines.append(f"    del {', '.join(dead[i])}")
        environment["stop"] = backend.primitive("StopGradient")
        cut = len(results)
        outs = "".join(f"{name(r)}, " for r in outputs[:cut]) + "".join(f"stop({name(r)}), " for r in outputs[cut:])
        parameters = ", ".join(f"x{i}" for i in range(len(inputs)))
        source = f"def program({parameters}):\n" + "\n".join(lines) + f"\n    return ({outs})\n"
        exec(compile(source, "<msadapter program>", "exec"), environment)
        positions = tuple([i for i, v in enumerate(inputs) if v.requires_grad])
        return cls(source, environment["program"], positions, base, [specs[n][i] for n, i in extra])


def constant_zeros(shape, dtype):
    """A MindSpore tensor of zeros: the cotangent of what is only carried along."""
    return backend.from_numpy(np.zeros(shape, dtype))


def distinct_arrays(inputs):
    """The MindSpore tensors of the inputs, each a tensor object of its own: MindSpore adds up the gradients of
    two positions that hold the same object."""
    seen, arrays = set(), []
    for v in inputs:
        a = v.array
        if id(a) in seen:
            a = backend.from_numpy(v.numpy) if v._numpy is not None else backend.from_numpy(backend.as_numpy(a))
        seen.add(id(a))
        arrays.append(a)
    return tuple(arrays)
