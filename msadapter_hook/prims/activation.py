"""Activation primitives: one node each, with a composition of MindSpore's kernels where its gradient equals PyTorch's.

Half precision computes in float32 on the host and rounds once.
"""

import functools
import math

import numpy as np
import scipy.special as sp

from msadapter_hook import backend
from msadapter_hook.backend import primitive
from msadapter_hook.tape import Primitive, constant
from msadapter_hook.tape.primitive import SINGLE

from .movement import sum_to, zeros_like
from .pointwise import erf, exp, greater, greater_equal, less, less_equal, logical_and, logical_or, sigmoid, tanh, where

__all__ = [
    "celu",
    "clamp_range",
    "elu",
    "gelu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_sigmoid",
    "mish",
    "prelu",
    "silu",
    "softplus_beta",
    "softshrink",
    "threshold",
]


def _wide(kernel):
    """`kernel` computing halves in float32."""

    @functools.wraps(kernel)
    def run(a, *rest, **attributes):
        if a.dtype.itemsize < 4 and a.dtype.kind in "fV":
            return kernel(a.astype(np.float32), *[r.astype(np.float32) for r in rest], **attributes).astype(a.dtype)
        found = kernel(a, *rest, **attributes)
        return found if found.dtype == a.dtype else found.astype(a.dtype)

    return run


@functools.lru_cache(maxsize=512)
def _number(value):
    """A float32 constant for a recorded kernel: a Python number would be converted at every call."""
    return backend.from_numpy(np.array(value, np.float32))


def _filler():
    """`(a, mask, number)`: the number where the mask holds. MaskedFill takes a third of what Select takes for a number."""
    fill, select = primitive("MaskedFill"), primitive("Select")
    return lambda a, mask, number: fill(a, mask, number) if a.shape else select(mask, number, a)


def _full(*values, **attributes):
    return all(v.size for v in values)


def _c(value, like):
    return constant(value, like.dtype)


def _define(name, host, mindspore=None, vjp=None, **options):
    options.setdefault("guard", _full)
    return Primitive(name, _wide(host), mindspore, vjp=vjp, dtypes=SINGLE, **options)


# ------------------------------------------------------------------------------------------------ smooth ones
def _silu_ms():
    mul, sig = primitive("Mul"), primitive("Sigmoid")
    return lambda a: mul(a, sig(a))


def _silu_vjp(g, out, a):
    s = sigmoid(a)
    return g * (s * (a * (1 - s) + 1))


silu = _define(
    "silu", lambda a: a * sp.expit(a) if a.dtype.kind != "c" else a / (1 + np.exp(-a)), _silu_ms, [_silu_vjp], uses_output=False
)

_ROOT_HALF, _TANH_SCALE = math.sqrt(0.5), math.sqrt(2 / math.pi)


def _gelu(a, *, approximate):
    if approximate == "tanh":
        return 0.5 * a * (1 + np.tanh(_TANH_SCALE * (a + 0.044715 * a * a * a)))
    return 0.5 * a * (1 + sp.erf(a * _ROOT_HALF))


def _gelu_ms(*, approximate):
    mul, add = primitive("Mul"), primitive("Add")
    half, one = _number(0.5), _number(1.0)
    if approximate == "tanh":
        sig, cubic, scale = primitive("Sigmoid"), _number(0.044715), _number(2 * _TANH_SCALE)
        return lambda a: mul(a, sig(mul(scale, add(a, mul(cubic, mul(mul(a, a), a))))))  # (1 + tanh z) / 2 is sigmoid(2 z)
    error, root = primitive("Erf"), _number(_ROOT_HALF)
    return lambda a: mul(mul(half, a), add(error(mul(a, root)), one))


def _gelu_vjp(g, out, a, *, approximate):
    if approximate == "tanh":
        inner = (a + a * a * a * 0.044715) * _TANH_SCALE
        t = tanh(inner)
        slope = (a * a * (3 * 0.044715) + 1) * _TANH_SCALE
        return g * ((t + 1) * 0.5 + a * 0.5 * (1 - t * t) * slope)
    cdf = (erf(a * _ROOT_HALF) + 1) * 0.5
    return g * (cdf + a * (exp(a * a * -0.5) * (1 / math.sqrt(2 * math.pi))))


gelu = _define("gelu", _gelu, _gelu_ms, [_gelu_vjp], uses_output=False)


def _mish_vjp(g, out, a):
    t = tanh(softplus_beta(a, beta=1.0, threshold=20.0))
    return g * (t + a * sigmoid(a) * (1 - t * t))


def _mish_ms():
    """With tanh(s) as 2 * sigmoid(2 s) - 1: MindSpore's Mish and Tanh are off by 1e-4."""
    mul, sub, sig, soft = primitive("Mul"), primitive("Sub"), primitive("Sigmoid"), primitive("Softplus")
    one, two = _number(1.0), _number(2.0)
    return lambda a: mul(a, sub(mul(sig(mul(soft(a), two)), two), one))


