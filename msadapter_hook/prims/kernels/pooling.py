"""Pooling of images by oneDNN, which remembers where the largest elements were."""

from threading import Lock

import numpy as np

from msadapter_hook.backend import onednn
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


class Pool:
    """One shape (N, C, …) of images, whose arrays have their channels last, and one kind of window."""

    def __init__(self, formula, shape, kernel, stride, padding, dilation, out):
        reach = [(o - 1) * s + d * (k - 1) + 1 - n - p
                 for n, k, s, p, d, o in zip(shape[2:], kernel, stride, padding, dilation, out)]
        self._shape, self._out = (shape[0], *shape[2:], shape[1]), (shape[0], *out, shape[1])
        source, target = onednn.channels_last(shape), onednn.channels_last((*shape[:2], *out))
        window = (numbers(*stride), numbers(*kernel), numbers(*[d - 1 for d in dilation]), numbers(*padding), numbers(*reach))
        forward = Description("pooling_forward", TRAINING, formula, source, target, *window)
        backward = Description("pooling_backward", formula, source, target, *window, forward)
        self._places = forward.layout("workspace") if formula == MAX_POOLING else None
        places = [(WORKSPACE, self._places)] if self._places else []
        self._forward = Operation(forward, [(SOURCE, source), (TARGET, target), *places])
        self._backward = Operation(backward, [(gradient(TARGET), target), (gradient(SOURCE), source), *places])
        self._lock = Lock()

    def forward(self, x):
        """The pooled images, and the places of the largest elements (None for means)."""
        y, places = np.empty(self._out, np.float32), onednn.room(self._places) if self._places else None
        with self._lock:
            self._forward(x, y, *(() if places is None else (places,)))
        return y, places

    def backward(self, g, places):
        """The gradient of the images."""
        dx = np.empty(self._shape, np.float32)
        with self._lock:
            self._backward(g, dx, *(() if places is None else (places,)))
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
        y, _ = made.forward(as_channels_last(x))
        yield as_channels_second(y), pooling.avg_pool.host(x, **counted)
        g = rng.standard_normal((2, 3, 4, 4), np.float32)
        back = pooling.avg_pool_back.host(g, size=x.shape[2:], **counted)
        yield as_channels_second(made.backward(as_channels_last(g), None)), back


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
    return as_channels_second(made.forward(as_channels_last(x))[0]), (made, None)


def _back(kept, grads, needs, x, **attributes):
    made, places = kept
    return [as_channels_second(made.backward(as_channels_last(grads[0]), places))]


KERNELS = {
    pooling.max_pool: Kernel(_maximum, _back),
    pooling.avg_pool: Kernel(_mean, _back),
}
