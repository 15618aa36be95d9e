"""Reductions and scans. `axes` is a tuple of non-negative axes; `keepdims` keeps them with length 1."""

import numpy as np
import scipy.special as sp

from msadapter_hook.backend import primitive
from msadapter_hook.tape import Primitive, constant
from msadapter_hook.tape.primitive import FLOATS

from .movement import broadcast_to, flip, reshape, zeros_like
from .pointwise import conj_of, equal, exp, where

__all__ = ["amax", "amin", "cumsum", "log_softmax", "logsumexp", "mean", "prod", "softmax", "sum"]


def kept_shape(shape, axes):
    """`shape` with the reduced axes as length 1."""
    return tuple([1 if i in axes else n for i, n in enumerate(shape)])


def spread(g, a, axes, keepdims):
    """The value of a reduction over `axes` of `a`, broadcast back to the shape of `a`."""
    if not keepdims:
        g = reshape(g, shape=kept_shape(a.shape, axes))
    return broadcast_to(g, shape=a.shape)


def _wide(a):
    return a.dtype if a.dtype.itemsize >= 4 or a.dtype.kind not in "fV" else np.dtype(np.float32)


def _sum(a, *, axes, keepdims):
    return np.add.reduce(a, axis=axes, keepdims=keepdims, dtype=_wide(a)).astype(a.dtype, copy=False)


def _reduce_guard(a, *, axes, keepdims):
    return a.size > 0 and a.ndim > 0


sum = Primitive(
    "sum", host=_sum,
    mindspore=lambda *, axes, keepdims: (lambda a, _p=primitive("ReduceSum", keepdims): _p(a, axes)),
    vjp=[lambda g, out, a, *, axes, keepdims: spread(g, a, axes, keepdims)], uses_output=False, dtypes=FLOATS,
    guard=_reduce_guard,
)


def _count(a, axes):
    n = 1
    for i in axes:
        n *= a.shape[i]
    return n


def _mean(a, *, axes, keepdims):
    return np.mean(a, axis=axes, keepdims=keepdims, dtype=_wide(a)).astype(a.dtype, copy=False) if a.size else _sum(
        a, axes=axes, keepdims=keepdims) / np.asarray(_count(a, axes)).astype(a.dtype)


mean = Primitive(
    "mean", host=_mean,
    mindspore=lambda *, axes, keepdims: (lambda a, _p=primitive("ReduceMean", keepdims): _p(a, axes)),
    vjp=[lambda g, out, a, *, axes, keepdims: spread(g / max(_count(a, axes), 1), a, axes, keepdims)], uses_output=False,
    dtypes=FLOATS, guard=_reduce_guard,
)


def _extreme_vjp(g, out, a, *, axes, keepdims):
    hit = equal(a, spread(out, a, axes, keepdims))
    mask = where(hit, constant(1, a.dtype), constant(0, a.dtype))
    return spread(g, a, axes, keepdims) * mask / spread(sum(mask, axes=axes, keepdims=keepdims), a, axes, keepdims)


amax = Primitive("amax", host=lambda a, *, axes, keepdims: np.max(a, axis=axes, keepdims=keepdims), vjp=[_extreme_vjp])
amin = Primitive("amin", host=lambda a, *, axes, keepdims: np.min(a, axis=axes, keepdims=keepdims), vjp=[_extreme_vjp])


def _cumsum_vjp(g, out, a, *, axis):
    return flip(cumsum(flip(g, axes=(axis,)), axis=axis), axes=(axis,))


cumsum = Primitive("cumsum", host=lambda a, *, axis: np.cumsum(a, axis, dtype=a.dtype), vjp=[_cumsum_vjp], uses_output=False)


def _prod_vjp(g, out, a, *, axes, keepdims):
    """Products of all the others: exclusive products from the left and from the right, so that zeros are exact."""
    rest = [i for i in range(a.ndim) if i not in axes]
    from .movement import transpose

    order = tuple(rest) + tuple(axes)
    moved = transpose(a, axes=order)
    kept = tuple([a.shape[i] for i in rest])
    flat = reshape(moved, shape=kept + (_count(a, axes),))
    others = exclusive_product(flat)
    back = reshape(others, shape=moved.shape)
    inverse = tuple([order.index(i) for i in range(a.ndim)])
    return spread(g, a, axes, keepdims) * conj_of(transpose(back, axes=inverse))


def exclusive_product(a):
    """For each element along the last axis the product of all the others."""
    from .movement import concat, strided_slice

    n = a.shape[-1]
    if n == 0:
        return zeros_like(a)
    lead = a.shape[:-1]

    def part(v, start, stop):
        return strided_slice(v, start=(0,) * len(lead) + (start,), stop=lead + (stop,), step=(1,) * a.ndim)

    one = zeros_like(part(a, 0, 1)) + 1
    left, right = [one], [one]
    for i in range(n - 1):
        left.append(left[-1] * part(a, i, i + 1))
        right.append(right[-1] * part(a, n - 1 - i, n - i))
    axis = a.ndim - 1
    if n == 1:
        return one
    return concat(*left, axis=axis) * concat(*right[::-1], axis=axis)


prod = Primitive(
    "prod", host=lambda a, *, axes, keepdims: np.multiply.reduce(a, axis=axes, keepdims=keepdims, dtype=a.dtype),
    vjp=[_prod_vjp], uses_output=False)


def _halved(kernel):
    def run(a, **attributes):
        if a.dtype.itemsize < 4:
            return kernel(a.astype(np.float32), **attributes).astype(a.dtype)
        return kernel(a, **attributes)

    return run


def _softmax(a, *, axis):
    if a.size == 0:
        return a.copy()
    e = np.exp(a - np.max(a, axis=axis, keepdims=True))
    e /= np.add.reduce(e, axis=axis, keepdims=True)
    return e


def _log_softmax(a, *, axis):
    if a.size == 0:
        return a.copy()
    shifted = a - np.max(a, axis=axis, keepdims=True)
    return shifted - np.log(np.add.reduce(np.exp(shifted), axis=axis, keepdims=True))


def _softmax_guard(a, *, axis):
    return a.size > 0 and a.ndim > 0


def _softmax_vjp(g, out, a, *, axis):
    weighted = g * out
    return weighted - out * broadcast_to(sum(weighted, axes=(axis,), keepdims=True), shape=a.shape)


def _log_softmax_vjp(g, out, a, *, axis):
    return g - exp(out) * broadcast_to(sum(g, axes=(axis,), keepdims=True), shape=a.shape)


softmax = Primitive("softmax", host=_halved(_softmax), mindspore=lambda *, axis: primitive("Softmax", axis), vjp=[_softmax_vjp],
                    guard=_softmax_guard)
log_softmax = Primitive("log_softmax", host=_halved(_log_softmax), mindspore=lambda *, axis: primitive("LogSoftmax", axis),
                        vjp=[_log_softmax_vjp], guard=_softmax_guard)
logsumexp = Primitive(
    "logsumexp",
    host=_halved(lambda a, *, axes, keepdims: sp.logsumexp(a, axis=axes, keepdims=keepdims) if a.size
                 else np.log(_sum(a, axes=axes, keepdims=keepdims))),
    vjp=[lambda g, out, a, *, axes, keepdims: spread(g, a, axes, keepdims)
         * conj_of(exp(a - spread(out, a, axes, keepdims)))])
