"""Batch and layer norm by oneDNN, group norm by NumPy."""

import math
from functools import partial
from threading import Lock

import numpy as np

from msadapter_hook.backend import onednn, threads
from msadapter_hook.backend.onednn import (
    BACKWARD,
    MEAN,
    SCALE,
    SHIFT,
    SOURCE,
    TARGET,
    TRAINING,
    USE_SCALE,
    USE_SHIFT,
    USE_STATISTICS,
    VARIANCE,
    Description,
    Operation,
    gradient,
)
from msadapter_hook.tape.kernel import Kernel

from .. import normalization
from .layout import as_channels_last, as_channels_second, to_last, to_second
from .linear import FLOATS
from .trust import Family

_AFFINE = USE_SCALE | USE_SHIFT
_HALVES = 1 << 17  # elements from which on a second processor pays
_WIDEST = 8192  # channels times width up to which statistics are taken by column


class BatchNorm:
    """One shape (N, C, height, width) and eps. Arrays of images have their channels last.

    Plain sums over a channel lose digits (3e-6 for 32,000 numbers). So mean and variance are taken of every channel and column,
    and put together in float64; normalizing is a second operation.
    """

    def __init__(self, shape, eps):
        images, channels, height, width = shape
        if channels * width > _WIDEST:
            height, width = height * width, 1
        self._columns, self._channels, self._lock = width, channels, Lock()
        number, vector = onednn.number(eps), onednn.layout((channels,))
        wide, wide_vector = onednn.channels_last((images, channels * width, height, 1)), onednn.layout((channels * width,))
        flat = onednn.channels_last((images, channels, height, width))
        statistics = Description("batch_normalization_forward", TRAINING, wide, wide, number, 0)
        forward = Description("batch_normalization_forward", TRAINING, flat, flat, number, USE_STATISTICS | _AFFINE)
        hint = Description("batch_normalization_forward", TRAINING, flat, flat, number, _AFFINE)
        backward = Description("batch_normalization_backward", BACKWARD, flat, flat, flat, number, _AFFINE, hint)
        self._statistics = Operation(statistics, [(SOURCE, wide), (TARGET, wide), (MEAN, wide_vector), (VARIANCE, wide_vector)])
        self._forward = Operation(forward, [(SOURCE, flat), (TARGET, flat), (MEAN, vector), (VARIANCE, vector), (SCALE, vector),
                                            (SHIFT, vector)])
        self._backward = Operation(backward, [
            (SOURCE, flat), (gradient(TARGET), flat), (gradient(SOURCE), flat), (MEAN, vector), (VARIANCE, vector), (SCALE, vector),
            (gradient(SCALE), vector), (gradient(SHIFT), vector)])

    def forward(self, x, w, b):
        """The normalized images, mean and biased variance."""
        y, (means, spreads) = np.empty_like(x), np.empty((2, self._columns, self._channels), np.float32)
        with self._lock:
            self._statistics(x, y, means, spreads)
            exact = np.add.reduce(means, 0, dtype=np.float64) / self._columns
            apart = means - exact
            spread = (np.add.reduce(spreads, 0, dtype=np.float64) + np.add.reduce(apart * apart, 0)) / self._columns
            middle, spread = exact.astype(np.float32), spread.astype(np.float32)
            self._forward(x, y, middle, spread, w, b)
        return y, middle, spread

    def backward(self, x, middle, spread, w, g):
        """Gradients of x, w and b."""
        dx, (dw, db) = np.empty_like(x), np.empty((2, self._channels), np.float32)
        with self._lock:
            self._backward(x, g, dx, middle, spread, w, dw, db)
        return dx, dw, db


