"""Convolutions by oneDNN with the channels innermost in memory, the batch halved between two processors."""

import math
from functools import partial
from threading import Lock

import numpy as np

from msadapter_hook.backend import onednn, threads
from msadapter_hook.backend.onednn import BIAS, SOURCE, TARGET, WEIGHTS, Description, Operation, gradient, numbers
from msadapter_hook.tape.kernel import Kernel

from .. import convolution
from .layout import as_channels_last, as_channels_second
from .trust import Family

SMALL = 1 << 14  # multiplications up to which NumPy is as fast, and closer to PyTorch
_SPLIT_AT = 1 << 20  # multiplications below which a second processor does not pay
_HEAVY = 1 / 8  # elements of weights per element of images from which on their gradient is not made of two halves
_LANES = 16  # channels below which the library's first choice computes with registers that are mostly empty


def _described(kind, channels, groups, make):
    """The description of a convolution, by a kernel that suits few channels where there are few.

    The library takes "brg" kernels first, which need two to three times as long as "jit" with fewer channels than a register has
    places; for the gradient of at most eight channels half as wide registers are better still.
    """
    description = make()
    if groups > 1 or min(channels) >= _LANES:
        return description
    wanted = "jit:avx2" if kind == "backward_data" and channels[0] <= _LANES // 2 else "jit:"
    while not description.kernel.startswith(wanted):
        if not description.next_kernel():
            return make()
    return description


class Convolution:
    """One shape of x (N, C, …) and w (O, C/groups, …): forward and both gradients. Arrays of images have their channels last."""

    def __init__(self, shape, weight, stride, padding, dilation, groups, bias):
        out = convolution.out_size(shape[2:], weight[2:], stride, padding, dilation)
        images = shape[0]
        self._out = (images, *out, weight[0])
        self._shape = (images, *shape[2:], shape[1])
        self._weight, self._bias, self._lock = weight, bias, Lock()
        grouped = weight if groups == 1 else (groups, weight[0] // groups, *weight[1:])
        free, plain = onednn.layout(grouped, "any"), onednn.layout(grouped)
        bias_layout = onednn.layout((weight[0],)) if bias else None
        geometry = (numbers(*stride), numbers(*[d - 1 for d in dilation]), numbers(*padding), numbers(*padding))

        def described(kind, n, *hint):
            source = onednn.channels_last((n, *shape[1:]))
            target = onednn.channels_last((n, weight[0], *out))
            mode = (onednn.TRAINING,) if kind == "forward" else ()
            offset = () if kind == "backward_data" else (bias_layout,)
            arguments = (*mode, onednn.DIRECT_CONVOLUTION, source, free, *offset, target, *geometry, *hint)
            made = _described(kind, (shape[1], weight[0]), groups, lambda: Description(f"convolution_{kind}", *arguments))
            return made, source, target

        def forward(n):
            made, source, target = described("forward", n)
            roles = [(SOURCE, source), (WEIGHTS, made.layout("weights")), (TARGET, target)]
            return made, Operation(made, roles + ([(BIAS, bias_layout)] if bias else []))

        def data(n, hint):
            made, source, target = described("backward_data", n, hint)
            roles = [(gradient(TARGET), target), (WEIGHTS, made.layout("weights")), (gradient(SOURCE), source)]
            return made, Operation(made, roles)

        def weights(n, hint):
            made, source, target = described("backward_weights", n, hint)
            roles = [(SOURCE, source), (gradient(TARGET), target), (gradient(WEIGHTS), made.layout("weights_gradient"))]
            return made, Operation(made, roles + ([(gradient(BIAS), bias_layout)] if bias else []))

        halves = images > 1 and math.prod(self._out) * math.prod(weight[1:]) > _SPLIT_AT
        sizes = [images - images // 2, images // 2] if halves else [images]
        made, self._forward = zip(*[forward(n) for n in sizes])
        hint = made[0]
        self._pack, self._packed = self._packing(plain, made)
        if math.prod(weight) > _HEAVY * math.prod(self._shape):
            sizes = [images]
            hint, _ = forward(images)
        self._cuts = [slice(sum(sizes[:i]), sum(sizes[:i + 1])) for i in range(len(sizes))]
        made, self._data = zip(*[data(n, hint) for n in sizes])
        self._pack_back, self._packed_back = self._packing(plain, made)
        made, self._weights = zip(*[weights(n, hint) for n in sizes])
        self._unpack = [onednn.reorder(m.layout("weights_gradient"), plain) for m in made]
        self._raw = [onednn.room(m.layout("weights_gradient")) for m in made]

    @staticmethod
    def _packing(plain, made):
        """The operation that lays out the weights, and the memory for them. Unavailable where two halves want them differently."""
        wanted = [m.layout("weights") for m in made]
        if not all(onednn.same(wanted[0], w) for w in wanted[1:]):
            raise onednn.Unavailable("halves of a convolution differ in their weights")
        return onednn.reorder(plain, wanted[0]), onednn.room(wanted[0])

    def forward(self, x, w, b):
        """(N, …, O) from (N, …, C)."""
        y = np.empty(self._out, np.float32)
        rest = (b,) if self._bias else ()
        middle = x.shape[0] - x.shape[0] // 2
        with self._lock:
            self._pack(w, self._packed)
            parts = [slice(0, middle), slice(middle, x.shape[0])] if len(self._forward) == 2 else [slice(None)]
            threads.each([partial(run, x[at], self._packed, y[at], *rest) for run, at in zip(self._forward, parts)])
        return y

    def backward(self, x, w, g, needs):
        """Gradients of x, w and the bias; None for those not needed."""
        dx = np.empty(self._shape, np.float32) if needs[0] else None  # x is not read for it
        parts = range(len(self._cuts))
        dw = [np.empty(self._weight, np.float32) for _ in parts] if needs[1] or needs[2] else None
        db = [np.empty(self._weight[0], np.float32) for _ in parts] if self._bias and dw is not None else None

        def images(i):
            self._data[i](g[self._cuts[i]], self._packed_back, dx[self._cuts[i]])

        def weights(i):
            self._weights[i](x[self._cuts[i]], g[self._cuts[i]], self._raw[i], *((db[i],) if db else ()))
            self._unpack[i](self._raw[i], dw[i])

        def half(i):
            if dx is not None:
                images(i)
            if dw is not None:
                weights(i)

        with self._lock:
            if dx is not None:
                self._pack_back(w, self._packed_back)
            if len(parts) == 2:
                threads.side_by_side(lambda: half(0), lambda: half(1))
            elif dx is None or dw is None:
                half(0)
            else:
                threads.side_by_side(lambda: images(0), lambda: weights(0))
        return dx, _sum(dw), _sum(db)


def _sum(halves):
    if halves is None:
        return None
    if len(halves) == 2:
        halves[0] += halves[1]
    return halves[0]


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
    if x.size // max(x.shape[1], 1) * w.size < SMALL:
        return None
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
