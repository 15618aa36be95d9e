"""Elementwise primitives. Inputs of a call share one dtype; shapes broadcast. Complex cotangents follow PyTorch:
a holomorphic function passes on g * conj(f')."""

import functools
import math

import numpy as np
import scipy.special as sp

from msadapter_hook.backend import finite, from_numpy, primitive
from msadapter_hook.tape import Primitive, constant
from msadapter_hook.tape.primitive import FLOATS, SINGLE

from .movement import cast, sum_to, zeros_like

NAMES = []


def _define(name, *args, **keywords):
    NAMES.append(name)
    made = Primitive(name, *args, **keywords)
    made.pointwise = True
    return made


def conj_of(v):
    """The conjugate of a complex Value; any other Value itself."""
    return conj(v) if v.dtype.kind == "c" else v


def _like(g, v):
    return g if g.shape == v.shape else sum_to(g, shape=v.shape)


def _nonempty(*values, **attributes):
    for v in values:
        if v.size == 0:
            return False
    return True


def _single_or_wide(ufunc):
    """A NumPy or SciPy function in the dtype of its input; half precision computes in float32 and rounds back."""

    def kernel(a, *rest):
        if a.dtype.kind == "V" or a.dtype.itemsize < 4 and a.dtype.kind == "f" or a.dtype.name == "bfloat16":
            return ufunc(a.astype(np.float32), *[r.astype(np.float32) for r in rest]).astype(a.dtype)
        found = ufunc(a, *rest)  # a zero-dim array with a Python number is float64 to NumPy
        return found if found.dtype == a.dtype else found.astype(a.dtype)

    return kernel


# ------------------------------------------------------------------------------------------------ one argument
def _tanh_of_sigmoid():
    """2 * sigmoid(2 x) - 1: MindSpore's Tanh is off by 1e-4 for arguments around 5."""
    mul, sub_, sig = primitive("Mul"), primitive("Sub"), primitive("Sigmoid")
    one, two = from_numpy(np.array(1, np.float32)), from_numpy(np.array(2, np.float32))
    return lambda a: sub_(mul(sig(mul(a, two)), two), one)


def _unary(name, host, mindspore=None, derivative=None, dtypes=FLOATS, uses_output=False, guard=_nonempty):
    """`derivative(out, a)` gives f'(a) as a Value; the cotangent is g * conj(f')."""
    vjp = [lambda g, out, a: g * conj_of(derivative(out, a))] if derivative else None
    kernel = mindspore if mindspore is None or callable(mindspore) else (lambda: primitive(mindspore))
    return _define(name, _single_or_wide(host), kernel, vjp=vjp, dtypes=dtypes, guard=guard, uses_output=uses_output)


neg = _define(
    "neg", np.negative, lambda: primitive("Neg"), vjp=[lambda g, out, a: neg(g)], uses_output=False, dtypes=FLOATS, guard=_nonempty
)
conj = _define("conj", np.conj, vjp=[lambda g, out, a: conj(g)], uses_output=False)
real = _define("real", lambda a: a.real.copy(), vjp=[lambda g, out, a: cast(g, dtype=a.dtype)], uses_output=False)
imag = _define(
    "imag", lambda a: a.imag.copy(), vjp=[lambda g, out, a: mul(cast(g, dtype=a.dtype), constant(1j, a.dtype))], uses_output=False
)
make_complex = _define(
    "make_complex",
    lambda re, im: (
        (re + 1j * im).astype(np.result_type(re.dtype, np.complex64))
        if np.isfinite(re).all() and np.isfinite(im).all()
        else _complex_parts(re, im)
    ),
    vjp=[lambda g, out, re, im: _like(real(g), re), lambda g, out, re, im: _like(imag(g), im)],
    uses_output=False,
)


def _complex_parts(re, im):
    re, im = np.broadcast_arrays(re, im)
    out = np.empty(re.shape, np.result_type(re.dtype, np.complex64))
    out.real, out.imag = re, im
    return out


