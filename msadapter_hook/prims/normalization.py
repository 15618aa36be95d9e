"""Normalization: by batch, and over the last axis of rows (which layer, group and instance norm come down to)."""

import math
from functools import lru_cache

import numpy as np

from msadapter_hook.backend import mindspore, primitive
from msadapter_hook.tape import Primitive

from .movement import broadcast_to, reshape
from .pointwise import rsqrt, square
from .reduction import mean
from .reduction import sum as reduce_sum

__all__ = ["batch_norm", "fixed_norm", "group_norm", "row_norm"]


def _spread(v, x):
    """A Value (C,) as (1, C, 1, …) against x."""
    return reshape(v, shape=(1, v.shape[0]) + (1,) * (x.ndim - 2))


def _others(x):
    return tuple([i for i in range(x.ndim) if i != 1])


def _count(x):
    return max(x.size // max(x.shape[1], 1), 1)


def _batch_statistics(x):
    flat = x.reshape(x.shape[0], x.shape[1], math.prod(x.shape[2:]))
    count = flat.shape[0] * flat.shape[2]
    middle = np.add.reduce(np.add.reduce(flat, 2), 0) / x.dtype.type(count)
    centred = flat - middle[:, None]
    return middle, centred, np.add.reduce(np.add.reduce(centred * centred, 2), 0) / x.dtype.type(count)


def _batch_norm(x, w, b, *, eps):
    middle, centred, spread = _batch_statistics(x)
    scale = (w / np.sqrt(spread + x.dtype.type(eps))).astype(x.dtype, copy=False)
    centred *= scale[:, None]
    centred += b[:, None]
    return centred.reshape(x.shape), middle, spread


@lru_cache(maxsize=256)
def _discarded(channels):
    # MindSpore's kernel updates moving statistics in place; ours are kept outside of the tape
    return tuple([mindspore.Tensor(np.zeros(channels, np.float32)) for _ in range(2)])


def _mindspore_batch_norm(*, eps):
    kernel = primitive("BatchNorm", True, eps, 0.1)

    def run(x, w, b):
        y, _, _, middle, spread = kernel(x, w, b, *_discarded(w.shape[0]))
        return y, middle, spread

    return run


def _batch_norm_vjp(grads, outs, needs, x, w, b, *, eps):
    g, axes, shape = grads[0], _others(x), x.shape
    middle = mean(x, axes=axes, keepdims=True)
    centred = x - broadcast_to(middle, shape=shape)
    inverse = rsqrt(mean(square(centred), axes=axes, keepdims=True) + eps)
    unit = centred * broadcast_to(inverse, shape=shape)
    result = [None] * 3
    if needs[0]:
        result[0] = _through(g * broadcast_to(_spread(w, x), shape=shape), unit, inverse, axes)
    if needs[1]:
        result[1] = reduce_sum(g * unit, axes=axes, keepdims=False)
    if needs[2]:
        result[2] = reduce_sum(g, axes=axes, keepdims=False)
    return result


def _through(g, unit, inverse, axes):
    """The cotangent of what was normalized to `unit` over `axes`."""
    shape = g.shape
    level = broadcast_to(mean(g, axes=axes, keepdims=True), shape=shape)
    slope = broadcast_to(mean(g * unit, axes=axes, keepdims=True), shape=shape)
    return (g - level - unit * slope) * broadcast_to(inverse, shape=shape)


batch_norm = Primitive(  # (N, C, …) by the statistics of each channel; also gives the mean and the biased variance
    "batch_norm", host=_batch_norm, mindspore=_mindspore_batch_norm, joint_vjp=_batch_norm_vjp, outputs=3, uses_output=False,
    guard=lambda x, w, b, *, eps: x.ndim in (2, 4) and x.size > 0)


def _fixed_norm(x, w, b, middle, spread, *, eps):
    shape = (1, -1) + (1,) * (x.ndim - 2)
    scale = w / np.sqrt(spread + x.dtype.type(eps))
    return x * scale.reshape(shape) + (b - middle * scale).reshape(shape)


def _fixed_norm_vjp(grads, outs, needs, x, w, b, middle, spread, *, eps):
    g, axes, shape = grads[0], _others(x), x.shape
    inverse = rsqrt(spread + eps)
    result = [None] * 5
    if needs[0]:
        result[0] = g * broadcast_to(_spread(w * inverse, x), shape=shape)
    if needs[1]:
        result[1] = reduce_sum(g * (x - broadcast_to(_spread(middle, x), shape=shape)), axes=axes, keepdims=False) * inverse
    if needs[2]:
        result[2] = reduce_sum(g, axes=axes, keepdims=False)
    return result


def _mindspore_fixed_norm(*, eps):
    inverse, mul, add, sub, shape = map(primitive, ("Rsqrt", "Mul", "Add", "Sub", "Reshape"))

    def run(x, w, b, middle, spread):
        scale = mul(w, inverse(add(spread, eps)))
        around = (1, -1) + (1,) * (len(x.shape) - 2)
        return add(mul(x, shape(scale, around)), shape(sub(b, mul(middle, scale)), around))

    return run


fixed_norm = Primitive(  # (N, C, …) by a given mean and variance of each channel, which carry no gradient: for host kernels
    "fixed_norm", host=_fixed_norm, mindspore=_mindspore_fixed_norm, joint_vjp=_fixed_norm_vjp, uses_output=False)


def _group_rows(x, groups):
    return x.shape[0] * groups, x.size // max(x.shape[0] * groups, 1)


def _group_norm(x, w, b, *, groups, eps):
    rows, shape = x.reshape(_group_rows(x, groups)), (1, -1) + (1,) * (x.ndim - 2)
    centred = rows - rows.mean(1, keepdims=True)
    unit = centred / np.sqrt((centred * centred).mean(1, keepdims=True) + x.dtype.type(eps))
    return unit.reshape(x.shape) * w.reshape(shape) + b.reshape(shape)


def _group_norm_vjp(grads, outs, needs, x, w, b, *, groups, eps):
    g, axes, shape, wide = grads[0], _others(x), x.shape, _group_rows(x, groups)
    rows = reshape(x, shape=wide)
    centred = rows - broadcast_to(mean(rows, axes=(1,), keepdims=True), shape=wide)
    inverse = rsqrt(mean(square(centred), axes=(1,), keepdims=True) + eps)
    unit = centred * broadcast_to(inverse, shape=wide)
    result = [None] * 3
    if needs[0]:
        through = reshape(g * broadcast_to(_spread(w, x), shape=shape), shape=wide)
        result[0] = reshape(_through(through, unit, inverse, (1,)), shape=shape)
    if needs[1]:
        result[1] = reduce_sum(g * reshape(unit, shape=shape), axes=axes, keepdims=False)
    if needs[2]:
        result[2] = reduce_sum(g, axes=axes, keepdims=False)
    return result


group_norm = Primitive(  # (N, C, …) by the statistics of groups of channels: for host kernels
    "group_norm", host=_group_norm, joint_vjp=_group_norm_vjp, uses_output=False)


def _row_norm(x, w, b, *, eps):
    n = x.dtype.type(max(x.shape[-1], 1))
    made = x - np.add.reduce(x, -1, keepdims=True) / n
    spread = np.add.reduce(made * made, -1, keepdims=True) / n
    made /= np.sqrt(spread + x.dtype.type(eps))
    made *= w
    made += b
    return made


def _row_norm_vjp(grads, outs, needs, x, w, b, *, eps):
    g, shape, last, others = grads[0], x.shape, (x.ndim - 1,), tuple(range(x.ndim - 1))
    centred = x - broadcast_to(mean(x, axes=last, keepdims=True), shape=shape)
    inverse = rsqrt(mean(square(centred), axes=last, keepdims=True) + eps)
    unit = centred * broadcast_to(inverse, shape=shape)
    result = [None] * 3
    if needs[0]:
        result[0] = _through(g * broadcast_to(w, shape=shape), unit, inverse, last)
    if needs[1]:
        result[1] = reduce_sum(g * unit, axes=others, keepdims=False)
    if needs[2]:
        result[2] = reduce_sum(g, axes=others, keepdims=False)
    return result


def _mindspore_row_norm(*, eps):
    kernel = primitive("LayerNorm", 1, 1, eps)
    return lambda x, w, b: kernel(x, w, b)[0]


row_norm = Primitive(  # rows (…, D) to mean 0 and variance 1, times w (D,), plus b (D,)
    "row_norm", host=_row_norm, mindspore=_mindspore_row_norm, joint_vjp=_row_norm_vjp, uses_output=False,
    guard=lambda x, w, b, *, eps: x.size > 0 and x.ndim == 2)
