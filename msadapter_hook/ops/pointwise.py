"""Arithmetic and comparison, element by element."""

import builtins
import math

import ml_dtypes
import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import Value, constant
from msadapter_hook.tensor import dtypes
from msadapter_hook.tensor.geometry import broadcast_shapes

from .promotion import (
    align,
    align_floating,
    dtype_of,
    floating,
    is_complex,
    is_floating,
    is_integral,
)
from .refusals import not_implemented
from .registry import operator

ALL = "function method inplace out"


# ------------------------------------------------------------------------------------------------ arithmetic
def _scaled(other, alpha, dtype_operands):
    """alpha * other, with PyTorch's checks of alpha's type."""
    if alpha == 1 and not isinstance(alpha, bool):
        return other
    boolean = all((isinstance(x, Value) and x.dtype.kind == "b") or isinstance(x, bool) for x in dtype_operands)
    if isinstance(alpha, bool) and not boolean:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float):
        for x in dtype_operands:
            if isinstance(x, Value) and x.dtype.kind in "fcV" or isinstance(x, (float, complex)):
                break
        else:
            raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    return other * alpha if isinstance(other, Value) else other * alpha


@operator("add.Tensor(Operand self, Operand other, *, Scalar alpha=1) -> Tensor", forms=ALL)
def add(self, other, alpha=1):
    """Sum. Shapes broadcast; the dtype is the promoted one. Source: PyTorch, torch.add."""
    a, b = align(self, other)
    return prims.add(a, _scaled(b, alpha, (self, other)))


