"""Convolution over any number of axes: the product itself and its two gradients, each the gradient of the others.

x (N, C, …), w (O, C/groups, …), y (N, O, …). Attributes are tuples with one number per spatial axis; padding is
symmetric.
"""

import itertools
import math

import numpy as np

from msadapter_hook.backend import primitive
from msadapter_hook.tape import Primitive

from .linear import bias_add, bias_gradient
from .movement import strided_slice
from .pointwise import conj_of

__all__ = ["conv", "conv_input", "conv_weight", "convolve"]

_CHUNK = 1 << 21  # elements of unfolded windows at a time: they stay in the cache


def _computing(kernel):
    """Half precision computes in float32; booleans and integers in int64."""

    def run(a, b, **attributes):
        if a.dtype.itemsize < 4 and a.dtype.kind in "fV":
            return kernel(a.astype(np.float32), b.astype(np.float32), **attributes).astype(a.dtype)
        return kernel(a, b, **attributes)

    return run


def out_size(size, kernel, stride, padding, dilation):
    """Spatial shape of the result of a convolution."""
    return tuple([(n + 2 * p - d * (k - 1) - 1) // s + 1
                  for n, k, s, p, d in zip(size, kernel, stride, padding, dilation)])


def _padded(x, padding):
    if not any(padding):
        return x
    out = np.zeros(x.shape[:2] + tuple([n + 2 * p for n, p in zip(x.shape[2:], padding)]), x.dtype)
    out[(slice(None), slice(None)) + tuple([slice(p, p + n) for n, p in zip(x.shape[2:], padding)])] = x
    return out


def _windows(x, kernel, out, stride, dilation):
    """A view (N, C, *kernel, *out) of a padded array: element [n, c, k, o] is x[n, c, o * stride + k * dilation]."""
    steps = x.strides[2:]
    strides = x.strides[:2] + tuple([s * d for s, d in zip(steps, dilation)]) + tuple([s * t for s, t in zip(steps, stride)])
    return np.lib.stride_tricks.as_strided(x, x.shape[:2] + tuple(kernel) + tuple(out), strides, writeable=False)


