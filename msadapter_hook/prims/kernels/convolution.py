"""Convolutions by oneDNN with the channels innermost in memory, the batch halved between two processors."""

import math
from threading import Lock

import numpy as np

from msadapter_hook.backend import onednn, threads
from msadapter_hook.backend.onednn import BIAS, SOURCE, TARGET, WEIGHTS, Description, Operation, gradient, numbers
from msadapter_hook.tape.kernel import Kernel

from .. import convolution
from .layout import as_channels_last, as_channels_second
from .trust import Family

_SPLIT_AT = 1 << 20  # multiplications below which a second processor does not pay


class Convolution:
    """One shape of x (N, C, …) and w (O, C/groups, …): forward and both gradients. Arrays of images have their channels last."""

    def __init__(self, shape, weight, stride, padding, dilation, groups, bias):
        out = convolution.out_size(shape[2:], weight[2:], stride, padding, dilation)
        images = shape[0]
        self._out = (images, *out, weight[0])
        self._shape = (images, *shape[2:], shape[1])
        self._weight, self._bias, self._lock = weight, bias, Lock()
        multiplications = math.prod(self._out) * math.prod(weight[1:])
        halves = images > 1 and multiplications > _SPLIT_AT
        parts = [images - images // 2, images // 2] if halves else [images]
        self._cuts = [0, *np.cumsum(parts)]
        grouped = weight if groups == 1 else (groups, weight[0] // groups, *weight[1:])
        free, plain = onednn.layout(grouped, "any"), onednn.layout(grouped)
        bias_layout = onednn.layout((weight[0],)) if bias else None
        geometry = (numbers(*stride), numbers(*[d - 1 for d in dilation]), numbers(*padding), numbers(*padding))

        def described(kind, n, *rest):
            source = onednn.channels_last((n, *shape[1:]))
            target = onednn.channels_last((n, weight[0], *out))
            mode = (onednn.TRAINING,) if kind == "forward" else ()
            offset = () if kind == "backward_data" else (bias_layout,)
            description = Description(f"convolution_{kind}", *mode, onednn.DIRECT_CONVOLUTION, source, free, *offset, target,
                                      *geometry, *rest)
            return description, source, target

        self._forward = []
        for n in parts:
            forward, source, target = described("forward", n)
            roles = [(SOURCE, source), (WEIGHTS, forward.layout("weights")), (TARGET, target)]
            self._forward.append(Operation(forward, roles + ([(BIAS, bias_layout)] if bias else [])))
        hint, source, target = described("forward", images)
        data, *_ = described("backward_data", images, hint)
        weights, *_ = described("backward_weights", images, hint)
        self._pack, self._packed = onednn.reorder(plain, forward.layout("weights")), onednn.room(forward.layout("weights"))
        self._pack_back, self._packed_back = onednn.reorder(plain, data.layout("weights")), onednn.room(data.layout("weights"))
        made = weights.layout("weights_gradient")
        self._unpack, self._raw = onednn.reorder(made, plain), onednn.room(made)
        self._data = Operation(data, [(gradient(TARGET), target), (WEIGHTS, data.layout("weights")), (gradient(SOURCE), source)])
        roles = [(SOURCE, source), (gradient(TARGET), target), (gradient(WEIGHTS), made)]
        self._weights = Operation(weights, roles + ([(gradient(BIAS), bias_layout)] if bias else []))

    def forward(self, x, w, b):
        """(N, …, O) from (N, …, C)."""
        y = np.empty(self._out, np.float32)
        rest = (b,) if self._bias else ()
        with self._lock:
            self._pack(w, self._packed)
            halves = [lambda f=f, at=slice(*cut): f(x[at], self._packed, y[at], *rest)
                      for f, cut in zip(self._forward, zip(self._cuts, self._cuts[1:]))]
            if len(halves) == 1:
                halves[0]()
            else:
                threads.side_by_side(*halves)
        return y

    def backward(self, x, w, g, needs):
        """Gradients of x, w and the bias; None for those not needed."""
        dx = np.empty(self._shape, np.float32) if needs[0] else None  # x is not read for it
        dw = np.empty(self._weight, np.float32) if needs[1] or needs[2] else None
        db = np.empty(self._weight[0], np.float32) if self._bias and dw is not None else None

        def images():
            self._pack_back(w, self._packed_back)
            self._data(g, self._packed_back, dx)

        def weights():
            self._weights(x, g, self._raw, *((db,) if self._bias else ()))
            self._unpack(self._raw, dw)

        with self._lock:
            if dx is None or dw is None:
                (weights if dx is None else images)()
            else:
                threads.side_by_side(images, weights)
        return dx, dw, db


def _check():
    rng = np.random.default_rng(0)
    for groups, bias in ((1, True), (2, False)):
        x = rng.standard_normal((4, 4, 9, 8), np.float32)
        w = rng.standard_normal((6, 4 // groups, 3, 2), np.float32)
        b = rng.standard_normal(6, np.float32)
        attributes = {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": groups}
        y = convolution.conv.host(x, w, **attributes)
        made = Convolution(x.shape, w.shape, *attributes.values(), bias)
        xl = as_channels_last(x)
        yield as_channels_second(made.forward(xl, w, b)), y + b[:, None, None] if bias else y
        g = rng.standard_normal(y.shape, np.float32)
        dx, dw, db = made.backward(xl, w, as_channels_last(g), (True, True, bias))
        yield as_channels_second(dx), convolution.conv_input.host(g, w, size=x.shape[2:], **attributes)
        yield dw, convolution.conv_weight.host(x, g, kernel=w.shape[2:], **attributes)
        if bias:
            yield db, g.sum((0, 2, 3))


_family = Family("convolution", _check)
_operation = _family.operation(Convolution)


def _operation_for(x, w, stride, padding, dilation, groups, bias):
    if x.size == 0 or w.size == 0 or x.ndim not in (4, 5):
        return None
    return _operation(x.shape, w.shape, stride, padding, dilation, groups, bias)


def _forward(keep, x, w, *bias, stride, padding, dilation, groups):
    made = _operation_for(x, w, stride, padding, dilation, groups, bool(bias))
    if made is None:
        return None
    xl, w = as_channels_last(x), np.ascontiguousarray(w)
    y = made.forward(xl, w, np.ascontiguousarray(bias[0]) if bias else None)
    return as_channels_second(y), (made, xl, w)


def _backward(kept, grads, needs, x, w, *bias, **attributes):
    made, xl, w = kept
    dx, dw, db = made.backward(xl, w, as_channels_last(grads[0]), (*needs, False)[:3])
    found = [None if dx is None else as_channels_second(dx), dw if needs[1] else None]
    return found + [db] if bias else found


# The transposed convolution is the gradient of the images; its own gradients are a convolution and the gradient of the weights.
def _transposed(keep, g, w, *, size, stride, padding, dilation, groups):
    shape = (g.shape[0], w.shape[1] * groups, *size)
    if g.size == 0 or convolution.out_size(size, w.shape[2:], stride, padding, dilation) != g.shape[2:]:
        return None
    made = _operation(shape, w.shape, stride, padding, dilation, groups, False) if g.ndim in (4, 5) and w.size else None
    if made is None:
        return None
    gl, w = as_channels_last(g), np.ascontiguousarray(w)
    return as_channels_second(made.backward(None, w, gl, (True, False, False))[0]), (made, gl, w)


def _transposed_back(kept, grads, needs, g, w, **attributes):
    made, gl, w = kept
    h, found = as_channels_last(grads[0]), [None, None]
    if needs[0]:
        found[0] = as_channels_second(made.forward(h, w, None))
    if needs[1]:
        found[1] = made.backward(h, w, gl, (False, True, False))[1]
    return found


KERNELS = {
    convolution.conv_input: Kernel(_transposed, _transposed_back),
    convolution.conv: Kernel(_forward, _backward),
    convolution.conv_bias: Kernel(_forward, _backward),
}
