"""Special functions: the gamma family, errors and normal distribution, Bessel functions, orthogonal polynomials."""

import math

import numpy as np
import scipy.special as sp

from msadapter_hook import prims
from msadapter_hook.tape import Value, constant

from .promotion import align_floating, floating, is_complex, is_floating
from .refusals import not_implemented
from .registry import operator
from .tables import OPERATORS, PATH

ALL = "function method inplace out"
_ROOT_TWO_PI = math.sqrt(2 * math.pi)


# ------------------------------------------------------------------------------------------------ kernels
def _rounded(function):
    """`function` in the dtype of its first input; halves compute in float32."""

    def kernel(a, *rest, **attributes):
        if a.dtype.itemsize < 4:
            wide = [x.astype(np.float32) for x in (a, *rest)]
            return np.asarray(function(*wide, **attributes)).astype(a.dtype)
        return np.asarray(function(a, *rest, **attributes)).astype(a.dtype, copy=False)

    return kernel


def _refused(name):
    def vjp(g, out, *inputs, **attributes):
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return vjp


def _kernel(name, function, slope=None, uses_output=False):
    """A host kernel of one input; `slope(out, a)` is its derivative, None where PyTorch has none either."""
    if slope is None:
        return prims.host_call(name, _rounded(function), differentiable=False)
    return prims.host_call(name, _rounded(function), vjp=[lambda g, out, a: g * slope(out, a)], uses_output=uses_output)


def _declare(name, primitive, *, namespace="special", forms="function out", aliases=(), saves="self", kernel=None, halves=True):
    def body(self):
        value = floating(self)
        if is_complex(value) or not halves and value.dtype.itemsize < 4:
            raise not_implemented(kernel or f"{name}_cpu", value)
        return primitive(value)

    body.__doc__ = f"Elementwise {name}; integers give the default floating dtype. Source: PyTorch, torch.special.{name}."
    operator(f"{name}(Tensor self) -> Tensor", namespace=namespace, forms=forms, saves=saves, aliases=aliases)(body)


def _at_zero(value, a, number):
    """`value`, where `a` is zero (or NaN, as in PyTorch) `number`."""
    return prims.where(prims.absolute(a) > constant(0, a.dtype), value, constant(number, a.dtype))


def _nonzero(a):
    return prims.where(prims.equal(a, constant(0, a.dtype)), constant(1, a.dtype), a)


# ------------------------------------------------------------------------------------------------ gamma
def _lgamma(a):
    return np.where(np.isinf(a), np.asarray(np.inf, a.dtype), sp.gammaln(a))


def _trigamma(x):
    """By reflection below 1/2, six steps up and the asymptotic series, in the dtype of `x`."""
    low = x < 0.5
    half = x.dtype.type
    sine = np.sin(half(np.pi) * x)
    total = np.where(low, -(half(np.pi) * half(np.pi)) / (sine * sine), half(0))
    x = np.where(low, 1 - x, x)
    for _ in range(6):
        total = total + 1 / (x * x)
        x = x + 1
    square = 1 / (x * x)
    total = total + (1 + 1 / (2 * x) + square * (half(1 / 6) - square * (half(1 / 30) - square * half(1 / 42)))) / x
    return np.where(low, -total, total)


def _polygamma(a, *, n):
    if n == 0:
        return sp.digamma(a)
    if n == 1:
        return _trigamma(a)
    wide = a.astype(np.float64)
    sign = 1.0 if n % 2 else -1.0
    return sign * math.exp(math.lgamma(n + 1)) * sp.zeta(float(n + 1), wide)


_polygamma_kernel = prims.host_call(
    "polygamma", _rounded(_polygamma), vjp=[lambda g, out, a, *, n: g * _polygamma_kernel(a, n=n + 1)], uses_output=False
)
_lgamma_kernel = _kernel("lgamma", _lgamma, lambda out, a: _polygamma_kernel(a, n=0))

_declare("lgamma", _lgamma_kernel, namespace="", forms=ALL, aliases=("special.gammaln",), kernel="lgamma_vml_cpu")
_declare(
    "digamma",
    lambda a: _polygamma_kernel(a, n=0),
    namespace="",
    forms=ALL,
    aliases=("special.digamma", "special.psi"),
    kernel="digamma",
)


def polygamma(n, self):
    """The n-th derivative of digamma. Source: PyTorch, torch.polygamma."""
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    value = floating(self)
    if is_complex(value):
        raise not_implemented("polygamma", value)
    return _polygamma_kernel(value, n=n)


operator("polygamma(int n, Tensor self) -> Tensor", forms="function out", saves="self", aliases=("special.polygamma",))(polygamma)
operator(
    "polygamma.method(Tensor self, int n) -> Tensor",
    forms="method inplace",
    saves="self",
    namespace="_methods",
    grad_name="PolygammaBackward0",
)(lambda self, n: polygamma(n, self))


