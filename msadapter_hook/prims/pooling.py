"""Pooling over any number of axes of (N, C, …): largest elements and where they are, means, and what takes them back.

Attributes are tuples with one number per spatial axis; `out` is the spatial shape of the result.
"""

import itertools
import math

import numpy as np

from msadapter_hook.backend import finite, primitive
from msadapter_hook.tape import Primitive

from .movement import reshape

__all__ = ["avg_pool", "avg_pool_back", "max_pool", "max_pool_index", "places_get", "places_add"]


def _lowest(dtype):
    if dtype.kind == "f" or dtype.kind == "V":
        return -np.inf
    return np.iinfo(dtype).min if dtype.kind in "iu" else False


def _extended(x, kernel, stride, padding, dilation, out, value):
    """`x` with `padding` before and as much behind as the last window reaches."""
    behind = [max((o - 1) * s + d * (k - 1) + 1 - p - n, 0)
              for n, k, s, p, d, o in zip(x.shape[2:], kernel, stride, padding, dilation, out)]
    if not any(padding) and not any(behind):
        return x
    made = np.full(x.shape[:2] + tuple([p + n + b for n, p, b in zip(x.shape[2:], padding, behind)]), value, x.dtype)
    made[(slice(None), slice(None)) + tuple([slice(p, p + n) for n, p in zip(x.shape[2:], padding)])] = x
    return made


def _slices(at, stride, dilation, out):
    return (slice(None), slice(None)) + tuple(
        [slice(k * d, k * d + (o - 1) * s + 1, s) for k, d, o, s in zip(at, dilation, out, stride)])


# ------------------------------------------------------------------------------------------------ maximum
def _max_pool(x, *, kernel, stride, padding, dilation, out):
    full = _extended(x, kernel, stride, padding, dilation, out, _lowest(x.dtype))
    best = None
    for at in itertools.product(*map(range, kernel)):
        part = full[_slices(at, stride, dilation, out)]
        best = part.copy() if best is None else np.maximum(best, part, out=best)
    return best


def _max_pool_index(x, *, kernel, stride, padding, dilation, out):
    """Flat position within the spatial axes of the first largest element of each window; the last NaN wins."""
    full = _extended(x, kernel, stride, padding, dilation, out, _lowest(x.dtype))
    size = x.shape[2:]
    best = index = None
    for at in itertools.product(*map(range, kernel)):
        part = full[_slices(at, stride, dilation, out)]
        flat = np.zeros((1,) * len(out), np.int64)
        inside = np.ones((1,) * len(out), bool)
        for axis, (k, s, d, p, o, n) in enumerate(zip(at, stride, dilation, padding, out, size)):
            place = np.arange(o) * s + k * d - p
            shape = [1] * len(out)
            shape[axis] = o
            flat = flat * n + place.reshape(shape)
            inside = inside & ((place >= 0) & (place < n)).reshape(shape)
        flat = np.broadcast_to(flat, part.shape)
        if best is None:
            best = np.full(part.shape, _lowest(x.dtype), x.dtype)
            index = np.full(part.shape, -1, np.int64)
        with np.errstate(invalid="ignore"):
            better = ((part > best) | (part != part) | (index < 0)) & inside
        best = np.where(better, part, best)
        index = np.where(better, flat, index)
    return index


def _flat(v):
    return reshape(v, shape=v.shape[:2] + (math.prod(v.shape[2:]),))


def _max_pool_vjp(g, result, x, **attributes):
    index = max_pool_index(x, **attributes)
    return reshape(places_add(_flat(g), _flat(index), size=math.prod(x.shape[2:])), shape=x.shape)


def _mindspore_max_pool(*, kernel, stride, padding, dilation, out):
    """MindSpore's kernels pass over NaN and give the lowest number for a window of minus infinities. Where there are such, the mean
    of a window has the NaN, and tells whether all are infinite where minus infinity counts as a number below all that others can be."""
    select, same, less, stop, product, add, shape = map(
        primitive, ("Select", "Equal", "Less", "StopGradient", "Mul", "Add", "Reshape"))
    if any(padding):
        # the kernels for three axes pad by themselves; padding before (PadV3) takes twice as long, and its compiled gradient never
        # comes back from its sixth run
        window = (1, *kernel), (1, *stride), "pad", (0, 0, padding[0], padding[0], padding[1], padding[1])
        pool, mean = primitive("MaxPool3D", *window), primitive("AvgPool3D", *window)
    else:
        pool, mean = primitive("MaxPool", kernel, stride, "valid"), primitive("AvgPool", kernel, stride, "valid")
    larger, nearly = primitive("Maximum"), _BELOW * (1 - 0.2 / math.prod(kernel))

    def largest(x):
        best = pool(x)
        if finite(x):
            return best
        smaller = stop(product(x, _SMALL))
        level = mean(larger(_BELOW, smaller))  # in this order, Maximum keeps NaN
        infinite = same(pool(smaller), _LOWEST) if any(padding) else less(level, nearly)  # zeros of the border are in the mean
        best = select(infinite, add(best, -math.inf), best)
        return select(same(level, level), best, level)

    def run_padded(x):
        n, c, *size = x.shape
        return shape(largest(shape(x, (n, c, 1, *size))), (n, c, *out))

    return run_padded if any(padding) else largest


