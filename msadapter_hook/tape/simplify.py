"""What a program need not do: reshapes of reshapes, copies, transposes that a product can fold in, and what nobody reads.

Inside a program nothing is observed and nothing is written to, so a copy is its original, and a chain of reshapes its last one.
"""


def simplify(wiring, specs, shapes, results):
    """The steps of a program that are left: (place, primitive, attributes, arguments), in order.

    `wiring`: (primitive, attributes, arguments, outputs) per node, an argument being the number of an input or (node, output);
    `specs`: (shape, dtype) of each node's outputs; `shapes`: of the inputs; `results`: what is read at the end.
    """
    attributes = [dict(w[1]) for w in wiring]

    def shape(a):
        return shapes[a] if isinstance(a, int) else specs[a[0]][a[1]][0]

    def source(a):
        """Where the value of an argument really comes from."""
        while isinstance(a, tuple):
            primitive, _, args, _ = wiring[a[0]]
            if primitive.name == "copy":
                a = args[0]
                continue
            if primitive.name == "reshape":
                flat = flat_source(args[0])
                if shape(flat) == shape(a):
                    a = flat
                    continue
            return a
        return a

    def flat_source(a):
        """The same elements before any reshape."""
        while isinstance(a, tuple) and wiring[a[0]][0].name in ("reshape", "copy"):
            a = wiring[a[0]][2][0]
        return a

    steps = []
    for i, (primitive, _, args, _) in enumerate(wiring):
        if primitive.name == "reshape":
            args = (flat_source(args[0]),)
        else:
            args = tuple(map(source, args))
            if primitive.name == "matmul":
                folded = _swapped(args[1], wiring, attributes)
                if folded is not None:
                    args = (args[0], source(folded))
                    attributes[i] = {"transpose_b": not attributes[i].get("transpose_b", False)}
        steps.append((i, primitive, attributes[i], args))
    needed = {r[0] for r in results}
    for i, _, _, args in reversed(steps):
        if i in needed:
            needed.update([a[0] for a in args if isinstance(a, tuple)])
    return [s for s in steps if s[0] in needed]


def _swapped(a, wiring, attributes):
    """The argument of a transpose of the last two axes, or None."""
    if isinstance(a, tuple) and wiring[a[0]][0].name == "transpose":
        axes = attributes[a[0]]["axes"]
        n = len(axes)
        if n >= 2 and axes == (*range(n - 2), n - 1, n - 2):
            return wiring[a[0]][2][0]
    return None
