"""What a program need not do: reshapes of reshapes, copies, transposes that a product can fold in, slices that are one split,
and what nobody reads.

Inside a program nothing is observed and nothing is written to, so a copy is its original, and a chain of reshapes its last one.
"""


def simplify(wiring, specs, shapes, results):
    """The steps of a program that are left, (place, primitive, attributes, arguments) in order, and where the results are now.

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
    return _merge_slices([s for s in steps if s[0] in needed], shape, results)


def _merge_slices(steps, shape, results):
    """Slices that cut one value into equal parts along an axis, as one split: its gradient is one concatenation."""
    groups = {}
    for i, primitive, attributes, args in steps:
        if primitive.merged is not None:
            size = shape(args[0])
            axis = _cut_axis(size, **attributes)
            if axis is not None:
                length = attributes["stop"][axis] - attributes["start"][axis]
                groups.setdefault((args[0], axis, length), []).append((attributes["start"][axis], i, primitive.merged))
    moved, splits = {}, {}
    for (source, axis, length), parts in groups.items():
        parts.sort(key=lambda part: part[:2])
        if [start for start, _, _ in parts] != list(range(0, shape(source)[axis], length)) or len(parts) < 2:
            continue
        place = min(i for _, i, _ in parts)
        splits[place] = (place, parts[0][2], {"axis": axis, "sizes": (length,) * len(parts)}, (source,))
        for k, (_, i, _) in enumerate(parts):
            moved[(i, 0)] = (place, k)

    def now(a):
        return moved.get(a, a)

    left = []
    for step in steps:
        i, primitive, attributes, args = splits.get(step[0], step)
        if (i, 0) in moved and i not in splits:
            continue
        left.append((i, primitive, attributes, tuple(map(now, args))))
    return left, tuple(map(now, results))


def _cut_axis(size, start, stop, step):
    """The one axis along which a slice with step 1 takes a part; None where there is no such axis."""
    if any(s != 1 for s in step):
        return None
    cut = [d for d in range(len(size)) if start[d] != 0 or stop[d] != size[d]]
    return cut[0] if len(cut) == 1 else None


def _swapped(a, wiring, attributes):
    """The argument of a transpose of the last two axes, or None."""
    if isinstance(a, tuple) and wiring[a[0]][0].name == "transpose":
        axes = attributes[a[0]]["axes"]
        n = len(axes)
        if n >= 2 and axes == (*range(n - 2), n - 1, n - 2):
            return wiring[a[0]][2][0]
    return None
