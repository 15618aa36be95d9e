"""Shapes and axes, whose gradients are views again; rows added by index; gradients of windows and of rows, added in place to what
other windows of the same tensor have brought."""

import math

import numpy as np

from msadapter_hook.tape.kernel import Kernel

from .. import movement
from .activation import passed, where
from .layout import is_finite
from .linear import FLOATS, product

_ROUND = 2000  # elements that are added by other means in the time that a round of rows takes by itself
_ONE_HOT = 1 << 20  # elements of a one-hot matrix up to which a product with it beats sorting
_FEW = 1 << 15  # elements of the rows that are added to, likewise


def _reshape(keep, a, *, shape):
    return a.reshape(shape), ()


def _reshape_back(kept, grads, needs, a, *, shape):
    return [grads[0].reshape(a.shape)]


def _transpose(keep, a, *, axes):
    return a.transpose(axes), ()


def _transpose_back(kept, grads, needs, a, *, axes):
    return [grads[0].transpose(sorted(range(a.ndim), key=axes.__getitem__))]


def _into_window(total, g, shape, dtype, *, start, stop, step):
    window = tuple(map(slice, start, stop, step))
    if total is None:
        total = np.zeros(shape, dtype)
        total[window] = g
    else:
        total[window] += g
    return total


def add_rows(total, index, rows):
    """Add `rows` (K, D) to the rows of `total` (V, D) at `index` (K,), which may name a row many times; in place, in order."""
    if (index[1:] > index[:-1]).all():  # as positions are
        total[index] += rows
        return
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    counts = np.diff(starts, append=index.size)
    most = counts.max(initial=0)
    if most * _ROUND <= max(rows.size, _FEW):
        for again in range(most):  # the first row of every name, then the second of those that have one
            at = starts[counts > again] + again if again else starts
            total[ordered[at]] += rows[order[at]]
    elif total.shape[0] * index.size <= _ONE_HOT and total.size <= _FEW and is_finite(rows):  # 0 times infinity would be NaN
        hot = np.zeros((total.shape[0], index.size), total.dtype)
        hot[index, np.arange(index.size)] = 1
        total += product(hot, rows)
    else:
        total[ordered[starts]] += np.add.reduceat(rows[order], starts, 0)


def _into_rows(total, g, shape, dtype, index, *, axis):
    if total is None:
        total = np.zeros(shape, dtype)
    if g.size:
        count = axis + index.ndim
        lead = g.transpose(*range(axis, count), *range(axis), *range(count, g.ndim)).reshape(index.size, -1)
        target = total if axis == 0 else np.moveaxis(total, axis, 0)
        flat = target.reshape(shape[axis], -1)
        add_rows(flat, np.where(index < 0, index + shape[axis], index).reshape(-1) if (index < 0).any() else index.reshape(-1), lead)
        if not np.may_share_memory(flat, total):
            target[...] = flat.reshape(target.shape)
    return total


def _index_add(keep, a, index, source, *, axis):
    if not a.ndim or not source.size or not -a.shape[axis] <= index.min() <= index.max() < a.shape[axis]:
        return None
    return _into_rows(np.array(a, order="C"), source, a.shape, a.dtype, index, axis=axis), None


# ------------------------------------------------------------------------------------------------ one element by another's index
def _places(index, shape, axis):
    """Where the elements that `index` names along `axis` lie in an array of this shape, row by row; None where one is
    none of its places, or counted from the end."""
    if not index.size or index.min() < 0 or index.max() >= shape[axis]:
        return None
    far = [math.prod(shape[i + 1:]) for i in range(len(shape))]
    places = index * far[axis]
    for i, n in enumerate(index.shape):
        if i != axis and n > 1:
            places += (np.arange(n) * far[i]).reshape((n,) + (1,) * (index.ndim - 1 - i))
    return places


def _take_along(keep, a, index, *, axis):
    places = _places(index, a.shape, axis) if a.ndim else None
    return None if places is None else (np.take(a.reshape(-1), places), (places,))


def _take_along_back(kept, grads, needs, a, index, *, axis):
    total = np.zeros(a.shape, a.dtype)
    np.add.at(total.reshape(-1), kept[0].reshape(-1), grads[0].reshape(-1))
    return [total, None]


def _add_along(keep, a, index, new, *, axis):
    places = _places(index, a.shape, axis) if a.ndim and new.ndim else None
    if places is None:
        return None
    total = np.array(a, order="C")
    np.add.at(total.reshape(-1), places.reshape(-1), new[tuple(map(slice, index.shape))].reshape(-1))
    return total, (places,)


def _add_along_back(kept, grads, needs, a, index, new, *, axis):
    found = None
    if needs[2]:
        found = np.take(grads[0].reshape(-1), kept[0])
        if found.shape != new.shape:
            found = np.pad(found, [(0, n - m) for n, m in zip(new.shape, found.shape)])
    return [grads[0] if needs[0] else None, None, found]


def _masked_fill(keep, a, mask, value):
    made = where(keep, mask, value, a) if mask.shape == a.shape and not value.ndim else None
    return None if made is None else (made[0], ())


def _masked_fill_back(kept, grads, needs, a, mask, value):
    g = grads[0]
    return [passed(g, ~mask) if needs[0] else None, None,
            np.asarray(np.add.reduce(passed(g, mask), None)) if needs[2] else None]


#: in the order of PyTorch where an index comes again: this serves without the switch, too
EXACT = {
    movement.index_add: Kernel(_index_add, dtypes=FLOATS),
    movement.take_along: Kernel(_take_along, _take_along_back, dtypes=FLOATS),
    movement.add_along: Kernel(_add_along, _add_along_back, dtypes=FLOATS),
    movement.masked_fill: Kernel(_masked_fill, _masked_fill_back, dtypes=FLOATS),
}
KERNELS = {
    **EXACT,
    movement.reshape: Kernel(_reshape, _reshape_back, dtypes=FLOATS),
    movement.transpose: Kernel(_transpose, _transpose_back, dtypes=FLOATS),
    movement.strided_slice: Kernel(into=_into_window, dtypes=FLOATS),
    movement.gather: Kernel(into=_into_rows, dtypes=FLOATS),
}