class FixedNorm:
    """One shape (N, C, length) and eps; mean and variance are given. Arrays of images have their channels last."""

    def __init__(self, shape, eps):
        self._channels, self._lock = shape[1], Lock()
        number, vector, flat, flags = onednn.number(eps), onednn.layout(shape[1:2]), onednn.channels_last((*shape, 1)), _AFFINE
        flags |= USE_STATISTICS
        forward = Description("batch_normalization_forward", TRAINING, flat, flat, number, flags)
        backward = Description("batch_normalization_backward", BACKWARD, flat, flat, flat, number, flags, forward)
        given = [(MEAN, vector), (VARIANCE, vector), (SCALE, vector)]
        self._forward = Operation(forward, [(SOURCE, flat), (TARGET, flat), *given, (SHIFT, vector)])
        self._backward = Operation(backward, [(SOURCE, flat), (gradient(TARGET), flat), (gradient(SOURCE), flat), *given,
                                              (gradient(SCALE), vector), (gradient(SHIFT), vector)])

    def forward(self, x, w, b, middle, spread):
        """The normalized images."""
        y = np.empty_like(x)
        with self._lock:
            self._forward(x, y, middle, spread, w, b)
        return y

    def backward(self, x, w, middle, spread, g):
        """Gradients of x, w and b."""
        dx, (dw, db) = np.empty_like(x), np.empty((2, self._channels), np.float32)
        with self._lock:
            self._backward(x, g, dx, middle, spread, w, dw, db)
        return dx, dw, db


class LayerNorm:
    """Rows of one shape (R, D) and eps."""

    def __init__(self, shape, eps):
        self._rows, self._width, self._lock = *shape, Lock()
        number, flat, vector, each = onednn.number(eps), onednn.layout(shape), onednn.layout(shape[1:]), onednn.layout(shape[:1])
        forward = Description("layer_normalization_forward", TRAINING, flat, flat, each, number, _AFFINE)
        backward = Description("layer_normalization_backward", BACKWARD, flat, flat, flat, each, number, _AFFINE, forward)
        self._forward = Operation(forward, [(SOURCE, flat), (TARGET, flat), (MEAN, each), (VARIANCE, each), (SCALE, vector),
                                            (SHIFT, vector)])
        self._backward = Operation(backward, [
            (SOURCE, flat), (gradient(TARGET), flat), (gradient(SOURCE), flat), (MEAN, each), (VARIANCE, each), (SCALE, vector),
            (gradient(SCALE), vector), (gradient(SHIFT), vector)])

    def forward(self, x, w, b):
        """The normalized rows, their means and biased variances."""
        y, (means, spreads) = np.empty_like(x), np.empty((2, self._rows), np.float32)
        with self._lock:
            self._forward(x, y, means, spreads, w, b)
        return y, means, spreads

    def backward(self, x, means, spreads, w, g):
        """Gradients of x, w and b."""
        dx, (dw, db) = np.empty_like(x), np.empty((2, self._width), np.float32)
        with self._lock:
            self._backward(x, g, dx, means, spreads, w, dw, db)
        return dx, dw, db


# ------------------------------------------------------------------------------------------------ checks
def _gradients(x, w, g, axes, eps):
    """Gradients of x, w and b of normalizing over `axes`, in float64; w is broadcastable."""
    x, w, g = (a.astype(np.float64) for a in (x, w, g))
    others = tuple(i for i in range(x.ndim) if w.shape[i] == 1)
    centred = x - x.mean(axes, keepdims=True)
    inverse = 1 / np.sqrt((centred * centred).mean(axes, keepdims=True) + eps)
    unit, through = centred * inverse, g * w
    dx = (through - through.mean(axes, keepdims=True) - unit * (through * unit).mean(axes, keepdims=True)) * inverse
    return dx, (g * unit).sum(others), g.sum(others)


def _check_batch():
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((2, 4, 3, 5, 6), np.float32)
    w, b = rng.standard_normal((2, 3), np.float32)
    made = BatchNorm(x.shape, 1e-3)
    xl = as_channels_last(x)
    y, middle, spread = made.forward(xl, w, b)
    yield from zip((as_channels_second(y), middle, spread), normalization.batch_norm.host(x, w, b, eps=1e-3))
    dx, dw, db = made.backward(xl, middle, spread, w, as_channels_last(g))
    yield from zip((as_channels_second(dx), dw, db), _gradients(x, w[:, None, None][None], g, (0, 2, 3), 1e-3))