def _sgn(a):
    if a.dtype.kind in "fV":  # of NaN the sign is 0
        return (a > 0).astype(a.dtype) - (a < 0).astype(a.dtype)
    if a.dtype.kind != "c":
        return np.sign(a)
    size = np.abs(a)
    return np.where(size == 0, 0, a / np.where(size == 0, 1, size)).astype(a.dtype)


def _sgn_vjp(g, out, a):
    if a.dtype.kind != "c":
        return zeros_like(a)
    size = cast(absolute(a), dtype=a.dtype)
    safe = where(equal(size, constant(0, a.dtype)), constant(1, a.dtype), size)
    inner = cast(real(g * conj(out)), dtype=a.dtype)
    return where(equal(size, constant(0, a.dtype)), constant(0, a.dtype), (g - out * inner) / safe)


sgn = _define("sgn", _sgn, vjp=[_sgn_vjp])
absolute = _define(
    "absolute",
    np.abs,
    lambda: primitive("Abs"),
    vjp=[lambda g, out, a: (cast(g, dtype=a.dtype) if a.dtype.kind == "c" else g) * sgn(a)],
    uses_output=False,
    dtypes=FLOATS,
    guard=_nonempty,
)


def _rounding(name, host):
    return _define(name, host, vjp=[lambda g, out, a: zeros_like(a)], uses_output=False)


floor = _rounding("floor", np.floor)
ceil = _rounding("ceil", np.ceil)
trunc = _rounding("trunc", np.trunc)
rint = _rounding("rint", np.rint)

exp = _unary("exp", np.exp, "Exp", lambda out, a: out, uses_output=True)
exp2 = _unary("exp2", np.exp2, None, lambda out, a: out * math.log(2), uses_output=True)
expm1 = _unary("expm1", np.expm1, "Expm1", lambda out, a: out + 1, uses_output=True)
log = _unary("log", np.log, "Log", lambda out, a: reciprocal(a))
log2 = _unary("log2", np.log2, None, lambda out, a: reciprocal(a * math.log(2)))
log10 = _unary("log10", np.log10, None, lambda out, a: reciprocal(a * math.log(10)))
log1p = _unary("log1p", np.log1p, "Log1p", lambda out, a: reciprocal(a + 1))
sqrt = _unary("sqrt", np.sqrt, "Sqrt", lambda out, a: reciprocal(out * 2), uses_output=True)
rsqrt = _unary("rsqrt", lambda a: np.reciprocal(np.sqrt(a)), "Rsqrt", lambda out, a: out * out * out * -0.5, uses_output=True)
reciprocal = _unary("reciprocal", lambda a: 1 / a, "Reciprocal", lambda out, a: neg(out * out), uses_output=True)
square = _unary("square", np.square, "Square", lambda out, a: a * 2)
sin = _unary("sin", np.sin, "Sin", lambda out, a: cos(a))
cos = _unary("cos", np.cos, "Cos", lambda out, a: neg(sin(a)))
tan = _unary("tan", np.tan, None, lambda out, a: out * out + 1, uses_output=True)
asin = _unary("asin", np.arcsin, None, lambda out, a: rsqrt(1 - a * a))
acos = _unary("acos", np.arccos, None, lambda out, a: neg(rsqrt(1 - a * a)))
atan = _unary("atan", np.arctan, "Atan", lambda out, a: reciprocal(a * a + 1))
sinh = _unary("sinh", np.sinh, None, lambda out, a: cosh(a))
cosh = _unary("cosh", np.cosh, None, lambda out, a: sinh(a))
tanh = _unary("tanh", np.tanh, _tanh_of_sigmoid, lambda out, a: 1 - out * out, dtypes=SINGLE, uses_output=True)
asinh = _unary("asinh", np.arcsinh, None, lambda out, a: rsqrt(a * a + 1))
acosh = _unary("acosh", np.arccosh, None, lambda out, a: rsqrt(a - 1) * rsqrt(a + 1) if a.dtype.kind == "c" else rsqrt(a * a - 1))
atanh = _unary("atanh", np.arctanh, None, lambda out, a: reciprocal(1 - a * a))


