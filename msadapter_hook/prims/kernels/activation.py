"""Activations and softmax: each with a gradient in one pass, over the memory as it lies."""

import math
from functools import partial

import numpy as np
import scipy.special as sp

from msadapter_hook.backend import onednn, threads
from msadapter_hook.backend.onednn import (
    CLIP,
    GELU_ERF,
    GELU_TANH,
    HARD_SWISH,
    LEAKY_RELU,
    MISH,
    RELU,
    SOFTMAX,
    SOURCE,
    SWISH,
    TARGET,
    TRAINING,
    Description,
    Operation,
    Shared,
    gradient,
)
from msadapter_hook.tape.kernel import Kernel

from .. import activation, pointwise, reduction
from .elementwise import SLOW_HALVES, available, beside, evaluate, formula, in_halves, swept
from .layout import BITS, alike, dense, has_nan
from .linear import FLOATS
from .trust import Family

_LIBRARY = 1 << 14  # numbers from which on the library beats a single pass of NumPy


# ------------------------------------------------------------------------------------------------ pieces of lines
def passed(g, mask):
    """`g` where `mask` holds, else 0, whatever `g` is: its bits times 0 or 1."""
    bits = np.multiply(g.view(BITS[g.dtype.itemsize]), mask)
    return bits.view(g.dtype)


def _relu(keep, a):
    y = None
    if a.size >= _LIBRARY and a.dtype == np.float32 and not has_nan(a):  # oneDNN loses NaN
        y = evaluate(False, RELU, 0, 0, dense(a))
    if y is None:
        y = np.maximum(a, a.dtype.type(0))
    return (y if type(y) is np.ndarray else np.asarray(y)), y


def _relu_back(y, grads, needs, a):
    return [np.asarray(passed(grads[0], y > 0))]


def _limited(keep, a, *, low, high):
    """Between two limits; those that are not there, cross or are NaN are left to NumPy."""
    if low is None or high is None or not low <= high or a.size < _LIBRARY or has_nan(a):
        return None
    y = evaluate(False, CLIP, low, high, dense(a))
    return None if y is None else (y, ())


def _clamp_back(kept, grads, needs, a, *, low, high):
    return [passed(grads[0], (a >= a.dtype.type(low)) & (a <= a.dtype.type(high)))]


def _hardtanh_back(kept, grads, needs, a, *, low, high):
    return [passed(grads[0], (a > a.dtype.type(low)) & (a < a.dtype.type(high)) | (a != a))]


def where(keep, mask, a, b):
    """By bits: NumPy's own takes eight times as long where the mask has no order."""
    shapes = {a.shape, b.shape}
    if mask.size < _LIBRARY or not shapes <= {mask.shape, ()} or shapes == {()} or a.dtype != b.dtype or a.dtype.itemsize not in BITS:
        return None
    dtype, kind = a.dtype, BITS[a.dtype.itemsize]
    a, b = a.view(kind), b.view(kind)
    bits = a ^ b
    bits *= mask
    bits ^= b
    return bits.view(dtype), None


# ------------------------------------------------------------------------------------------------ from the result
def _sigmoid_slope(d, y, g):
    np.subtract(1, y, out=d)
    d *= y
    d *= g


def _tanh_slope(d, y, g):
    np.multiply(y, y, out=d)
    np.subtract(1, d, out=d)
    d *= g


def _from_result(slope):
    """The gradient that `slope` makes of the result y and g."""

    def backward(y, grads, needs, a):
        return [swept(slope, y, alike(grads[0], y))]

    return backward


def _keeping_result(host):
    def forward(keep, a, **attributes):
        y = host(a, **attributes)
        return (y, y) if type(y) is np.ndarray and y.ndim else None  # scalars of NumPy cannot be written to

    return forward


def _softmax_back(y, grads, needs, a, *, axis):
    d = grads[0] * y
    d -= y * np.add.reduce(d, axis, keepdims=True)
    return [d]


def _log_softmax_back(y, grads, needs, a, *, axis):
    d = np.exp(y)
    d *= np.add.reduce(grads[0], axis, keepdims=True)
    np.subtract(grads[0], d, out=d)
    return [d]


# ------------------------------------------------------------------------------------------------ oneDNN
class Softmax:
    """Over the last axis of rows (R, D)."""

    def __init__(self, rows, width):
        flat = onednn.layout((rows, width))
        forward = Description("softmax_forward", TRAINING, SOFTMAX, flat, flat, 1)
        backward = Description("softmax_backward", SOFTMAX, flat, flat, flat, 1, forward)
        self._forward = Shared(partial(Operation, forward, [(SOURCE, flat), (TARGET, flat)]))
        self._backward = Shared(partial(Operation, backward, [
            (TARGET, flat), (gradient(TARGET), flat), (gradient(SOURCE), flat)]))

    def forward(self, x, y):
        """Put the result into `y`, which may be `x`."""
        self._forward(x, y)

    def backward(self, y, g, dx):
        """Put the gradient into `dx`, which may be `g`."""
        self._backward(y, g, dx)


def _check_softmax():
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((2, 5, 17), np.float32)
    x[1, 3:] = -np.inf
    made, y, dx = Softmax(5, 17), np.empty_like(x), np.empty_like(x)
    made.forward(x, y)
    yield y, reduction.softmax.host(x, axis=1)
    made.backward(y, g, dx)
    yield dx, _softmax_back(y, [g], None, x, axis=1)[0]


softmax_operation = Family("softmax", _check_softmax).operation(Softmax)