def _check_fixed():
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((2, 4, 3, 5), np.float32)
    w, b, middle = rng.standard_normal((3, 3), np.float32)
    spread = np.float32([0.5, 1, 2])
    made, xl = FixedNorm(x.shape, 1e-3), as_channels_last(x)
    yield as_channels_second(made.forward(xl, w, b, middle, spread)), normalization.fixed_norm.host(x, w, b, middle, spread, eps=1e-3)
    dx, dw, db = made.backward(xl, w, middle, spread, as_channels_last(g))
    inverse = (1 / np.sqrt(spread + np.float32(1e-3)))[:, None]
    yield as_channels_second(dx), g * w[:, None] * inverse
    yield from ((dw, (g * (x - middle[:, None]) * inverse).sum((0, 2))), (db, g.sum((0, 2))))


def _check_rows():
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((2, 5, 12), np.float32)
    w, b = rng.standard_normal((2, 12), np.float32)
    made = LayerNorm(x.shape, 1e-3)
    y, means, spreads = made.forward(x, w, b)
    yield y, normalization.row_norm.host(x, w, b, eps=1e-3)
    yield from zip(made.backward(x, means, spreads, w, g), _gradients(x, w[None], g, (1,), 1e-3))


_batch_norm = Family("batch norm", _check_batch).operation(BatchNorm)
_fixed_norm = Family("norm by given statistics", _check_fixed).operation(FixedNorm)
_layer_norm = Family("layer norm", _check_rows).operation(LayerNorm)


# ------------------------------------------------------------------------------------------------ kernels
def _batch(second, keep, x, w, b, *, eps):
    if x.size == 0:
        return None
    width = x.shape[-1] if x.ndim > 2 else 1
    made = _batch_norm((x.shape[0], x.shape[1], math.prod(x.shape[2:-1]), width), eps)
    if made is None:
        return None
    last, w = _last(second, x), np.ascontiguousarray(w)
    y, middle, spread = made.forward(last, w, np.ascontiguousarray(b))
    return (_shown(second, y), middle, spread), (made, last, middle, spread)


def _batch_back(second, kept, grads, needs, x, w, b, *, eps):
    if grads[0] is None:  # only mean and variance were used, which carry no gradient
        return [None] * 3
    made, last, middle, spread = kept
    dx, dw, db = made.backward(last, middle, spread, np.ascontiguousarray(w), _last(second, grads[0]))
    return [_shown(second, dx), dw, db]


def _last(second, images):
    """Images (N, C, …) with their channels last; `second`: from the order of their axes in memory."""
    if not second or images.ndim == 2:
        return as_channels_last(images)
    made = np.empty((images.shape[0], *images.shape[2:], images.shape[1]), np.float32)
    to_last(np.ascontiguousarray(images), made)
    return made


def _shown(second, images):
    """(N, …, C) as (N, C, …); `second`: in that order in memory."""
    if not second or images.ndim == 2:
        return as_channels_second(images)
    made = np.empty((images.shape[0], images.shape[-1], *images.shape[1:-1]), np.float32)
    to_second(images, made)
    return made


def _fixed(keep, x, *vectors, eps):
    made = _fixed_norm((x.shape[0], x.shape[1], math.prod(x.shape[2:])), eps) if x.size else None
    if made is None:
        return None
    xl, vectors = as_channels_last(x), [np.ascontiguousarray(v) for v in vectors]
    return as_channels_second(made.forward(xl, *vectors)), (made, xl, vectors)


def _fixed_back(kept, grads, needs, x, *rest, eps):
    made, xl, (w, b, middle, spread) = kept
    dx, dw, db = made.backward(xl, w, middle, spread, as_channels_last(grads[0]))
    return [as_channels_second(dx), dw, db, None, None]