def _chunks(n, each):
    size = max(1, _CHUNK // max(each, 1))
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def _places(kernel, out, stride, dilation):
    """For each position of the kernel the index of the padded input that its products touch."""
    for at in itertools.product(*map(range, kernel)):
        yield at, tuple([slice(k * d, k * d + (o - 1) * s + 1, s) for k, d, o, s in zip(at, dilation, out, stride)])


def _conv(x, w, *, stride, padding, dilation, groups):
    n, c = x.shape[:2]
    o, kernel = w.shape[0], w.shape[2:]
    out = out_size(x.shape[2:], kernel, stride, padding, dilation)
    positions, depth = math.prod(out), w.shape[1] * math.prod(kernel)
    x = _padded(x, padding)
    y = np.zeros((n, o) + out, x.dtype)
    if 0 in y.shape or depth == 0:
        return y
    if w.shape[1] == 1 and groups == c and o == c:  # each channel by itself
        tail = (1,) * len(out)
        for at, place in _places(kernel, out, stride, dilation):
            y += x[(slice(None), slice(None)) + place] * w[(slice(None), 0) + at].reshape((1, c) + tail)
        return y
    weights = w.reshape(groups, o // groups, depth)
    windows = _windows(x, kernel, out, stride, dilation)
    for part in _chunks(n, c * math.prod(kernel) * positions):
        columns = windows[part].reshape(-1, groups, depth, positions)
        y[part] = np.matmul(weights, columns).reshape((-1, o) + out)
    return y


def _conv_input(g, w, *, size, stride, padding, dilation, groups):
    n, o = g.shape[:2]
    kernel, out = w.shape[2:], g.shape[2:]
    c = w.shape[1] * groups
    positions = math.prod(out)
    padded = tuple([s + 2 * p for s, p in zip(size, padding)])
    x = np.zeros((n, c) + padded, g.dtype)
    if g.size and w.size:
        weights = w.reshape(groups, o // groups, -1).swapaxes(1, 2)
        for part in _chunks(n, c * math.prod(kernel) * positions):
            columns = np.matmul(weights, g[part].reshape(-1, groups, o // groups, positions))
            columns = columns.reshape((-1, c) + kernel + out)
            target = x[part]
            for at, place in _places(kernel, out, stride, dilation):
                target[(slice(None), slice(None)) + place] += columns[(slice(None), slice(None)) + at]
    if any(padding):
        x = np.ascontiguousarray(x[(slice(None), slice(None)) + tuple([slice(p, p + s) for s, p in zip(size, padding)])])
    return x


def _conv_weight(x, g, *, kernel, stride, padding, dilation, groups):
    n, c = x.shape[:2]
    o, out = g.shape[1], g.shape[2:]
    positions = math.prod(out)
    depth = c // groups * math.prod(kernel)
    w = np.zeros((groups, o // groups, depth), x.dtype)
    if g.size and x.size:
        windows = _windows(_padded(x, padding), kernel, out, stride, dilation)
        for part in _chunks(n, c * math.prod(kernel) * positions):
            columns = windows[part].reshape(-1, groups, depth, positions)
            rows = g[part].reshape(-1, groups, o // groups, positions)
            w += np.matmul(rows, columns.swapaxes(2, 3)).sum(0)
    return w.reshape((o, c // groups) + tuple(kernel))


def _attributes(stride, padding, dilation, groups):
    pad = (padding[0], padding[0], padding[1], padding[1])
    return {"pad_mode": "pad", "pad": pad, "stride": stride, "dilation": dilation, "group": groups}


def _mindspore_conv(*, stride, padding, dilation, groups):
    attributes = _attributes(stride, padding, dilation, groups)
    return lambda x, w: primitive("Conv2D", w.shape[0], tuple(w.shape[2:]), **attributes)(x, w)


def _mindspore_conv_input(*, size, stride, padding, dilation, groups):
    attributes = _attributes(stride, padding, dilation, groups)

    def run(g, w):
        shape = (g.shape[0], w.shape[1] * groups, *size)
        return primitive("Conv2DBackpropInput", w.shape[0], tuple(w.shape[2:]), **attributes)(g, w, shape)

    return run


def _guard(x, w, **attributes):
    return x.ndim == 4 and x.size > 0 and w.size > 0


def _guard_input(g, w, *, size, stride, padding, dilation, groups):
    return _guard(g, w) and out_size(size, w.shape[2:], stride, padding, dilation) == g.shape[2:]


def _conv_like(h, w, g, **attributes):
    """The convolution of h, cut to the shape of g where h is longer (an output padding beyond the stride)."""
    y = conv(h, w, **attributes)
    if y.shape == g.shape:
        return y
    return strided_slice(y, start=(0,) * g.ndim, stop=g.shape, step=(1,) * g.ndim)


conv = Primitive(
    "conv", host=_computing(_conv), mindspore=_mindspore_conv, guard=_guard, uses_output=False,
    vjp=[lambda g, out, x, w, *b, **a: conv_input(g, conj_of(w), size=x.shape[2:], **a),
         lambda g, out, x, w, *b, **a: conv_weight(conj_of(x), g, kernel=w.shape[2:], **a)])
def _mindspore_conv_bias(**attributes):
    product, add = _mindspore_conv(**attributes), primitive("BiasAdd")
    return lambda x, w, b: add(product(x, w), b)


conv_bias = Primitive(  # conv and a bias (O,) in one
    "conv_bias", host=lambda x, w, b, **a: bias_add.host(conv.host(x, w, **a), b), mindspore=_mindspore_conv_bias,
    guard=lambda x, w, b, **a: _guard(x, w), uses_output=False,
    vjp=[*conv.vjp, bias_gradient])
conv_input = Primitive(  # from (N, O, …) and the weight back to (N, C, *size): also the transposed convolution
    "conv_input", host=_computing(_conv_input), mindspore=_mindspore_conv_input, guard=_guard_input, uses_output=False,
    vjp=[lambda h, out, g, w, *, size, **a: _conv_like(h, conj_of(w), g, **a),
         lambda h, out, g, w, *, size, **a: conv_weight(h, conj_of(g), kernel=w.shape[2:], **a)])
conv_weight = Primitive(
    "conv_weight", host=_computing(_conv_weight), uses_output=False,
    vjp=[lambda h, out, x, g, *, kernel, **a: conv_input(conj_of(g), h, size=x.shape[2:], **a),
         lambda h, out, x, g, *, kernel, **a: _conv_like(conj_of(x), h, g, **a)])


def convolve(x, w, b, **attributes):
    """conv and a bias (O,) or None, in one node."""
    return conv(x, w, **attributes) if b is None else conv_bias(x, w, b, **attributes)
