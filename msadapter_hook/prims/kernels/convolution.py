"""Convolutions by oneDNN with the channels innermost in memory, the batch halved between two processors."""

import math
from functools import partial
from threading import Lock

import numpy as np

from msadapter_hook.backend import onednn, threads
from msadapter_hook.backend.onednn import BIAS, SOURCE, TARGET, WEIGHTS, Description, Operation, gradient, numbers
from msadapter_hook.tape.kernel import Kernel

from .. import convolution
from .layout import as_channels_last, as_channels_second, to_last, to_second
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
    """One shape of x (N, C, …) and w (O, C/groups, …): forward and both gradients.

    Arrays of images have their channels last, or with `second` are contiguous in the order of their axes, and results likewise.
    """

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

    def forward(self, x, w, b, second=False):
        """(N, …, O) from (N, …, C), and the images with their channels last."""
        last = np.empty(self._shape, np.float32) if second else x
        y = np.empty(self._out, np.float32)
        result = np.empty((self._out[0], self._out[-1], *self._out[1:-1]), np.float32) if second else y
        rest = (b,) if self._bias else ()
        middle = x.shape[0] - x.shape[0] // 2

        def part(run, at):
            if second:
                to_last(x[at], last[at])
            run(last[at], self._packed, y[at], *rest)
            if second:
                to_second(y[at], result[at])

        with self._lock:
            self._pack(w, self._packed)
            parts = [slice(0, middle), slice(middle, x.shape[0])] if len(self._forward) == 2 else [slice(None)]
            threads.each([partial(part, run, at) for run, at in zip(self._forward, parts)])
        return result, last

    def backward(self, x, w, g, needs, second=False):
        """Gradients of x, w and the bias; None for those not needed. `x` has its channels last in any case."""
        dx = np.empty(self._shape, np.float32) if needs[0] else None  # x is not read for it
        parts = range(len(self._cuts))
        dw = [np.empty(self._weight, np.float32) for _ in parts] if needs[1] or needs[2] else None
        db = [np.empty(self._weight[0], np.float32) for _ in parts] if self._bias and dw is not None else None
        last = np.empty(self._out, np.float32) if second else g
        result = np.empty((self._shape[0], self._shape[-1], *self._shape[1:-1]), np.float32) if second and needs[0] else dx

        def images(i):
            at = self._cuts[i]
            self._data[i](last[at], self._packed_back, dx[at])
            if second:
                to_second(dx[at], result[at])

        def weights(i):
            self._weights[i](x[self._cuts[i]], last[self._cuts[i]], self._raw[i], *((db[i],) if db else ()))
            self._unpack[i](self._raw[i], dw[i])

        def half(i):
            if second:
                to_last(g[self._cuts[i]], last[self._cuts[i]])
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
                if second:
                    to_last(g, last)
                threads.side_by_side(lambda: images(0), lambda: weights(0))
        return result, _sum(dw), _sum(db)


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
        g = rng.standard_normal(y.shape, np.float32)
        for second, shown in (False, as_channels_second), (True, np.asarray):
            yield shown(made.forward(x if second else xl, w, b, second)[0]), y + b[:, None, None] if bias else y
            dx, dw, db = made.backward(xl, w, g if second else as_channels_last(g), (True, True, bias), second)
            yield shown(dx), convolution.conv_input.host(g, w, size=x.shape[2:], **attributes)
            yield dw, convolution.conv_weight.host(x, g, kernel=w.shape[2:], **attributes)
            if bias:
                yield db, g.sum((0, 2, 3))


FAMILY = Family("convolution", _check)
_operation = FAMILY.operation(Convolution)


def _operation_for(x, w, stride, padding, dilation, groups, bias):
    if x.size == 0 or w.size == 0 or x.ndim not in (4, 5):
        return None
    return _operation(x.shape, w.shape, stride, padding, dilation, groups, bias)


def _second(second, images):
    """Images as a `Convolution` takes them, and its results as an array (N, C, …)."""
    return np.ascontiguousarray(images) if second else as_channels_last(images)


def _shown(second, images):
    return images if second else as_channels_second(images)


def _forward(second, keep, x, w, *bias, stride, padding, dilation, groups):
    if x.size // max(x.shape[1], 1) * w.size < SMALL:
        return None
    made = _operation_for(x, w, stride, padding, dilation, groups, bool(bias))
    if made is None:
        return None
    w = np.ascontiguousarray(w)
    y, last = made.forward(_second(second, x), w, np.ascontiguousarray(bias[0]) if bias else None, second)
    return _shown(second, y), (made, last, w)


def _backward(second, kept, grads, needs, x, w, *bias, **attributes):
    made, last, w = kept
    dx, dw, db = made.backward(last, w, _second(second, grads[0]), (*needs, False)[:3], second)
    found = [None if dx is None else _shown(second, dx), dw if needs[1] else None]
    return found + [db] if bias else found


# The transposed convolution is the gradient of the images; its own gradients are a convolution and the gradient of the weights.
def _transposed(second, keep, g, w, *, size, stride, padding, dilation, groups):
    shape = (g.shape[0], w.shape[1] * groups, *size)
    if g.size == 0 or convolution.out_size(size, w.shape[2:], stride, padding, dilation) != g.shape[2:]:
        return None
    made = _operation(shape, w.shape, stride, padding, dilation, groups, False) if g.ndim in (4, 5) and w.size else None
    if made is None:
        return None
    g, w = _second(second, g), np.ascontiguousarray(w)
    return _shown(second, made.backward(None, w, g, (True, False, False), second)[0]), (made, g, w)


def _transposed_back(second, kept, grads, needs, g, w, **attributes):
    made, g, w = kept
    found = [None, None]
    y, last = made.forward(_second(second, grads[0]), w, None, second)
    if needs[0]:
        found[0] = _shown(second, y)
    if needs[1]:
        found[1] = made.backward(last, w, g, (False, True, False), second)[1]
    return found


def _kernels(second):
    """The kernels of this file, for images with their channels last in memory or `second`, as MindSpore's tensors have them."""
    both = [Kernel(partial(forward, second), partial(backward, second), reads=())
            for forward, backward in ((_forward, _backward), (_transposed, _transposed_back))]
    return {convolution.conv: both[0], convolution.conv_bias: both[0], convolution.conv_input: both[1]}


KERNELS, IN_ORDER = _kernels(False), _kernels(True)