def _sigmoid(a):
    if a.dtype.kind == "c":
        return 1 / (1 + np.exp(-a))
    return sp.expit(a)


sigmoid = _unary("sigmoid", _sigmoid, "Sigmoid", lambda out, a: out * (1 - out), uses_output=True)
erf = _unary("erf", sp.erf, "Erf", lambda out, a: exp(neg(a * a)) * (2 / math.sqrt(math.pi)), dtypes=SINGLE)
erfc = _unary("erfc", sp.erfc, None, lambda out, a: exp(neg(a * a)) * (-2 / math.sqrt(math.pi)))
erfinv = _unary("erfinv", sp.erfinv, None, lambda out, a: exp(out * out) * (math.sqrt(math.pi) / 2), uses_output=True)
relu = _define(
    "relu",
    lambda a: np.maximum(a, np.zeros((), a.dtype)),
    lambda: primitive("ReLU"),
    vjp=[lambda g, out, a: where(out > 0, g, constant(0, g.dtype))],
    dtypes=FLOATS,
    guard=_nonempty,
)
def _softplus(x):
    """log(1 + exp(x)); NumPy's logaddexp takes ten times as long and is half as exact."""
    made = np.abs(x)
    np.exp(np.negative(made, out=made), out=made)
    return np.maximum(x, np.zeros((), x.dtype)) + np.log1p(made, out=made)


softplus = _define(
    "softplus",
    lambda a: _single_or_wide(_softplus)(np.atleast_1d(a)).reshape(a.shape),
    vjp=[lambda g, out, a: g * sigmoid(a)],
    uses_output=False,
)


# ------------------------------------------------------------------------------------------------ two arguments
def _binary(name, host, mindspore, da, db, dtypes=FLOATS, uses_output=False, guard=_nonempty):
    """`da`, `db`: cotangent of each input before summing over broadcast axes, as f(g, out, a, b)."""
    vjp = [lambda g, out, a, b: _like(da(g, out, a, b), a), lambda g, out, a, b: _like(db(g, out, a, b), b)]
    kernel = mindspore if mindspore is None or callable(mindspore) else (lambda: primitive(mindspore))
    return _define(name, host, kernel, vjp=vjp, dtypes=dtypes, guard=guard, uses_output=uses_output)


_WIDE = 1 << 15  # elements of a result from which a second kernel costs less than broadcasting inside of Add or Mul


def _broadcasts(a, b):
    """The shape of the result where one operand is spread over the other and the result is large, else None."""
    one, other = a.shape, b.shape
    if one == other or not one or not other:
        return None
    shape = np.broadcast_shapes(one, other)
    return shape if math.prod(shape) >= _WIDE else None


def _mindspore_add():
    """MindSpore's Add broadcasts at a quarter of the speed of its Sub, and a - (-b) is a + b to the last bit."""
    plain, less_, negative = primitive("Add"), primitive("Sub"), primitive("Neg")

    def run(a, b):
        if _broadcasts(a, b) is None:
            return plain(a, b)
        return less_(a, negative(b)) if a.size >= b.size else less_(b, negative(a))

    return run


def _mindspore_mul():
    """MindSpore's Mul broadcasts, forward and for its gradient, at half the speed of one on what is spread out before."""
    plain = primitive("Mul")

    def run(a, b):
        shape = _broadcasts(a, b)
        if shape is not None:
            spread = primitive("BroadcastTo", shape)
            a, b = [v if v.shape == shape else spread(v) for v in (a, b)]
        return plain(a, b)

    return run


def _add(a, b):
    return np.add(a, b) if a.dtype.kind != "b" else np.logical_or(a, b)