def _rows(keep, x, w, b, *, eps):
    made = _layer_norm((x.size // x.shape[-1], x.shape[-1]), eps) if x.size else None
    if made is None:
        return None
    x = np.ascontiguousarray(x)
    y, means, spreads = made.forward(x, np.ascontiguousarray(w), np.ascontiguousarray(b))
    return y, (made, x, means, spreads)


def _rows_back(kept, grads, needs, x, w, b, *, eps):
    made, x, means, spreads = kept
    return made.backward(x, means, spreads, np.ascontiguousarray(w), np.ascontiguousarray(grads[0]))


# ------------------------------------------------------------------------------------------------ groups of channels
def _images_in_halves(images, elements, job):
    """Call `job` for slices of the images; of many elements for two, side by side."""
    middle = images - images // 2
    cuts = [slice(0, middle), slice(middle, images)] if images > 1 and elements >= _HALVES else [slice(0, images)]
    threads.each([partial(job, cut) for cut in cuts])


def _group(keep, x, w, b, *, groups, eps):
    """Two passes over the elements of a group for its statistics, one for the result; what is normalized is kept."""
    images, channels = x.shape[:2]
    if x.size == 0:
        return None
    unit, inverse = np.empty((images, groups, x.size // (images * groups)), x.dtype), np.empty((images, groups, 1), x.dtype)
    y = np.empty((images, channels, x.size // (images * channels)), x.dtype)
    rows = np.ascontiguousarray(x).reshape(unit.shape)

    def part(at):
        u = np.subtract(rows[at], np.add.reduce(rows[at], 2, keepdims=True) / unit.shape[2], out=unit[at])
        spread = np.einsum("ngw,ngw->ng", u, u)[..., None] / unit.shape[2]
        inverse[at] = 1 / np.sqrt(spread + x.dtype.type(eps))
        u *= inverse[at]
        np.multiply(u.reshape(y[at].shape), w[:, None], out=y[at])
        y[at] += b[:, None]

    _images_in_halves(images, x.size, part)
    return y.reshape(x.shape), (unit, inverse)


def _group_back(kept, grads, needs, x, w, b, *, groups, eps):
    unit, inverse = kept
    images, channels = x.shape[:2]
    g = np.ascontiguousarray(grads[0]).reshape(images, channels, -1)
    dx, (slopes, levels) = np.empty_like(g), np.empty((2, images, channels), x.dtype)

    def part(at):
        u = unit[at].reshape(g[at].shape)
        np.add.reduce(g[at], 2, out=levels[at])
        np.einsum("ncw,ncw->nc", g[at], u, out=slopes[at])
        if needs[0]:
            # the means over a group of g w and of g w times what was normalized
            level, slope = (np.add.reduce((s[at] * w).reshape(-1, groups, channels // groups), 2, keepdims=True) / unit.shape[2]
                            for s in (levels, slopes))
            d = np.multiply(g[at], w[:, None], out=dx[at]).reshape(unit[at].shape)
            d -= unit[at] * slope
            d -= level
            d *= inverse[at]

    _images_in_halves(images, x.size, part)
    return [dx.reshape(x.shape) if needs[0] else None, np.add.reduce(slopes, 0), np.add.reduce(levels, 0)]


KERNELS = {
    normalization.batch_norm: Kernel(partial(_batch, False), partial(_batch_back, False)),
    normalization.group_norm: Kernel(_group, _group_back, dtypes=FLOATS),
    normalization.fixed_norm: Kernel(_fixed, _fixed_back),
}
#: as exact as NumPy: these serve without the switch, too
EXACT = {
    normalization.row_norm: Kernel(_rows, _rows_back),
}
KERNELS = {**EXACT, **KERNELS}
#: for images that lie in the order of their axes, as in MindSpore's tensors
IN_ORDER = {normalization.batch_norm: Kernel(partial(_batch, True), partial(_batch_back, True), reads=(1,))}
