"""Resampling along axes: gradients as sums of slices, products whose operands are laid out for BLAS."""

import math

import numpy as np

from msadapter_hook.tape.kernel import Kernel

from .. import resampling
from .layout import spread_out
from .linear import FLOATS, product


def _repeat(keep, a, *, axis, times):
    return (np.repeat(a, times, axis), ()) if a.ndim else None


def _repeat_back(kept, grads, needs, a, *, axis, times):
    parts = grads[0].reshape(*a.shape[:axis + 1], times, *a.shape[axis + 1:])
    slices = [parts[(slice(None),) * (axis + 1) + (i,)] for i in range(times)]
    total = slices[0].copy() if times < 2 else slices[0] + slices[1]
    for more in slices[2:]:
        total += more
    return [total]


def _map(keep, x, m, *, axis):
    return resampling.axis_map.host(spread_out(x), m, axis=axis), ()


def _map_back(kept, grads, needs, x, m, *, axis):
    g, found = spread_out(grads[0]), [None, None]
    if needs[0]:
        found[0] = resampling.axis_map.host(g, np.ascontiguousarray(m.T), axis=axis)
    if needs[1]:
        rows, columns = (np.moveaxis(a, axis, 0).reshape(a.shape[axis], math.prod(a.shape) // max(a.shape[axis], 1)) for a in (g, x))
        found[1] = product(rows, columns.T)
    return found


KERNELS = {
    resampling.axis_repeat: Kernel(_repeat, _repeat_back, dtypes=FLOATS),
    resampling.axis_map: Kernel(_map, _map_back, dtypes=FLOATS),
}