def _pow(a, b):
    if a.dtype.kind == "b":
        return a | ~b
    if a.dtype.kind in "iu":  # NumPy refuses negative integer powers; PyTorch truncates the real result
        positive = np.power(a, np.maximum(b, 0)) if b.dtype.kind == "i" else np.power(a, b)
        if b.dtype.kind == "i" and (b < 0).any():
            small = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0)).astype(positive.dtype)
            return np.where(b < 0, small, positive)
        return positive
    return np.power(a, b)


def _pow_base(g, out, a, b):
    zero = constant(0, b.dtype)
    slope = b * pow(a, b - 1)
    return where(equal(b, zero), zero, g * conj_of(slope))


def _pow_exponent(g, out, a, b):
    zero = constant(0, a.dtype)
    if a.dtype.kind == "c":
        flat = equal(a, zero)
        return where(flat, zero, g * conj(out * log(where(flat, constant(1, a.dtype), a))))
    flat = logical_and(equal(a, zero), greater_equal(b, zero))
    return where(flat, zero, g * out * log(where(flat, constant(1, a.dtype), a)))


def _power(a, exponent):
    """NumPy's power takes a hundred times as long for negative numbers; theirs to a whole power is that of their sizes."""
    if exponent == 3:
        return a * a * a
    if a.dtype.kind == "f" and a.size and exponent == np.rint(exponent) and abs(exponent) < 64 and np.minimum.reduce(a, None) < 0:
        made = np.power(np.abs(a), exponent)
        return np.copysign(made, a) if exponent % 2 else made
    return np.power(a, exponent)


def _pow_number_ms(*, exponent):
    power, number = primitive("Pow"), from_numpy(np.array(exponent, np.float32))
    return lambda a: power(a, number)


def _pow_number_vjp(g, out, a, *, exponent):
    if exponent == 0:
        return zeros_like(a)
    return g * conj_of(pow_number(a, exponent=exponent - 1) * exponent)


pow_number = _define(
    "pow_number",
    lambda a, *, exponent: _single_or_wide(lambda x: _power(x, np.asarray(exponent).astype(x.dtype)))(a),
    _pow_number_ms,
    vjp=[_pow_number_vjp],
    uses_output=False,
    dtypes=SINGLE,
    guard=lambda a, *, exponent: a.size > 0 and exponent != 0,
)


def _shared(g, lost, tie):
    """The cotangent of one of two: half at a tie, none where it lost; a NaN on either side passes it to both."""
    return where(lost, constant(0, g.dtype), where(tie, g * 0.5, g))


add = _binary("add", _add, _mindspore_add, lambda g, out, a, b: g, lambda g, out, a, b: g)
sub = _binary("sub", np.subtract, "Sub", lambda g, out, a, b: g, lambda g, out, a, b: neg(g))
mul = _binary("mul", np.multiply, _mindspore_mul, lambda g, out, a, b: g * conj_of(b), lambda g, out, a, b: g * conj_of(a))
div = _binary(
    "div", np.true_divide, "RealDiv", lambda g, out, a, b: g / conj_of(b), lambda g, out, a, b: neg(g) * conj_of((a / b) / b)
)
pow = _binary("pow", _pow, None, _pow_base, _pow_exponent, uses_output=True)


def _keeping_nan(name):
    """MindSpore's Maximum and Minimum may pass over a NaN; a sum has it, and hands its cotangent to both."""

    def kernel():
        best, select, add_, differ, either = map(primitive, (name, "Select", "Add", "NotEqual", "LogicalOr"))

        def run(a, b):
            if finite(a) and finite(b):
                return best(a, b)
            return select(either(differ(a, a), differ(b, b)), add_(a, b), best(a, b))

        return run

    return kernel