mish = _define("mish", lambda a: a * np.tanh(np.logaddexp(a, np.zeros((), a.dtype))), _mish_ms, [_mish_vjp], uses_output=False)


def _log_sigmoid(a):
    return np.minimum(a, np.zeros((), a.dtype)) - np.log1p(np.exp(-np.abs(a)))


def _log_sigmoid_ms():
    neg, soft = primitive("Neg"), primitive("Softplus")
    return lambda a: neg(soft(neg(a)))


log_sigmoid = _define("log_sigmoid", _log_sigmoid, _log_sigmoid_ms, [lambda g, out, a: g * sigmoid(a * -1)], uses_output=False)


def _softplus(a, *, beta, threshold):
    scaled = a * np.asarray(beta, a.dtype)
    return np.where(scaled > threshold, a, np.log1p(np.exp(scaled)) / np.asarray(beta, a.dtype))


def _softplus_vjp(g, out, a, *, beta, threshold):
    scaled = a * beta
    return where(greater(scaled, _c(threshold, a)), g, g * sigmoid(scaled))


softplus_beta = _define(  # log(1 + exp(beta x)) / beta, linear above the threshold
    "softplus_beta",
    _softplus,
    lambda *, beta, threshold: primitive("Softplus"),
    [_softplus_vjp],
    uses_output=False,
    guard=lambda a, *, beta, threshold: a.size > 0 and beta == 1 and threshold == 20,
)


# ------------------------------------------------------------------------------------------------ exponential on one side
def _elu(a, *, alpha, scale, input_scale):
    return np.where(a > 0, a * scale, np.expm1(np.minimum(a, 0) * input_scale) * (alpha * scale))


def _elu_vjp(g, out, a, *, alpha, scale, input_scale):
    below = g * exp(a * input_scale) * (alpha * scale * input_scale)
    return where(greater(a, _c(0, a)), g * scale, below)


def _elu_ms(*, alpha, scale, input_scale):
    select, above, mul, raised, fill = *map(primitive, ("Select", "Greater", "Mul", "Expm1")), _filler()
    zero, right, left, inner = map(_number, (0.0, scale, alpha * scale, input_scale))

    def run(a):
        positive = above(a, zero)
        low = mul(raised(mul(fill(a, positive, zero), inner)), left)
        return select(positive, mul(a, right), low)

    return run


elu = _define("elu", _elu, _elu_ms, [_elu_vjp], uses_output=False)
celu = _define(
    "celu",
    lambda a, *, alpha: np.where(a > 0, a, np.expm1(np.minimum(a, 0) / alpha) * alpha),
    lambda *, alpha: _elu_ms(alpha=alpha, scale=1.0, input_scale=1 / alpha),
    [lambda g, out, a, *, alpha: where(greater(a, _c(0, a)), g, g * exp(a * (1 / alpha)))],
    uses_output=False,
)


# ------------------------------------------------------------------------------------------------ piecewise linear
def _leaky_ms(*, slope):
    select, greater_, mul = primitive("Select"), primitive("Greater"), primitive("Mul")
    zero, factor = _number(0.0), _number(slope)
    return lambda a: select(greater_(a, zero), a, mul(a, factor))


leaky_relu = _define(
    "leaky_relu",
    lambda a, *, slope: np.where(a > 0, a, a * np.asarray(slope, a.dtype)),
    _leaky_ms,
    [lambda g, out, a, *, slope: where(greater(a, _c(0, a)), g, g * slope)],
    uses_output=False,
)


def _prelu_weight_vjp(g, out, a, w):
    return sum_to(where(greater(a, _c(0, a)), _c(0, a), g * a), shape=w.shape)


def _prelu_ms():
    select, above, mul, zero = primitive("Select"), primitive("Greater"), primitive("Mul"), _number(0.0)
    return lambda a, w: select(above(a, zero), a, mul(a, w))


prelu = _define(
    "prelu",
    lambda a, w: np.where(a > 0, a, a * w),
    _prelu_ms,
    [lambda g, out, a, w: where(greater(a, _c(0, a)), g, g * w), _prelu_weight_vjp],
    uses_output=False,
)


def _clamp(a, *, low, high):
    found = a
    if low is not None:
        found = np.maximum(found, np.asarray(low).astype(a.dtype))
    if high is not None:
        found = np.minimum(found, np.asarray(high).astype(a.dtype))
    return found if found is not a else a.copy()


def _clamp_ms(*, low, high):
    """Constants outside of the limits, so that no gradient passes there; NaN is a constant too."""
    fill, below, above, differs = _filler(), primitive("Less"), primitive("Greater"), primitive("NotEqual")
    lo = None if low is None else _number(low)
    hi = None if high is None else _number(high)
    nan = _number(float("nan"))

    def run(a):
        found = fill(a, differs(a, a), nan)
        if hi is not None:
            found = fill(found, above(a, hi), hi)
        return found if lo is None else fill(found, below(a, lo), lo)

    return run


