"""Program: a straight-line pure function made of recorded nodes, replayed through MindSpore's gradient.

Programs are kept by structure (primitives, attributes, wiring, shapes, dtypes), so a training step that
repeats builds its program once.
"""

from collections import OrderedDict

from msadapter_hook import backend

from .value import Value

_KEPT = 256
_programs = OrderedDict()


class Program:
    """The function of `nodes` (in order of recording): arrays of the inputs in, arrays of the outputs out."""

    __slots__ = ("source", "function", "positions", "_gradient", "runs")

    def __init__(self, source, function, positions):
        self.source = source
        self.function = function
        self.positions = positions
        self._gradient = backend.Gradient(function, positions)
        self.runs = 0

    def vjp(self, inputs, cotangents):
        """One cotangent (MindSpore tensor) per differentiated input, in the order of `positions`."""
        self.runs += 1
        return self._gradient(inputs, cotangents)

    @classmethod
    def trace(cls, nodes, wanted):
        """The program of `nodes` with outputs `wanted` ((node, index) pairs), and its input Values.

        Inputs that require grad are differentiated.
        """
        place = {id(n): i for i, n in enumerate(nodes)}
        inputs, slots, wiring = [], {}, []
        for n in nodes:
            args = []
            for v in n.inputs:
                made = place.get(id(v.node)) if v.node is not None and v.requires_grad else None
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
        key = (tuple(wiring), results, tuple([(v.shape, v.dtype.num, v.requires_grad) for v in inputs]))
        program = _programs.get(key)
        if program is None:
            program = _programs[key] = cls._build(wiring, results, inputs)
            if len(_programs) > _KEPT:
                _programs.popitem(last=False)
        else:
            _programs.move_to_end(key)
        return program, inputs

    @classmethod
    def _build(cls, wiring, results, inputs):
        environment, lines = {"__name__": __name__}, []
        single = {}
        for i, (primitive, attributes, args, outputs) in enumerate(wiring):
            environment[f"p{i}"] = primitive.bound(**dict(attributes))
            single[i] = primitive.outputs == 1

            def name(a):
                if isinstance(a, int):
                    return f"x{a}"
                return f"v{a[0]}" if single[a[0]] else f"v{a[0]}[{a[1]}]"

            lines.append(f"    v{i} = p{i}({', '.join(map(name, args))})  # {primitive.name}")
        outs = "".join(f"{name(r)}, " for r in results)
        parameters = ", ".join(f"x{i}" for i in range(len(inputs)))
        source = f"def program({parameters}):\n" + "\n".join(lines) + f"\n    return ({outs})\n"
        exec(compile(source, "<msadapter program>", "exec"), environment)
        positions = tuple([i for i, v in enumerate(inputs) if v.requires_grad])
        return cls(source, environment["program"], positions)


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


def from_arrays(arrays, like):
    """Values of gradients, shaped and typed as the inputs they belong to."""
    return [Value(v.shape, v.dtype, None, a) for a, v in zip(arrays, like)]
