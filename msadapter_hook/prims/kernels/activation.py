"""Activations and softmax: each with a gradient in one pass, over the memory as it lies."""

from threading import Lock

import numpy as np

from msadapter_hook.backend import onednn
from msadapter_hook.backend.onednn import (
    GELU_ERF,
    GELU_TANH,
    LEAKY_RELU,
    LOGISTIC,
    SOFTMAX,
    SOURCE,
    SWISH,
    TARGET,
    TRAINING,
    Description,
    Operation,
    gradient,
)
from msadapter_hook.tape.kernel import Kernel

from .. import activation, pointwise, reduction
from .layout import alike, dense, has_nan
from .linear import FLOATS
from .trust import Family

_BITS = {4: np.int32, 8: np.int64}


# ------------------------------------------------------------------------------------------------ relu
def passed(g, mask):
    """`g` where `mask` holds, else 0, whatever `g` is: its bits times 0 or 1."""
    bits = np.multiply(g.view(_BITS[g.dtype.itemsize]), mask)
    return bits.view(g.dtype)


def _relu(keep, a):
    y = np.maximum(a, a.dtype.type(0))
    return (y if type(y) is np.ndarray else np.asarray(y)), y


def _relu_back(y, grads, needs, a):
    return [np.asarray(passed(grads[0], y > 0))]


# ------------------------------------------------------------------------------------------------ from the result
def _sigmoid_back(y, grads, needs, a):
    d = 1 - y
    d *= y
    d *= grads[0]
    return [d]


def _tanh_back(y, grads, needs, a):
    d = y * y
    np.subtract(1, d, out=d)
    d *= grads[0]
    return [d]


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
class Elementwise:
    """So many numbers through a formula of the library, which may have a parameter."""

    def __init__(self, count, formula, parameter):
        flat, given, zero = onednn.layout((count,)), onednn.number(parameter), onednn.number(0)
        forward = Description("eltwise_forward", TRAINING, formula, flat, flat, given, zero)
        backward = Description("eltwise_backward", formula, flat, flat, flat, given, zero, forward)
        self._forward = Operation(forward, [(SOURCE, flat), (TARGET, flat)])
        self._backward = Operation(backward, [(SOURCE, flat), (gradient(TARGET), flat), (gradient(SOURCE), flat)])
        self._lock = Lock()

    def forward(self, x):
        """The result, which lies in memory as `x` does."""
        y = np.empty_like(x)
        with self._lock:
            self._forward(x, y)
        return y

    def backward(self, x, g):
        """The gradient of x; `g` lies in memory as `x` does."""
        dx = np.empty_like(x)
        with self._lock:
            self._backward(x, g, dx)
        return dx


class Softmax:
    """Over the last axis of rows (R, D)."""

    def __init__(self, rows, width):
        flat = onednn.layout((rows, width))
        forward = Description("softmax_forward", TRAINING, SOFTMAX, flat, flat, 1)
        backward = Description("softmax_backward", SOFTMAX, flat, flat, flat, 1, forward)
        self._forward = Operation(forward, [(SOURCE, flat), (TARGET, flat)])
        self._backward = Operation(backward, [(TARGET, flat), (gradient(TARGET), flat), (gradient(SOURCE), flat)])
        self._lock = Lock()

    def forward(self, x, y):
        """Put the result into `y`, which may be `x`."""
        with self._lock:
            self._forward(x, y)

    def backward(self, y, g, dx):
        """Put the gradient into `dx`, which may be `g`."""
        with self._lock:
            self._backward(y, g, dx)


_FORMULAS = (  # primitive, attributes, formula, parameter
    (activation.gelu, {"approximate": "none"}, GELU_ERF, 0.0),
    (activation.gelu, {"approximate": "tanh"}, GELU_TANH, 0.0),
    (activation.silu, {}, SWISH, 1.0),
    (activation.leaky_relu, {"slope": 0.25}, LEAKY_RELU, 0.25),
    (pointwise.sigmoid, {}, LOGISTIC, 0.0),
)


def _check_elementwise():
    x = np.linspace(-4, 4, 98, dtype=np.float32)
    step = 1e-4
    for primitive, attributes, formula, parameter in _FORMULAS:
        made = Elementwise(x.size, formula, parameter)
        yield made.forward(x), primitive.host(x, **attributes)
        high, low = (primitive.host(x.astype(np.float64) + s, **attributes) for s in (step, -step))
        yield made.backward(x, x), x * (high - low) / (2 * step)


def _check_softmax():
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((2, 5, 17), np.float32)
    x[1, 3:] = -np.inf
    made, y, dx = Softmax(5, 17), np.empty_like(x), np.empty_like(x)
    made.forward(x, y)
    yield y, reduction.softmax.host(x, axis=1)
    made.backward(y, g, dx)
    yield dx, _softmax_back(y, [g], None, x, axis=1)[0]


_elementwise = Family("activations", _check_elementwise).operation(Elementwise)
softmax_operation = Family("softmax", _check_softmax).operation(Softmax)


def _by_formula(choose):
    """Forward and backward by the library; `choose(**attributes)` gives the formula and its parameter."""

    def forward(keep, a, **attributes):
        made = _elementwise(a.size, *choose(**attributes)) if a.size else None
        if made is None:
            return None
        a = dense(a)
        return made.forward(a), (made, a)

    def backward(kept, grads, needs, a, **attributes):
        made, a = kept
        return [made.backward(a, alike(grads[0], a))]

    return forward, backward


def _sigmoid(keep, a):
    made = _elementwise(a.size, LOGISTIC, 0.0) if a.size and a.ndim and a.dtype == np.float32 else None
    if made is None:
        return _keeping_result(pointwise.sigmoid.host)(keep, a)
    y = made.forward(dense(a))
    return y, y


def _softmax(keep, a, *, axis):
    made = softmax_operation(a.size // a.shape[axis], a.shape[axis]) if a.size and axis == a.ndim - 1 else None
    if made is None or has_nan(a):  # oneDNN loses NaN
        y = reduction.softmax.host(a, axis=axis)
        return (y, (None, y)) if a.ndim and a.size else None
    a = np.ascontiguousarray(a)
    y = np.empty_like(a)
    made.forward(a, y)
    return y, (made, y)


def _softmax_back_by(kept, grads, needs, a, *, axis):
    made, y = kept
    if made is None:
        return _softmax_back(y, grads, needs, a, axis=axis)
    g = np.ascontiguousarray(grads[0])
    dx = np.empty_like(g)
    made.backward(y, g, dx)
    return [dx]


KERNELS = {
    pointwise.relu: Kernel(_relu, _relu_back, dtypes=FLOATS),
    pointwise.sigmoid: Kernel(_sigmoid, _sigmoid_back, dtypes=FLOATS),
    pointwise.tanh: Kernel(_keeping_result(pointwise.tanh.host), _tanh_back, dtypes=FLOATS),
    activation.gelu: Kernel(*_by_formula(lambda *, approximate: (GELU_TANH if approximate == "tanh" else GELU_ERF, 0.0))),
    activation.silu: Kernel(*_by_formula(lambda: (SWISH, 1.0))),
    activation.leaky_relu: Kernel(*_by_formula(lambda *, slope: (LEAKY_RELU, float(slope)))),
    reduction.softmax: Kernel(_softmax, _softmax_back_by),
    reduction.log_softmax: Kernel(_keeping_result(reduction.log_softmax.host), _log_softmax_back, dtypes=FLOATS),
}