@operator("sub.Tensor(Operand self, Operand other, *, Scalar alpha=1) -> Tensor", forms=ALL, aliases=("subtract",))
def sub(self, other, alpha=1):
    """Difference. Source: PyTorch, torch.sub."""
    booleans = [isinstance(x, bool) or isinstance(x, Value) and x.dtype.kind == "b" for x in (self, other)]
    if all(booleans):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator "
            "instead."
        )
    if any(booleans):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` "
            "or `logical_not()` operator instead."
        )
    a, b = align(self, other)
    return prims.sub(a, _scaled(b, alpha, (self, other)))


@operator("mul.Tensor(Operand self, Operand other) -> Tensor", forms=ALL, saves="self:other other:self", aliases=("multiply",))
def mul(self, other):
    """Product. Source: PyTorch, torch.mul."""
    return prims.mul(*align(self, other))


@operator(
    "div.Tensor(Operand self, Operand other, *, str? rounding_mode=None) -> Tensor",
    forms=ALL,
    saves="self:other other",
    aliases=("divide",),
)
def div(self, other, rounding_mode=None):
    """Quotient; integers give floating point unless a rounding mode is given. Source: PyTorch, torch.div."""
    if rounding_mode is None:
        return prims.div(*align_floating(self, other))
    a, b = align(self, other)
    if rounding_mode == "floor":
        return floor_quotient(a, b)
    if rounding_mode != "trunc":
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    if is_integral(a):
        refuse_zero(b)
        return truncated_quotient(a, b)
    return prims.trunc(a / b)


def refuse_zero(b):
    """Raise for an integer divisor of zero."""
    if (b.numpy == 0).any():
        raise RuntimeError("ZeroDivisionError")


def _integer_trunc(a, b):
    q = np.floor_divide(a, b)
    if a.dtype.kind == "u":
        return q
    return np.where((q < 0) & (q * b != a), q + 1, q).astype(a.dtype)


truncated_quotient = prims.host_call("truncated_quotient", _integer_trunc, differentiable=False)


def _floor_quotient(a, b):
    if a.dtype.kind in "biu":
        return np.floor_divide(a, b)
    wide = a.dtype if a.dtype.itemsize >= 4 else np.dtype(np.float32)
    x, y = a.astype(wide), b.astype(wide)
    rest = np.fmod(x, y)
    q = (x - rest) / y
    q = np.where((rest != 0) & ((y < 0) != (rest < 0)), q - 1, q)
    nearest = np.floor(q)
    nearest = np.where(q - nearest > 0.5, nearest + 1, nearest)
    out = np.where(q != 0, nearest, np.copysign(np.zeros((), wide), x / y))
    return np.where(y == 0, x / y, out).astype(a.dtype)


_floor_quotient_primitive = prims.host_call(
    "floor_quotient",
    _floor_quotient,
    vjp=[lambda g, out, a, b: prims.zeros_like(a), lambda g, out, a, b: prims.zeros_like(b)],
    uses_output=False,
)


def floor_quotient(a, b):
    """The quotient rounded down, as Python rounds it; RuntimeError for an integer zero."""
    if a.dtype.kind in "bc":
        raise not_implemented("div_floor_cpu", a)
    if is_integral(a):
        refuse_zero(b)
    return _floor_quotient_primitive(a, b)


def no_derivative(name):
    """The gradient of an operator that has none: asking for it is an error."""

    def vjp(g, out, *inputs):
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return [vjp, vjp]


_floor_divide = prims.host_call("floor_divide", _floor_quotient, vjp=no_derivative("floor_divide"), uses_output=False)


@operator("floor_divide.Tensor(Operand self, Operand other) -> Tensor", forms=ALL, grad_name="NotImplemented")
def floor_divide(self, other):
    """Quotient rounded down; has no derivative. Source: PyTorch, torch.floor_divide."""
    a, b = align(self, other)
    if a.dtype.kind in "bc":
        raise not_implemented("div_floor_cpu", a)
    if is_integral(a):
        refuse_zero(b)
    return _floor_divide(a, b)


@operator("pow.Tensor(Operand self, Operand exponent) -> Tensor", forms=ALL, saves="self")
def pow(self, exponent):
    """Power. Source: PyTorch, torch.pow."""
    if isinstance(self, Value) and is_integral(self, boolean=False) and isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    a, b = align(self, exponent)
    if not isinstance(exponent, Value) and not is_integral(a):
        if exponent == 2:
            return prims.square(a)
        if exponent == 1:
            return prims.mul(a, constant(1, a.dtype))
        if exponent == 0.5:
            return prims.sqrt(a)
        if exponent == 3 and not prims.PREFER_HOST:
            return a * a * a
        if exponent == -1 and a.dtype.kind == "f" and a.dtype.itemsize > 2:  # as PyTorch's kernel has it; a power takes ten times as long
            return prims.reciprocal(a)
        return prims.pow_number(a, exponent=exponent)
    return prims.pow(a, b)


@operator("neg(Tensor self) -> Tensor", forms=ALL, aliases=("negative",))
def neg(self):
    """Negation. Source: PyTorch, torch.neg."""
    if self.dtype.kind == "b":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )
    return prims.neg(self)


# ------------------------------------------------------------------------------------------------ functions of one tensor
def _floating_unary(name, saves="self", aliases=(), forms=ALL, namespace=""):
    primitive = getattr(prims, name)
    real = name.startswith("erf")

    def body(self):
        value = floating(self)
        if real and is_complex(value):
            raise not_implemented(f"{name}_vml_cpu", value)
        return primitive(value)

    body.__doc__ = f"Elementwise {name}; integers give the default floating dtype. Source: PyTorch, torch.{name}."
    operator(f"{name}(Tensor self) -> Tensor", forms=forms, saves=saves, aliases=aliases, namespace=namespace)(body)


for _name, _saves, _aliases in [
    ("exp", "result", ()),
    ("exp2", "result", ("special.exp2",)),
    ("expm1", "result", ("special.expm1",)),
    ("log", "self", ()),
    ("log2", "self", ()),
    ("log10", "self", ()),
    ("log1p", "self", ("special.log1p",)),
    ("sqrt", "result", ()),
    ("rsqrt", "result", ()),
    ("reciprocal", "result", ()),
    ("sin", "self", ()),
    ("cos", "self", ()),
    ("tan", "result", ()),
    ("asin", "self", ("arcsin",)),
    ("acos", "self", ("arccos",)),
    ("atan", "self", ("arctan",)),
    ("sinh", "self", ()),
    ("cosh", "self", ()),
    ("tanh", "result", ("nn.functional.tanh",)),
    ("asinh", "self", ("arcsinh",)),
    ("acosh", "self", ("arccosh",)),
    ("atanh", "self", ("arctanh",)),
    ("sigmoid", "result", ("special.expit", "nn.functional.sigmoid")),
    ("erf", "self", ("special.erf",)),
    ("erfc", "self", ("special.erfc",)),
    ("erfinv", "result", ("special.erfinv",)),
]:
    _floating_unary(_name, _saves, _aliases)


@operator("square(Tensor self) -> Tensor", forms=ALL, saves="self")
def square(self):
    """x * x. Source: PyTorch, torch.square."""
    return prims.square(self) if self.dtype.kind != "b" else prims.cast(self, dtype=np.dtype(np.int64))


@operator("abs(Tensor self) -> Tensor", forms=ALL, saves="self", aliases=("absolute",))
def abs(self):
    """Absolute value; of complex numbers, a real tensor. Source: PyTorch, torch.abs."""
    if self.dtype.kind == "b":
        raise not_implemented("abs_cpu", self)
    return prims.absolute(self)


def _rounding(name, primitive, aliases=()):
    def body(self):
        if self.dtype.kind == "b":
            raise not_implemented(f"{name}_vml_cpu", self)
        if is_integral(self):
            return prims.cast(self, dtype=self.dtype)
        if is_complex(self):
            raise NotImplementedError(f"{name} is not supported for complex inputs")
        return primitive(self)

    body.__doc__ = f"Elementwise {name}. Source: PyTorch, torch.{name}."
    operator(f"{name}(Tensor self) -> Tensor", forms=ALL, aliases=aliases)(body)


_rounding("floor", prims.floor)
_rounding("ceil", prims.ceil)
_rounding("trunc", prims.trunc, ("fix",))


def _round_decimals(a, *, decimals):
    wide = a if a.dtype.itemsize >= 4 else a.astype(np.float32)
    scale = wide.dtype.type(10.0 ** builtins.abs(decimals))
    found = np.rint(wide / scale) * scale if decimals < 0 else np.rint(wide * scale) / scale
    return found.astype(a.dtype)


_round_decimals_primitive = prims.host_call(
    "round_decimals", _round_decimals, vjp=[lambda g, out, a, *, decimals: prims.zeros_like(a)], uses_output=False
)


@operator("round(Tensor self, *, int decimals=0) -> Tensor", forms=ALL, aliases=("special.round",))
def round(self, decimals=0):
    """To the nearest integer (halves to even), or to a number of decimals. Source: PyTorch, torch.round."""
    if is_integral(self, boolean=False) and decimals == 0:
        return prims.cast(self, dtype=self.dtype)
    if not is_floating(self):
        raise not_implemented("round_cpu" if is_integral(self, boolean=False) else "round_vml_cpu", self)
    return prims.rint(self) if decimals == 0 else _round_decimals_primitive(self, decimals=decimals)


@operator("frac(Tensor self) -> Tensor", forms=ALL)
def frac(self):
    """The part behind the point, with the sign of the number. Source: PyTorch, torch.frac."""
    if not is_floating(self):
        raise not_implemented("frac_cpu", self)
    return self - prims.trunc(self)


@operator("sign(Tensor self) -> Tensor", forms=ALL)
def sign(self):
    """-1, 0 or 1. Source: PyTorch, torch.sign."""
    if is_complex(self):
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    return prims.sgn(self) if self.dtype.kind != "b" else prims.cast(self, dtype=self.dtype)


@operator("sgn(Tensor self) -> Tensor", forms=ALL, saves="self")
def sgn(self):
    """The sign; of complex numbers, the number over its absolute value. Source: PyTorch, torch.sgn."""
    return prims.sgn(self) if self.dtype.kind != "b" else prims.cast(self, dtype=self.dtype)


@operator("positive(Tensor self) -> Tensor", kind="composite")
def positive(self):
    """The tensor itself. Source: PyTorch, torch.positive."""
    if self._dtype is dtypes.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


def _scaled_unary(name, factor):
    def body(self):
        value = floating(self)
        if is_complex(value):
            raise RuntimeError(f"{name} is not supported for complex tensors.")
        return value * factor

    body.__doc__ = f"x * {factor}. Source: PyTorch, torch.{name}."
    operator(f"{name}(Tensor self) -> Tensor", forms=ALL)(body)


_scaled_unary("deg2rad", math.pi / 180)
_scaled_unary("rad2deg", 180 / math.pi)


def _nan_to_num(a, *, nan, posinf, neginf):
    limits = np.finfo(a.dtype) if a.dtype.kind in "fc" else ml_dtypes.finfo(a.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf

    def fix(x):
        out = np.where(np.isnan(x), np.asarray(nan).astype(x.dtype), x)
        out = np.where(x == np.inf, np.asarray(high).astype(x.dtype), out)
        return np.where(x == -np.inf, np.asarray(low).astype(x.dtype), out)

    if a.dtype.kind == "c":
        out = np.empty_like(a)
        out.real, out.imag = fix(a.real), fix(a.imag)
        return out
    return fix(a)


_nan_to_num_primitive = prims.host_call(
    "nan_to_num",
    _nan_to_num,
    vjp=[lambda g, out, a, **limits: prims.where(prims.isfinite(a), g, prims.zeros_like(g))],
    uses_output=False,
)


@operator("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", forms=ALL, saves="self")
def nan_to_num(self, nan=None, posinf=None, neginf=None):
    """NaN and infinities replaced by numbers. Source: PyTorch, torch.nan_to_num."""
    if is_integral(self):
        return prims.cast(self, dtype=self.dtype)
    return _nan_to_num_primitive(self, nan=float(nan or 0.0), posinf=posinf, neginf=neginf)


# ------------------------------------------------------------------------------------------------ comparison
def _comparison(name, primitive, aliases=(), ordered=True):
    def body(self, other):
        a, b = align(self, other)
        if ordered and is_complex(a):
            raise not_implemented(f"{name}_cpu", a)
        return primitive(a, b)

    body.__doc__ = f"Elementwise comparison; bool. Source: PyTorch, torch.{name}."
    operator(f"{name}.Tensor(Tensor self, Operand other) -> Tensor", forms=ALL, aliases=aliases)(body)


_comparison("eq", prims.equal, ordered=False)
_comparison("ne", prims.not_equal, ("not_equal",), ordered=False)
_comparison("lt", prims.less, ("less",))
_comparison("le", prims.less_equal, ("less_equal",))
_comparison("gt", prims.greater, ("greater",))
_comparison("ge", prims.greater_equal, ("greater_equal",))


# ------------------------------------------------------------------------------------------------ choosing
@operator("where.self(Tensor condition, Operand self, Operand other) -> Tensor", forms="function out")
def where(condition, self, other):
    """`self` where `condition` holds, `other` elsewhere. Source: PyTorch, torch.where."""
    if condition.dtype.kind != "b":
        if condition.dtype != np.uint8:
            raise RuntimeError("where expected condition to be a boolean tensor, but got a tensor with dtype "
                               f"{dtype_of(condition).scalar_name}")
        condition = prims.cast(condition, dtype=np.dtype(bool))
    a, b = align(self, other)
    broadcast_shapes(condition.shape, broadcast_shapes(a.shape, b.shape))
    return prims.where(condition, a, b)


@operator("relu(Tensor self) -> Tensor", forms="function method inplace", saves="result")
def relu(self):
    """max(x, 0). Source: PyTorch, torch.relu."""
    if self.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    if is_complex(self):
        raise NotImplementedError("clamp is not supported for complex types")
    return prims.relu(self)