maximum = _binary(
    "maximum",
    np.maximum,
    _keeping_nan("Maximum"),
    lambda g, out, a, b: _shared(g, less(a, b), equal(a, b)),
    lambda g, out, a, b: _shared(g, less(b, a), equal(a, b)),
    dtypes=SINGLE,
)
minimum = _binary(
    "minimum",
    np.minimum,
    _keeping_nan("Minimum"),
    lambda g, out, a, b: _shared(g, less(b, a), equal(a, b)),
    lambda g, out, a, b: _shared(g, less(a, b), equal(a, b)),
    dtypes=SINGLE,
)
fmax = _binary(
    "fmax",
    np.fmax,
    None,
    lambda g, out, a, b: where(logical_or(greater_equal(a, b), isnan(b)), g, constant(0, g.dtype)),
    lambda g, out, a, b: where(logical_or(greater_equal(a, b), isnan(b)), constant(0, g.dtype), g),
)
fmin = _binary(
    "fmin",
    np.fmin,
    None,
    lambda g, out, a, b: where(logical_or(less_equal(a, b), isnan(b)), g, constant(0, g.dtype)),
    lambda g, out, a, b: where(logical_or(less_equal(a, b), isnan(b)), constant(0, g.dtype), g),
)


def _arc(g, part, a, b):
    """g * part / (a² + b²), nothing where both are zero."""
    size = a * a + b * b
    none = equal(size, constant(0, size.dtype))
    return where(none, constant(0, g.dtype), g * (part / where(none, constant(1, size.dtype), size)))


atan2 = _binary("atan2", np.arctan2, None, lambda g, out, a, b: _arc(g, b, a, b), lambda g, out, a, b: _arc(g, neg(a), a, b))


def _remainder(a, b):
    if a.dtype.kind in "iu":
        return np.remainder(a, b)
    r = np.fmod(a, b)
    return np.where((r != 0) & ((r < 0) != (b < 0)), r + b, r).astype(a.dtype)


remainder = _binary("remainder", _remainder, None, lambda g, out, a, b: g, lambda g, out, a, b: neg(g) * floor_divide(a, b))
fmod = _binary("fmod", np.fmod, None, lambda g, out, a, b: g, lambda g, out, a, b: neg(g) * trunc_divide(a, b))
copysign = _binary(
    "copysign",
    np.copysign,
    None,
    lambda g, out, a, b: g * where(equal(a, constant(0, a.dtype)), constant(0, a.dtype), out / a),
    lambda g, out, a, b: zeros_like(b),
    uses_output=True,
)
hypot = _binary("hypot", np.hypot, None, lambda g, out, a, b: g * (a / out), lambda g, out, a, b: g * (b / out), uses_output=True)


def _logaddexp(a, b):
    if a.dtype.kind != "c":
        return _single_or_wide(np.logaddexp)(a, b)
    first = a.real >= b.real
    high, low = np.where(first, a, b), np.where(first, b, a)
    return np.where(np.isinf(high.real), high, high + np.log1p(np.exp(low - high))).astype(a.dtype)


logaddexp = _binary(
    "logaddexp",
    _logaddexp,
    None,
    lambda g, out, a, b: g * conj_of(exp(a - out)),
    lambda g, out, a, b: g * conj_of(exp(b - out)),
    uses_output=True,
)


def _exact(name, host):
    """A function whose results carry no gradient."""
    return _define(name, host, differentiable=False)


greater = _exact("greater", np.greater)
greater_equal = _exact("greater_equal", np.greater_equal)
less = _exact("less", np.less)
less_equal = _exact("less_equal", np.less_equal)
equal = _exact("equal", np.equal)
not_equal = _exact("not_equal", np.not_equal)
logical_and = _exact("logical_and", np.logical_and)
logical_or = _exact("logical_or", np.logical_or)
logical_xor = _exact("logical_xor", np.logical_xor)
bitwise_and = _exact("bitwise_and", np.bitwise_and)
bitwise_or = _exact("bitwise_or", np.bitwise_or)
bitwise_xor = _exact("bitwise_xor", np.bitwise_xor)
floor_divide = _exact("floor_divide", np.floor_divide)
trunc_divide = _exact("trunc_divide", lambda a, b: np.trunc(a / b).astype(a.dtype))
gcd = _exact("gcd", np.gcd)
lcm = _exact("lcm", np.lcm)
nextafter = _exact("nextafter", np.nextafter)
logical_not = _exact("logical_not", np.logical_not)
isnan = _exact("isnan", np.isnan)
isinf = _exact("isinf", np.isinf)
isfinite = _exact("isfinite", np.isfinite)
signbit = _exact("signbit", np.signbit)
invert = _exact("invert", np.invert)


