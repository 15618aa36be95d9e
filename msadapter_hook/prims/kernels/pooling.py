"""Pooling of images by oneDNN, which remembers where the largest elements were."""

import math
from functools import partial
from threading import Lock

import numpy as np

from msadapter_hook.backend import onednn, threads
from msadapter_hook.backend.onednn import (
    MAX_POOLING,
    MEAN_POOLING,
    MEAN_POOLING_OF_ALL,
    SOURCE,
    TARGET,
    TRAINING,
    WORKSPACE,
    Description,
    Operation,
    gradient,
    numbers,
)
from msadapter_hook.tape.kernel import Kernel

from .. import pooling
from .layout import as_channels_last, as_channels_second, is_finite
from .trust import Family

_HALVES = 1 << 17  # elements of the images from which on a second processor pays


class Pool:
    """One shape (N, C, …) of images, whose arrays have their channels last, and one kind of window."""

    def __init__(self, formula, shape, kernel, stride, padding, dilation, out):
        reach = [(o - 1) * s + d * (k - 1) + 1 - n - p
                 for n, k, s, p, d, o in zip(shape[2:], kernel, stride, padding, dilation, out)]
        images = shape[0]
        self._shape, self._out = (images, *shape[2:], shape[1]), (images, *out, shape[1])
        halves = images > 1 and math.prod(shape) >= _HALVES
        window = (numbers(*stride), numbers(*kernel), numbers(*[d - 1 for d in dilation]), numbers(*padding), numbers(*reach))
        self._parts, start = [], 0
        for n in [images - images // 2, images // 2] if halves else [images]:
            source, target = onednn.channels_last((n, *shape[1:])), onednn.channels_last((n, shape[1], *out))
            forward = Description("pooling_forward", TRAINING, formula, source, target, *window)
            backward = Description("pooling_backward", formula, source, target, *window, forward)
            places = forward.layout("workspace") if formula == MAX_POOLING else None
            remembered = [(WORKSPACE, places)] if places else []
            self._parts.append((slice(start, start + n), places, Operation(forward, [(SOURCE, source), (TARGET, target), *remembered]),
                                Operation(backward, [(gradient(TARGET), target), (gradient(SOURCE), source), *remembered])))
            start += n
        self._lock = Lock()

    def forward(self, x):
        """The pooled images, and the places of the largest elements (empty for means)."""
        y = np.empty(self._out, np.float32)
        places = [[onednn.room(places)] if places else [] for _, places, _, _ in self._parts]
        with self._lock:
            threads.each([partial(run, x[at], y[at], *p) for (at, _, run, _), p in zip(self._parts, places)])
        return y, places

    def backward(self, g, places):
        """The gradient of the images."""
        dx = np.empty(self._shape, np.float32)
        with self._lock:
            threads.each([partial(run, g[at], dx[at], *p) for (at, _, _, run), p in zip(self._parts, places)])
        return dx


def _check_max():
    rng = np.random.default_rng(0)
    x = np.round(rng.standard_normal((2, 3, 7, 8), np.float32))  # with ties
    for window in ((3, 2), (2, 2), (1, 0), (1, 1)), ((2, 2), (2, 2), (0, 0), (1, 1)):
        attributes = dict(zip(("kernel", "stride", "padding", "dilation"), window))
        attributes["out"] = tuple([(n + 2 * p - k) // s + 1 for n, k, s, p, _ in zip(x.shape[2:], *window)])
        made = Pool(MAX_POOLING, x.shape, *attributes.values())
        y, places = made.forward(as_channels_last(x))
        yield as_channels_second(y), pooling.max_pool.host(x, **attributes)
        g = rng.standard_normal(as_channels_second(y).shape, np.float32)
        index = pooling.max_pool_index.host(x, **attributes)
        flat = pooling.places_add.host(g.reshape(2, 3, -1), index.reshape(2, 3, -1), size=56)
        yield as_channels_second(made.backward(as_channels_last(g), places)), flat.reshape(x.shape)


def _check_mean():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 7, 8), np.float32)
    for formula in (MEAN_POOLING, MEAN_POOLING_OF_ALL):
        attributes = {"kernel": (3, 2), "stride": (2, 2), "padding": (1, 0), "out": (4, 4)}
        counted = {**attributes, "count_padding": formula == MEAN_POOLING_OF_ALL, "divisor": None}
        made = Pool(formula, x.shape, *[attributes[k] for k in ("kernel", "stride", "padding")], (1, 1), (4, 4))
        y, places = made.forward(as_channels_last(x))
        yield as_channels_second(y), pooling.avg_pool.host(x, **counted)
        g = rng.standard_normal((2, 3, 4, 4), np.float32)
        back = pooling.avg_pool_back.host(g, size=x.shape[2:], **counted)
        yield as_channels_second(made.backward(as_channels_last(g), places)), back


_max_operation = Family("max pooling", _check_max).operation(Pool)
_mean_operation = Family("average pooling", _check_mean).operation(Pool)


def _fits(x, kernel, stride, padding, out):
    """Whether every window has a part in the image that oneDNN accepts."""
    return x.ndim in (4, 5) and x.size > 0 and all(
        p < k and (o - 1) * s < n + p for n, k, s, p, o in zip(x.shape[2:], kernel, stride, padding, out))


def _maximum(keep, x, *, kernel, stride, padding, dilation, out):
    if not _fits(x, kernel, stride, padding, out):
        return None
    made = _max_operation(MAX_POOLING, x.shape, kernel, stride, padding, dilation, out)
    if made is None or not is_finite(x):  # oneDNN loses NaN and minus infinity
        return None
    y, places = made.forward(as_channels_last(x))
    return as_channels_second(y), (made, places)


def _mean(keep, x, *, kernel, stride, padding, out, count_padding, divisor):
    if divisor or not _fits(x, kernel, stride, padding, out):
        return None
    if any((o - 1) * s + k > n + 2 * p for n, k, s, p, o in zip(x.shape[2:], kernel, stride, padding, out)):
        return None  # what a window reaches beyond the padding is not counted
    formula = MEAN_POOLING_OF_ALL if count_padding else MEAN_POOLING
    made = _mean_operation(formula, x.shape, kernel, stride, padding, (1,) * len(kernel), out)
    if made is None:
        return None
    y, places = made.forward(as_channels_last(x))
    return as_channels_second(y), (made, places)


def _back(kept, grads, needs, x, **attributes):
    made, places = kept
    return [as_channels_second(made.backward(as_channels_last(grads[0]), places))]


KERNELS = {
    pooling.max_pool: Kernel(_maximum, _back),
    pooling.avg_pool: Kernel(_mean, _back),
}