def _inside(a, low, high):
    mask = None
    if low is not None:
        mask = greater_equal(a, _c(low, a))
    if high is not None:
        below = less_equal(a, _c(high, a))
        mask = below if mask is None else logical_and(mask, below)
    return mask


clamp_range = Primitive(  # limits are numbers or None
    "clamp_range",
    _clamp,
    _clamp_ms,
    vjp=[lambda g, out, a, *, low, high: where(_inside(a, low, high), g, _c(0, g))],
    uses_output=False,
    dtypes=SINGLE,
    guard=lambda a, *, low, high: a.size > 0 and (low is None or high is None or low <= high),
)


def _hardtanh(a, *, low, high):
    return np.minimum(np.maximum(a, np.asarray(low).astype(a.dtype)), np.asarray(high).astype(a.dtype))


def _hardtanh_ms(*, low, high):
    fill, at_most, at_least = _filler(), primitive("LessEqual"), primitive("GreaterEqual")
    lo, hi = _number(low), _number(high)
    return lambda a: fill(fill(a, at_least(a, hi), hi), at_most(a, lo), lo)


def _hardtanh_vjp(g, out, a, *, low, high):
    outside = logical_or(less_equal(a, _c(low, a)), greater_equal(a, _c(high, a)))
    return where(outside, _c(0, g), g)


hardtanh = Primitive(  # unlike clamp, no gradient at the limits
    "hardtanh", _hardtanh, _hardtanh_ms, vjp=[_hardtanh_vjp], uses_output=False, dtypes=SINGLE, guard=_full
)


def _hard_slope(nan_passes):
    """x / 6 + 1/2 within (-3, 3), constants outside."""
    fill, at_most, at_least, differs = _filler(), *map(primitive, ("LessEqual", "GreaterEqual", "NotEqual"))
    mul, add = primitive("Mul"), primitive("Add")
    zero, one, half, sixth, three, minus, nan = map(_number, (0.0, 1.0, 0.5, 1 / 6, 3.0, -3.0, float("nan")))

    def run(a):
        line = add(mul(a, sixth), half)
        if not nan_passes:
            line = fill(line, differs(a, a), nan)
        return fill(fill(line, at_least(a, three), one), at_most(a, minus), zero)

    return run


def _hardswish_ms():
    mul, slope = primitive("Mul"), _hard_slope(True)
    return lambda a: mul(a, slope(a))


hardswish = _define(
    "hardswish",
    lambda a: a * np.clip(a + 3, 0, 6) / 6,
    _hardswish_ms,
    [lambda g, out, a: where(less_equal(a, _c(-3, a)), _c(0, g), where(less(a, _c(3, a)), g * (a * (1 / 3) + 0.5), g))],
    uses_output=False,
)
hardsigmoid = _define(
    "hardsigmoid",
    lambda a: np.clip(a + 3, 0, 6) / 6,
    lambda: _hard_slope(False),
    [lambda g, out, a: where(logical_and(greater(a, _c(-3, a)), less(a, _c(3, a))), g * (1 / 6), _c(0, g))],
    uses_output=False,
)
def _shrink_ms(soft):
    """Zero without a gradient within the limits; outside the input, moved towards zero where `soft`."""

    def make(*, limit):
        fill, select, at_most, size = _filler(), *map(primitive, ("Select", "LessEqual", "Abs"))
        above, add, sub = primitive("Greater"), primitive("Add"), primitive("Sub")
        zero, high = map(_number, (0.0, limit))

        def run(a):
            outside = select(above(a, zero), sub(a, high), add(a, high)) if soft else a
            return fill(outside, at_most(size(a), high), zero)

        return run

    return make


def _threshold_ms(*, limit, value):
    fill, at_most, edge, number = _filler(), primitive("LessEqual"), _number(limit), _number(value)
    return lambda a: fill(a, at_most(a, edge), number)


hardshrink = _define(
    "hardshrink",
    lambda a, *, limit: np.where((a >= -limit) & (a <= limit), np.zeros((), a.dtype), a),
    _shrink_ms(False),
    [lambda g, out, a, *, limit: where(logical_and(greater_equal(a, _c(-limit, a)), less_equal(a, _c(limit, a))), _c(0, g), g)],
    uses_output=False,
)
softshrink = _define(
    "softshrink",
    lambda a, *, limit: np.where(a > limit, a - limit, np.where(a < -limit, a + limit, a * 0)),
    _shrink_ms(True),
    [lambda g, out, a, *, limit: where(logical_and(greater_equal(a, _c(-limit, a)), less_equal(a, _c(limit, a))), _c(0, g), g)],
    uses_output=False,
)
threshold = Primitive(
    "threshold",
    lambda a, *, limit, value: np.where(a <= limit, np.asarray(value).astype(a.dtype), a),
    _threshold_ms,
    vjp=[lambda g, out, a, *, limit, value: where(less_equal(a, _c(limit, a)), zeros_like(g), g)],
    uses_output=False,
    dtypes=SINGLE,
    guard=_full,
)

for _name in __all__:
    globals()[_name].pointwise = True