@operator("mvlgamma(Tensor self, int p) -> Tensor", forms=ALL, saves="self", aliases=("special.multigammaln",))
def mvlgamma(self, p):
    """Logarithm of the multivariate gamma function of dimension p. Source: PyTorch, torch.mvlgamma."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    value = floating(self)
    if is_complex(value):
        raise not_implemented("mvlgamma", value)
    total = None
    for i in range(p):
        part = _lgamma_kernel(value - i / 2 if i else value)
        total = part if total is None else total + part
    return total + p * (p - 1) / 4 * math.log(math.pi)


def _of_gamma_density(g, out, a, x):
    density = prims.exp((a - 1) * prims.log(x) - x - _lgamma_kernel(a))
    return prims.sum_to(g * density, shape=x.shape)


_igamma = prims.host_call("igamma", _rounded(sp.gammainc), vjp=[_refused("igamma: input"), _of_gamma_density], uses_output=False)
_igammac = prims.host_call(
    "igammac",
    _rounded(sp.gammaincc),
    vjp=[_refused("igammac: input"), lambda g, out, a, x: prims.neg(_of_gamma_density(g, out, a, x))],
    uses_output=False,
)


def _declare_incomplete(name, primitive, public):
    def body(self, other):
        from .promotion import align

        a, x = align(self, other)
        if not is_floating(a):
            raise not_implemented(f"{name}_cpu", a)
        return primitive(a, x)

    body.__doc__ = f"The regularized incomplete gamma function. Source: PyTorch, torch.special.{public}."
    operator(f"{name}(Tensor self, Tensor other) -> Tensor", forms=ALL, saves="self other", aliases=(f"special.{public}",))(body)


_declare_incomplete("igamma", _igamma, "gammainc")
_declare_incomplete("igammac", _igammac, "gammaincc")


# ------------------------------------------------------------------------------------------------ two operands
def _declare_two(name, primitive):
    def body(self, other):
        if not isinstance(self, Value) and not isinstance(other, Value):
            raise TypeError(
                f"special_{name}() received an invalid combination of arguments - got "
                f"({type(self).__name__}, {type(other).__name__}), but expected a Tensor among them"
            )
        a, b = align_floating(self, other)
        if is_complex(a):
            raise not_implemented(f"{name}_cpu", a)
        return primitive(a, b)

    body.__doc__ = f"Elementwise {name}. Source: PyTorch, torch.special.{name}."
    operator(
        f"{name}.Tensor(Operand self, Operand other) -> Tensor", namespace="special", forms="function out", saves="self other"
    )(body)


_zeta = prims.host_call(
    "zeta",
    _rounded(sp.zeta),
    vjp=[_refused("zeta"), lambda g, out, s, q: prims.sum_to(g * prims.neg(s) * _zeta(s + 1, q), shape=q.shape)],
    uses_output=False,
)


def _xlog1py_first(g, out, a, b):
    none = prims.logical_and(prims.equal(a, constant(0, a.dtype)), b <= constant(-1, b.dtype))
    found = prims.where(none, constant(0, g.dtype), g * prims.log1p(prims.where(none, constant(0, b.dtype), b)))
    return prims.sum_to(found, shape=a.shape)


_xlog1py = prims.host_call(
    "xlog1py",
    _rounded(lambda a, b: np.where(np.isnan(b), b, sp.xlog1py(a, b))),
    vjp=[_xlog1py_first, lambda g, out, a, b: prims.sum_to(g * (a / (b + 1)), shape=b.shape)],
    uses_output=False,
)
_declare_two("zeta", _zeta)
_declare_two("xlog1py", _xlog1py)


# ------------------------------------------------------------------------------------------------ normal distribution
_erfcx = _kernel("erfcx", sp.erfcx, lambda out, a: a * out * 2 - 2 / math.sqrt(math.pi), uses_output=True)
_declare("erfcx", _erfcx, halves=False)
_declare("ndtr", _kernel("ndtr", sp.ndtr, lambda out, a: prims.exp(a * a * -0.5) * (1 / _ROOT_TWO_PI)))
_ndtri = _kernel("ndtri", sp.ndtri, lambda out, a: prims.exp(out * out * 0.5) * _ROOT_TWO_PI, uses_output=True)
_log_ndtr = _kernel("log_ndtr", sp.log_ndtr, lambda out, a: math.sqrt(2 / math.pi) / _erfcx(a * (-1 / math.sqrt(2))))
_declare("ndtri", _ndtri, saves="result", halves=False)
_declare("log_ndtr", _log_ndtr, halves=False)


def _entr(a):
    return np.where(np.isnan(a), a, np.where(a > 0, -a * np.log(np.where(a > 0, a, 1)), np.where(a == 0, 0, -np.inf)))


_declare("entr", _kernel("entr", _entr, lambda out, a: prims.neg(prims.log(a) + 1)))


# ------------------------------------------------------------------------------------------------ Bessel functions
_i0 = _kernel("i0", sp.i0, lambda out, a: _i1(a))
_i1 = _kernel("i1", sp.i1, lambda out, a: _at_zero(_i0(a) - out / _nonzero(a), a, 0.5), uses_output=True)
_i0e = _kernel("i0e", sp.i0e, lambda out, a: _i1e(a) - prims.sgn(a) * out, uses_output=True)
_i1e = _kernel(
    "i1e", sp.i1e, lambda out, a: _at_zero(_i0e(a) - out * (prims.sgn(a) + prims.reciprocal(_nonzero(a))), a, 0.5), uses_output=True
)
_declare("i0", _i0, namespace="", forms=ALL, aliases=("special.i0",), kernel="i0_cpu")
_declare("i1", _i1)
_declare("i0e", _i0e)
_declare("i1e", _i1e)


def _spherical_j0(a):
    small = np.abs(a) < 0.5
    safe = np.where(small, 1, a)
    square = a * a
    series = 1 + square * (-1 / 6 + square * (1 / 120 + square * (-1 / 5040 + square * (1 / 362880 - square / 39916800))))
    return np.where(np.isinf(a), 0, np.where(small, series, np.sin(safe) / safe))


for _name, _function in {
    "bessel_j0": sp.j0,
    "bessel_j1": sp.j1,
    "bessel_y0": sp.y0,
    "bessel_y1": sp.y1,
    "modified_bessel_i0": sp.i0,
    "modified_bessel_i1": sp.i1,
    "modified_bessel_k0": sp.k0,
    "modified_bessel_k1": sp.k1,
    "scaled_modified_bessel_k0": sp.k0e,
    "scaled_modified_bessel_k1": sp.k1e,
    "airy_ai": lambda a: sp.airy(a)[0],
    "spherical_bessel_j0": _spherical_j0,
}.items():
    _declare(_name, _kernel(f"special_{_name}", _function), halves=False)


# ------------------------------------------------------------------------------------------------ orthogonal polynomials
def _recurrence(first, step):
    """The polynomial of degree n by its three-term recurrence: `first(x)` of degree 1, `step(x, k, q, p)` the next."""

    def evaluate(x, n):
        x, n = np.broadcast_arrays(x, n)
        degree = np.trunc(n)
        before, here = np.ones_like(x), first(x)
        out = np.where(degree < 0, 0, np.where(degree < 1, before, here))
        top = degree[np.isfinite(degree)].max(initial=1)
        for k in range(1, int(top)):
            before, here = here, step(x, k, here, before)
            out = np.where(degree > k, here, out)
        return np.where(np.isnan(n), n, out)

    return evaluate


def _chebyshev(x, k, q, p):
    return 2 * x * q - p


def _shifted(first):
    return _recurrence(lambda x: first(2 * x - 1), lambda x, k, q, p: 2 * (2 * x - 1) * q - p)


_FIRST = {"t": lambda x: x, "u": lambda x: 2 * x, "v": lambda x: 2 * x - 1, "w": lambda x: 2 * x + 1}
_POLYNOMIALS = {f"chebyshev_polynomial_{kind}": _recurrence(first, _chebyshev) for kind, first in _FIRST.items()}
_POLYNOMIALS.update({f"shifted_chebyshev_polynomial_{kind}": _shifted(first) for kind, first in _FIRST.items()})
_POLYNOMIALS.update(
    {
        "hermite_polynomial_h": _recurrence(lambda x: 2 * x, lambda x, k, q, p: 2 * x * q - 2 * k * p),
        "hermite_polynomial_he": _recurrence(lambda x: x, lambda x, k, q, p: x * q - k * p),
        "laguerre_polynomial_l": _recurrence(lambda x: 1 - x, lambda x, k, q, p: ((2 * k + 1 - x) * q - k * p) / (k + 1)),
        "legendre_polynomial_p": _recurrence(lambda x: x, lambda x, k, q, p: ((2 * k + 1) * x * q - k * p) / (k + 1)),
    }
)


def _declare_polynomial(name, evaluate):
    primitive = prims.host_call(f"special_{name}", _rounded(evaluate), differentiable=False)

    def body(x, n):
        if not isinstance(x, Value) and not isinstance(n, Value):
            raise TypeError(
                f"special_{name}() received an invalid combination of arguments - got "
                f"({type(x).__name__}, {type(n).__name__}), but expected a Tensor among them"
            )
        a, b = align_floating(x, n)
        if is_complex(a):
            raise not_implemented(f"{name}_cpu", a)
        return primitive(a, b)

    body.__doc__ = f"The polynomial of degree n at x. Source: PyTorch, torch.special.{name}."
    operator(f"{name}(Operand x, Operand n) -> Tensor", namespace="special", forms="function out")(body)


for _name, _evaluate in _POLYNOMIALS.items():
    _declare_polynomial(_name, _evaluate)


PATH.update(dict.fromkeys([name for name in OPERATORS if name.startswith("special.")], "host"))
PATH.update(dict.fromkeys(("lgamma", "digamma", "polygamma", "mvlgamma", "igamma", "igammac", "i0"), "host"))
