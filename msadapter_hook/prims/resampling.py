"""Resampling along axes: a matrix applied to one axis, and elements repeated or skipped."""

import math

import numpy as np

from msadapter_hook.backend import primitive
from msadapter_hook.tape import Primitive

from .linear import matmul
from .movement import reshape, transpose
from .reduction import sum as reduce_sum

__all__ = ["axis_map", "axis_repeat", "axis_take"]


def _axis_map(x, m, *, axis):
    if x.dtype.itemsize < 4:
        return _axis_map(x.astype(np.float32), m.astype(np.float32), axis=axis).astype(x.dtype)
    before, after = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1:])
    shape = x.shape[:axis] + (m.shape[0],) + x.shape[axis + 1:]
    if after == 1:
        return np.matmul(x.reshape(before, x.shape[axis]), m.T).reshape(shape)
    return np.matmul(m, x.reshape(before, x.shape[axis], after)).reshape(shape)


def _axis_map_matrix(g, out, x, m, *, axis):
    order = (axis,) + tuple(i for i in range(x.ndim) if i != axis)
    rows = reshape(transpose(g, axes=order), shape=(m.shape[0], g.size // max(m.shape[0], 1)))
    columns = reshape(transpose(x, axes=order), shape=(m.shape[1], x.size // max(m.shape[1], 1)))
    return matmul(rows, columns, transpose_b=True)


axis_map = Primitive(  # a matrix (out, n) applied along one axis of x
    "axis_map", host=_axis_map, uses_output=False,
    vjp=[lambda g, out, x, m, *, axis: axis_map(g, transpose(m, axes=(1, 0)), axis=axis), _axis_map_matrix])


def _axis_add(g, index, *, axis, size):
    """Slices added up at ascending positions of an axis of length `size`."""
    times, rest = divmod(index.size, size) if size else (0, 1)
    if times and not rest and np.array_equal(index, np.repeat(np.arange(size), times)):
        return np.add.reduce(g.reshape(g.shape[:axis] + (size, times) + g.shape[axis + 1:]), axis + 1)
    out = np.zeros(g.shape[:axis] + (size,) + g.shape[axis + 1:], g.dtype)
    if index.size and g.size:
        starts = np.flatnonzero(np.diff(index, prepend=-1))
        out[(slice(None),) * axis + (index[starts],)] = np.add.reduceat(g, starts, axis)
    return out


axis_take = Primitive(  # the slices of an axis at ascending positions
    "axis_take", host=lambda a, index, *, axis: np.take(a, index, axis), uses_output=False,
    vjp=[lambda g, out, a, index, *, axis: axis_add(g, index, axis=axis, size=a.shape[axis]), None])
axis_add = Primitive(
    "axis_add", host=_axis_add, uses_output=False,
    vjp=[lambda h, out, g, index, *, axis, size: axis_take(h, index, axis=axis), None])


def _mindspore_repeat(*, axis, times):
    shape = primitive("Reshape")

    def run(a):
        n, before, after = a.shape[axis], math.prod(a.shape[:axis]), math.prod(a.shape[axis + 1:])
        wide = primitive("BroadcastTo", (before, n, times, after))(shape(a, (before, n, 1, after)))
        return shape(wide, (*a.shape[:axis], n * times, *a.shape[axis + 1:]))

    return run


def _axis_repeat_vjp(g, out, a, *, axis, times):
    parts = reshape(g, shape=a.shape[:axis + 1] + (times,) + a.shape[axis + 1:])
    return reduce_sum(parts, axes=(axis + 1,), keepdims=False)


axis_repeat = Primitive(  # each slice of an axis several times
    "axis_repeat", host=lambda a, *, axis, times: np.repeat(a, times, axis), mindspore=_mindspore_repeat, vjp=[_axis_repeat_vjp],
    uses_output=False, guard=lambda a, *, axis, times: a.size > 0)