_SMALL, _LOWEST, _BELOW = 2.0**-16, float(np.finfo(np.float32).min), -1e34  # the lowest number times _SMALL is above _BELOW


def _max_guard(x, *, kernel, stride, padding, dilation, out):
    if x.ndim != 4 or x.size == 0 or any(d != 1 for d in dilation):
        return False
    return not any((o - 1) * s + k > n + 2 * p for n, k, s, p, o in zip(x.shape[2:], kernel, stride, padding, out))


max_pool = Primitive("max_pool", host=_max_pool, mindspore=_mindspore_max_pool, guard=_max_guard, vjp=[_max_pool_vjp],
                     uses_output=False)
max_pool_index = Primitive("max_pool_index", host=_max_pool_index, differentiable=False)


# ------------------------------------------------------------------------------------------------ elements at places
def _places_get(a, index):
    return np.take_along_axis(a, index, 2)


def _places_add(g, index, *, size):
    n, c, count = g.shape
    if g.dtype.kind != "f" or g.dtype.itemsize < 4:
        wide = g.astype(np.float32) if g.dtype.kind in "fV" else g
        out = np.zeros((n * c, size), wide.dtype)
        np.add.at(out, (np.arange(n * c)[:, None], index.reshape(n * c, count)), wide.reshape(n * c, count))
        return out.reshape(n, c, size).astype(g.dtype)
    flat = (index.reshape(n * c, count) + (np.arange(n * c) * size)[:, None]).reshape(-1)
    return np.bincount(flat, g.reshape(-1), n * c * size).astype(g.dtype).reshape(n, c, size)


places_get = Primitive(  # (N, C, L) at positions (N, C, K)
    "places_get", host=_places_get, uses_output=False,
    vjp=[lambda g, out, a, index: places_add(g, index, size=a.shape[2]), None])
places_add = Primitive(  # (N, C, K) added up at positions of (N, C, size)
    "places_add", host=_places_add, uses_output=False, vjp=[lambda h, out, g, index, *, size: places_get(h, index), None])


# ------------------------------------------------------------------------------------------------ mean
def _divisors(size, kernel, stride, padding, out, count_padding, divisor, dtype):
    """How many elements each window counts, broadcastable against the result."""
    if divisor:
        return np.asarray(divisor, dtype)
    made = np.ones((1,) * len(out), np.float64)
    for axis, (n, k, s, p, o) in enumerate(zip(size, kernel, stride, padding, out)):
        start = np.arange(o) * s - p
        stop = np.minimum(start + k, n + p)
        if not count_padding:
            start, stop = np.maximum(start, 0), np.minimum(stop, n)
        shape = [1] * len(out)
        shape[axis] = o
        made = made * (stop - start).reshape(shape)
    return made.astype(dtype) if dtype.kind in "fcV" else made.astype(np.int64)


def _avg_pool(x, *, kernel, stride, padding, out, count_padding, divisor):
    ones = (1,) * len(out)
    full = _extended(x, kernel, stride, padding, ones, out, 0)
    wide = np.float32 if x.dtype.itemsize < 4 and x.dtype.kind in "fV" else x.dtype
    total = np.zeros(x.shape[:2] + out, wide)
    for at in itertools.product(*map(range, kernel)):
        total += full[_slices(at, stride, ones, out)]
    by = _divisors(x.shape[2:], kernel, stride, padding, out, count_padding, divisor, total.dtype)
    if total.dtype.kind in "iu":
        quotient = np.abs(total) // np.abs(by)
        return (np.sign(total) * quotient * np.sign(by)).astype(x.dtype)
    return (total / by).astype(x.dtype)


def _avg_pool_back(g, *, size, kernel, stride, padding, out, count_padding, divisor):
    ones = (1,) * len(out)
    wide = g.astype(np.float32) if g.dtype.itemsize < 4 else g
    wide = wide / _divisors(size, kernel, stride, padding, out, count_padding, divisor, wide.dtype)
    full = _extended(np.zeros(g.shape[:2] + size, wide.dtype), kernel, stride, padding, ones, out, 0)
    for at in itertools.product(*map(range, kernel)):
        full[_slices(at, stride, ones, out)] += wide
    inside = full[(slice(None), slice(None)) + tuple([slice(p, p + n) for n, p in zip(size, padding)])]
    return np.ascontiguousarray(inside).astype(g.dtype, copy=False)


def _avg_guard(x, *, kernel, stride, padding, out, count_padding, divisor):
    if x.ndim != 4 or x.size == 0 or any(padding) or divisor:
        return False
    return all((o - 1) * s + k <= n for n, k, s, o in zip(x.shape[2:], kernel, stride, out))


avg_pool = Primitive(
    "avg_pool", host=_avg_pool, uses_output=False, guard=_avg_guard,
    mindspore=lambda *, kernel, stride, **rest: primitive("AvgPool", kernel, stride, "valid"),
    vjp=[lambda g, result, x, **a: avg_pool_back(g, size=x.shape[2:], **a)])
avg_pool_back = Primitive(
    "avg_pool_back", host=_avg_pool_back, uses_output=False, vjp=[lambda h, result, g, *, size, **a: avg_pool(h, **a)])