formula(GELU_ERF, 0, 0, lambda a: a * sp.ndtr(a))
formula(GELU_TANH, 0, 0, lambda a: a * sp.expit(2 * math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)))
formula(SWISH, 1, 0, lambda a: a * sp.expit(a))
formula(MISH, 0, 0, lambda a: a * np.tanh(np.logaddexp(a, 0)))
formula(HARD_SWISH, 1 / 6, 0.5, lambda a: a * np.clip(a / 6 + 0.5, 0, 1))
formula(LEAKY_RELU, 0.25, 0, lambda a: np.where(a > 0, a, a * 0.25))
formula(CLIP, -1.3, 2.1, lambda a: np.clip(a, -1.3, 2.1))


def _by_formula(choose, least=1):
    """Forward and backward by the library; `choose(**attributes)` gives the formula and its parameters. Fewer numbers than
    `least` are left to NumPy."""

    def forward(keep, a, **attributes):
        if a.size < least or not a.ndim:
            return None
        a = dense(a)
        y = evaluate(False, *choose(**attributes), a)
        return None if y is None else (y, (a,))

    def backward(kept, grads, needs, a, **attributes):
        a, = kept
        return [evaluate(True, *choose(**attributes), a, alike(grads[0], a))]

    return forward, backward


def _shifted_power(a, y):
    """1 + exp(-a)."""
    np.negative(a, out=y)
    np.exp(y, out=y)
    y += 1


def _logistic(a, y):
    _shifted_power(a, y)
    np.divide(1, y, out=y)


def _silu(a, y):
    _shifted_power(a, y)
    np.divide(a, y, out=y)


def _mish(a, y):
    """a tanh(log(1 + e)) for e = exp(a) is a p / (p + 2) for p = e (e + 2); from 20 on that is a."""
    np.minimum(a, 20, out=y)
    np.exp(y, out=y)
    y *= y + 2
    y /= y + 2
    y *= a


def _sigmoid(keep, a):
    """As PyTorch writes it: the library's is off by more."""
    if not a.ndim:
        return None
    y = in_halves(_logistic, a)
    return y, y


def _with_gradient_of(formula, function):
    """Forward by NumPy, as exactly as PyTorch; backward by the library."""

    def forward(keep, a):
        if not a.size or not a.ndim:
            return None
        a = dense(a)
        return in_halves(function, a), (a,) if available() else None

    def backward(kept, grads, needs, a):
        a, = kept
        return [evaluate(True, formula, 1, 0, a, alike(grads[0], a))]

    return Kernel(forward, backward)


def _softmax(keep, a, *, axis):
    made = softmax_operation(a.size // a.shape[axis], a.shape[axis]) if a.size and axis == a.ndim - 1 else None
    if made is None or has_nan(a):  # oneDNN loses NaN
        y = reduction.softmax.host(a, axis=axis)
        return (y, (None, y)) if a.ndim and a.size else None
    a = np.ascontiguousarray(a)
    y = np.empty_like(a)
    made.forward(a, y)
    return y, (made, y)


def _log_softmax(a, *, axis):
    """By NumPy, of much along other axes than the first in two halves side by side."""
    host = reduction.log_softmax.host
    if axis == 0 or a.size < SLOW_HALVES or a.shape[0] < 2:
        return host(a, axis=axis)
    y = np.empty_like(a)

    def half(at):
        y[at] = host(a[at], axis=axis)

    middle = a.shape[0] // 2
    threads.side_by_side(partial(half, slice(0, middle)), partial(half, slice(middle, None)))
    return y


def _softmax_back_by(kept, grads, needs, a, *, axis):
    made, y = kept
    if made is None:
        return _softmax_back(y, grads, needs, a, axis=axis)
    g = np.ascontiguousarray(grads[0])
    dx = np.empty_like(g)
    made.backward(y, g, dx)
    return [dx]


KERNELS = {
    pointwise.sigmoid: Kernel(_sigmoid, _from_result(_sigmoid_slope), dtypes=FLOATS),
    pointwise.tanh: Kernel(_keeping_result(lambda a: in_halves(np.tanh, a)), _from_result(_tanh_slope), dtypes=FLOATS),
    activation.hardswish: Kernel(*_by_formula(lambda: (HARD_SWISH, 1 / 6, 0.5), _LIBRARY)),
}
#: slow functions whose many numbers are divided between two processors; the results are the same
_BESIDE = [getattr(pointwise, name) for name in (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc erfinv "
    "softplus pow_number").split()] + [activation.log_sigmoid, activation.softplus_beta, activation.elu, activation.celu]
#: as exact as PyTorch, to the last bit or nearly so, or as NumPy: these serve without the switch, too
EXACT = {
    **{primitive: Kernel(beside(primitive.host), dtypes=FLOATS) for primitive in _BESIDE},
    activation.silu: _with_gradient_of(SWISH, _silu),
    activation.mish: _with_gradient_of(MISH, _mish),
    reduction.softmax: Kernel(_softmax, _softmax_back_by),
    reduction.log_softmax: Kernel(_keeping_result(_log_softmax), _log_softmax_back, dtypes=FLOATS),
    pointwise.relu: Kernel(_relu, _relu_back, dtypes=FLOATS),
    pointwise.where: Kernel(where, dtypes=frozenset([np.dtype(bool)])),
    activation.gelu: Kernel(*_by_formula(lambda *, approximate: (GELU_TANH if approximate == "tanh" else GELU_ERF, 0, 0))),
    activation.leaky_relu: Kernel(*_by_formula(lambda *, slope: (LEAKY_RELU, slope, 0), _LIBRARY)),
    activation.clamp_range: Kernel(_limited, _clamp_back),
    activation.hardtanh: Kernel(_limited, _hardtanh_back),
}
KERNELS = {**EXACT, **KERNELS}