# ------------------------------------------------------------------------------------------------ choosing
def _where_guard(condition, a, b):
    return a.dtype in FLOATS and condition.size > 0 and a.size > 0 and b.size > 0  # Select broadcasts, gradients too


def _mindspore_where():
    """For a number in place of one of the two, MaskedFill: a third of what Select takes."""
    select, fill, invert_ = primitive("Select"), primitive("MaskedFill"), primitive("LogicalNot")

    def run(c, a, b):
        if c.shape and not a.shape and b.shape == c.shape:
            return fill(b, c, a)
        if c.shape and not b.shape and a.shape == c.shape:
            return fill(a, invert_(c), b)
        return select(c, a, b)

    return run


where = _define(
    "where",
    lambda c, a, b: np.where(c, a, b),
    _mindspore_where,
    vjp=[
        None,
        lambda g, out, c, a, b: _like(where(c, g, constant(0, g.dtype)), a),
        lambda g, out, c, a, b: _like(where(c, constant(0, g.dtype), g), b),
    ],
    dtypes=frozenset([np.dtype(bool)]),
    guard=_where_guard,
    uses_output=False,
)


# ------------------------------------------------------------------------------------------------ products with logarithms
def _xlogy_first(g, out, a, b):
    none = logical_and(equal(a, constant(0, a.dtype)), less_equal(b, constant(0, b.dtype)))
    return where(none, constant(0, g.dtype), g * log(where(none, constant(1, b.dtype), b)))


xlogy = _binary(
    "xlogy",
    lambda a, b: _single_or_wide(lambda x, y: np.where(np.isnan(y), y, sp.xlogy(x, y)))(a, b),
    None,
    _xlogy_first,
    lambda g, out, a, b: g * (a / b),
)
logaddexp2 = _binary(
    "logaddexp2",
    lambda a, b: _single_or_wide(np.logaddexp2)(a, b),
    None,
    lambda g, out, a, b: g * exp2(a - out),
    lambda g, out, a, b: g * exp2(b - out),
    uses_output=True,
)


def _logit(a, *, eps):
    if eps is not None:
        a = np.minimum(np.maximum(a, np.asarray(eps, a.dtype)), np.asarray(1 - eps, a.dtype))
    return np.log(a / (1 - a))


def _logit_vjp(g, out, a, *, eps):
    slope = g / (a * (1 - a))
    if eps is None:
        inside = logical_and(greater_equal(a, constant(0, a.dtype)), less_equal(a, constant(1, a.dtype)))
        return where(inside, slope, constant(float("nan"), g.dtype))
    inside = logical_and(greater_equal(a, constant(eps, a.dtype)), less_equal(a, constant(1 - eps, a.dtype)))
    return where(inside, slope, constant(0, g.dtype))


logit = _define(
    "logit", lambda a, *, eps: _single_or_wide(functools.partial(_logit, eps=eps))(a), vjp=[_logit_vjp], uses_output=False
)


def _sinc_slope(out, a):
    angle = a * math.pi
    zero = equal(a, constant(0, a.dtype))
    safe = where(zero, constant(1, a.dtype), a)
    return where(zero, constant(0, a.dtype), (cos(angle) * angle - sin(angle)) / (safe * safe * math.pi))


sinc = _unary("sinc", np.sinc, None, _sinc_slope)

__all__ = [*NAMES, "conj_of"]
