"""What a program need not do: reshapes, copies, transposes that a product can fold in, slices that are one split, and what
nobody reads.

Inside a program nothing is observed and nothing is written to, so a copy is its original, and a chain of reshapes its last one.
"""


def simplify(wiring, specs, shapes, results):
    """The steps of a program that are left, (place, primitive, attributes, arguments) in order, and where the results are now.

    `wiring`: (primitive, attributes, arguments, outputs) per node, an argument being the number of an input or (node, output);
    `specs`: (shape, dtype) of each node's outputs; `shapes`: of the inputs; `results`: what is read at the end.
    """
    made = _Rewriting(wiring, specs, shapes)
    for i in range(len(wiring)):
        made.add(i)
    results = made.read(results)
    needed = {r[0] for r in results}
    for i, _, _, args in reversed(made.steps):
        if i in needed:
            needed.update([a[0] for a in args if isinstance(a, tuple)])
    return _merge_slices([s for s in made.steps if s[0] in needed], made.shape, results)


class _Rewriting:
    """A program written anew, node by node. Reshapes and copies are only noted: a value is known by what holds its elements, in
    whatever shape that has, and is reshaped where somebody needs its own. Elementwise operations take what holds their inputs,
    so that `gelu(linear(x).view(...)).view(...)` has no reshape at all."""

    def __init__(self, wiring, specs, shapes):
        self.wiring, self.specs, self.shapes = wiring, specs, shapes
        self.attributes = [dict(w[1]) for w in wiring]
        self.steps = []
        self._holders = {}  # value -> the value that holds its elements
        self._actual = {}  # output of a step -> its shape now, where that is not the recorded one
        self._reshaped = {}  # (value, shape) -> the output of the step that reshapes it
        self._reshape = None
        self._next = len(wiring)

    def recorded(self, a):
        """The shape that a value had when it was recorded."""
        return self.shapes[a] if isinstance(a, int) else self.specs[a[0]][a[1]][0]

    def shape(self, a):
        """The shape that a value has in the new program."""
        return self._actual[a] if a in self._actual else self.recorded(a)

    def holder(self, a):
        return self._holders.get(a, a)

    def in_shape(self, a, shape):
        """A value's elements in a shape."""
        a = self.holder(a)
        if self.shape(a) == shape:
            return a
        found = self._reshaped.get((a, shape))
        if found is None:
            found = self._reshaped[(a, shape)] = (self._next, 0)
            self._actual[found] = shape
            self.steps.append((self._next, self._reshape, {"shape": shape}, (a,)))
            self._next += 1
        return found

    def add(self, i):
        primitive, _, args, _ = self.wiring[i]
        if primitive.name == "reshape":
            self._reshape = primitive
        if primitive.name in ("reshape", "copy"):
            self._holders[(i, 0)] = self.holder(args[0])
        elif primitive.pointwise and self._elementwise(i, primitive, args):
            pass
        elif primitive.merged is not None and self._last_axis(i, primitive, args[0]):
            pass
        else:
            made = tuple([self.in_shape(a, self.recorded(a)) for a in args])
            if primitive.name == "matmul":
                made = self._product(i, made)
            self.steps.append((i, primitive, self.attributes[i], made))

    def _elementwise(self, i, primitive, args):
        """Compute in the shape that needs the fewest reshapes. False where inputs broadcast: their own shapes matter then."""
        own = self.recorded((i, 0))
        wide = [a for a in args if self.recorded(a) != ()]
        if not own or any(self.recorded(a) != own for a in wide):
            return False
        holders = [self.holder(a) for a in wide]
        best = min([own, *[self.shape(h) for h in holders]], key=lambda shape: (self._reshapes(holders, shape), shape == own))
        made = tuple([self.in_shape(a, best) if self.recorded(a) != () else self.in_shape(a, ()) for a in args])
        self.steps.append((i, primitive, self.attributes[i], made))
        self._actual[(i, 0)] = best
        return True

    def _reshapes(self, holders, shape):
        return len([h for h in holders if self.shape(h) != shape and (h, shape) not in self._reshaped])

    def _last_axis(self, i, primitive, a):
        """A slice along the last axis, of what holds the elements where that has the same last axis."""
        size, attributes, held = self.recorded(a), self.attributes[i], self.holder(a)
        rows = self.shape(held)
        if rows == size or not rows or rows[-1] != size[-1] or _cut_axis(size, **attributes) != len(size) - 1:
            return False
        lead = rows[:-1]
        cut = {"start": (0,) * len(lead) + attributes["start"][-1:], "stop": lead + attributes["stop"][-1:], "step": (1,) * len(rows)}
        self.steps.append((i, primitive, cut, (held,)))
        self._actual[(i, 0)] = (*lead, self.recorded((i, 0))[-1])
        return True

    def _product(self, i, args):
        """A transpose of the last two axes of the second factor is folded in."""
        swapped = _swapped(args[1], self.wiring, self.attributes)
        if swapped is None:
            return args
        self.attributes[i] = {"transpose_b": not self.attributes[i].get("transpose_b", False)}
        return args[0], self.in_shape(swapped, self.recorded(swapped))

    def read(self, results):
        """Where the results are: each the output of a step of its own, in its recorded shape."""
        noted = [r for r in results if self.wiring[r[0]][0].name in ("reshape", "copy")]
        found = {r: self.in_shape(r, self.recorded(r)) for r in results if r not in noted}
        taken = set(found.values())
        for r in noted:
            a = self.in_shape(r, self.recorded(r))
            if isinstance(a, int) or a in taken:  # an input as it is, or a second name of a result
                self.steps.append((r[0], self.wiring[r[0]][0], self.attributes[r[0]], (a,)))
                a = r
            taken.add(a)
            found[r] = a
        return tuple([found[r] for r in results])


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
    if isinstance(a, tuple) and a[0] < len(wiring) and wiring[a[0]][0].name == "transpose":
        axes = attributes[a[0]]["axes"]
        n = len(axes)
        if n >= 2 and axes == (*range(n - 2), n - 1, n - 2):
            return wiring[a[0]][2][0]
    return None
