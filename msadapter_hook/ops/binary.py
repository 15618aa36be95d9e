"""Elementwise functions of two and three operands beyond plain arithmetic: limits, remainders, blends, scaled products."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import Value, constant
from msadapter_hook.tensor import dtypes
from msadapter_hook.tensor.geometry import broadcast_shapes

from .pointwise import div, mul, no_derivative, pow, refuse_zero, sub
from .promotion import (
    align,
    align_floating,
    dtype_of,
    floating,
    is_complex,
    is_floating,
    is_integral,
    result_type,
    to,
)
from .refusals import not_implemented
from .registry import operator, warn_once
from .tables import METHODS, OPERATORS

ALL = "function method inplace out"


# ------------------------------------------------------------------------------------------------ limits
def _limits_vjp(grads, outs, needs, a, *limits, has_low, has_high):
    g = grads[0]
    zero = prims.zeros_like(g)
    low = limits[0] if has_low else None
    high = limits[-1] if has_high else None
    found = [None] * (1 + len(limits))
    if needs[0]:
        inside = None if low is None else a >= low
        if high is not None:
            inside = a <= high if inside is None else prims.logical_and(inside, a <= high)
        found[0] = prims.sum_to(prims.where(inside, g, zero), shape=a.shape)
    if has_low and needs[1]:
        below = a < low if high is None else prims.logical_and(a < low, low < high)
        found[1] = prims.sum_to(prims.where(below, g, zero), shape=low.shape)
    if has_high and needs[-1]:
        above = a > high if low is None else prims.logical_or(a > high, high < low)
        found[-1] = prims.sum_to(prims.where(above, g, zero), shape=high.shape)
    return found


def _limit(a, *limits, has_low, has_high):
    if has_low:
        a = np.maximum(a, limits[0])
    if has_high:
        a = np.minimum(a, limits[-1])
    return a


_clamp_tensors = prims.host_call("clamp", _limit, joint_vjp=_limits_vjp, uses_output=False)


def _clamp(self, low, high):
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    dtype = result_type(self, *[x for x in (low, high) if x is not None])
    if dtype.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")
    a = to(self, dtype)
    if a.dtype.kind == "b" and low is not None and high is not None:
        raise not_implemented("clamp_scalar_cpu", a)
    if not isinstance(low, Value) and not isinstance(high, Value):
        if low is not None and low != low or high is not None and high != high:
            return a * float("nan")
        return prims.clamp_range(a, low=low, high=high)
    limits = [to(x, dtype) for x in (low, high) if x is not None]
    shape = broadcast_shapes(a.shape, *[x.shape for x in limits])
    if a.shape != shape:
        a = prims.broadcast_to(a, shape=shape)
    return _clamp_tensors(a, *limits, has_low=low is not None, has_high=high is not None)


@operator("clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", forms=ALL, saves="self", aliases=("clip",))
@operator(
    "clamp.Tensor(Tensor self, Operand? min=None, Operand? max=None) -> Tensor",
    forms=ALL,
    saves="self min max",
    grad_name="ClampBackward1",
    aliases=("clip",),
)
def clamp(self, min=None, max=None):
    """Limited to [min, max]; a limit may be None, a number or a tensor. Source: PyTorch, torch.clamp."""
    return _clamp(self, min, max)


@operator("clamp_min.Tensor(Tensor self, Operand min) -> Tensor", forms=ALL, saves="self", grad_name="ClampMinBackward0")
def clamp_min(self, min):
    """Limited from below. Source: PyTorch, torch.clamp_min."""
    return _clamp(self, min, None)


@operator("clamp_max.Tensor(Tensor self, Operand max) -> Tensor", forms=ALL, saves="self", grad_name="ClampMaxBackward0")
def clamp_max(self, max):
    """Limited from above. Source: PyTorch, torch.clamp_max."""
    return _clamp(self, None, max)


# ------------------------------------------------------------------------------------------------ of two and three operands
@operator("rsub.Tensor(Tensor self, Operand other, *, Scalar alpha=1) -> Tensor")
def rsub(self, other, alpha=1):
    """other - alpha * self. Source: PyTorch, torch.rsub."""
    return sub(other, self, alpha)


@operator(
    "true_divide.Tensor(Operand self, Operand other) -> Tensor", forms=ALL, saves="self:other other", grad_name="DivBackward0"
)
def true_divide(self, other):
    """Quotient in floating point. Source: PyTorch, torch.true_divide."""
    return div(self, other)


def _modulus(name, primitive):
    def body(self, other):
        a, b = align(self, other)
        if a.dtype.kind in "bc":
            raise not_implemented(f"{name}_cpu", a)
        if is_integral(a):
            refuse_zero(b)
        return primitive(a, b)

    return body


remainder = operator("remainder.Tensor(Operand self, Operand other) -> Tensor", forms=ALL, saves="self other")(
    _modulus("remainder", prims.remainder)
)
remainder.__doc__ = "Rest of the division rounded down; has the sign of `other`. Source: PyTorch, torch.remainder."
fmod = operator("fmod.Tensor(Tensor self, Operand other) -> Tensor", forms=ALL, saves="self other")(_modulus("fmod", prims.fmod))
fmod.__doc__ = "Rest of the division rounded towards zero; has the sign of `self`. Source: PyTorch, torch.fmod."


def _dtype_name(value):
    return (
        repr(dtype_of(value))
        .removeprefix("torch.")
        .replace("float64", "double")
        .replace("float32", "float")
        .replace("float16", "c10::Half")
        .replace("int64", "long int")
        .replace("int32", "int")
    )


def _lerp_vjp(grads, outs, needs, a, end, weight):
    g = grads[0]
    w = prims.conj_of(weight)
    return [
        prims.sum_to(g * (1 - w), shape=a.shape) if needs[0] else None,
        prims.sum_to(g * w, shape=end.shape) if needs[1] else None,
        prims.sum_to(g * prims.conj_of(end - a), shape=weight.shape) if needs[2] else None,
    ]


def _lerp(a, end, weight):
    near = np.abs(weight) < 0.5
    if a.dtype.itemsize < 4:
        x, y, w = (v.astype(np.float32) for v in (a, end, weight))
        return np.where(near, x + w * (y - x), y - (y - x) * (1 - w)).astype(a.dtype)
    return np.where(near, a + weight * (end - a), end - (end - a) * (1 - weight)).astype(a.dtype, copy=False)


_lerp_primitive = prims.host_call("lerp", _lerp, joint_vjp=_lerp_vjp, uses_output=False)


@operator(
    "lerp.Tensor(Tensor self, Tensor end, Operand weight) -> Tensor", forms=ALL, saves="self end weight", grad_name="LerpBackward0"
)
def lerp(self, end, weight):
    """self + weight * (end - self). Source: PyTorch, torch.lerp."""
    if end.dtype != self.dtype:
        raise RuntimeError(f"expected dtype {_dtype_name(self)} for `end` but got dtype {_dtype_name(end)}")
    if isinstance(weight, Value):
        if weight.dtype != self.dtype:
            if weight.ndim or not is_floating(weight):
                raise RuntimeError(f"expected dtype {_dtype_name(self)} for `weight` but got dtype {_dtype_name(weight)}")
            weight = to(weight, dtype_of(self))
        broadcast_shapes(self.shape, end.shape, weight.shape)
    else:
        broadcast_shapes(self.shape, end.shape)
    if is_integral(self):
        raise not_implemented("lerp_kernel_scalar" if not isinstance(weight, Value) else "lerp_kernel_tensor", self)
    if isinstance(weight, Value) or self.dtype.itemsize < 4:
        return _lerp_primitive(self, end, to(weight, dtype_of(self)))
    if abs(weight) < 0.5:
        return self + (end - self) * weight
    return end - (end - self) * (1 - weight)


def _declare_scaled(name):
    """`add(self, alpha, other)`, as old programs write it."""

    def scaled(self, alpha, other):
        warn_once(f"This overload of {name} is deprecated:\n\t{name}(Tensor input, Number alpha, Tensor other, *, Tensor out = None)\n"
                  f"Consider using one of the following signatures instead:\n\t{name}(Tensor input, Tensor other, *, Number alpha = 1, "
                  "Tensor out = None)")
        return OPERATORS[name](self, other, alpha=alpha)

    scaled.__doc__ = f"{name} with the factor in between. Source: PyTorch, torch.{name}."
    operator(f"{name}.deprecated(Tensor self, Scalar alpha, Tensor other) -> Tensor", kind="composite", forms=ALL)(scaled)


for _name in ("add", "sub"):
    _declare_scaled(_name)


def _deprecated_order(name):
    warn_once(f"This overload of {name} is deprecated:\n\t{name}(Tensor input, Number value, Tensor tensor1, Tensor tensor2, *, "
              f"Tensor out = None)\nConsider using one of the following signatures instead:\n\t{name}(Tensor input, Tensor "
              "tensor1, Tensor tensor2, *, Number value = 1, Tensor out = None)")


@operator("addcmul.deprecated(Tensor self, Scalar value, Tensor tensor1, Tensor tensor2) -> Tensor", kind="composite")
def addcmul_positional(self, value, tensor1, tensor2):
    """The order of arguments of old programs. Source: PyTorch, torch.addcmul."""
    _deprecated_order("addcmul")
    return OPERATORS["addcmul"](self, tensor1, tensor2, value=value)


@operator("addcdiv.deprecated(Tensor self, Scalar value, Tensor tensor1, Tensor tensor2) -> Tensor", kind="composite")
def addcdiv_positional(self, value, tensor1, tensor2):
    """The order of arguments of old programs. Source: PyTorch, torch.addcdiv."""
    _deprecated_order("addcdiv")
    return OPERATORS["addcdiv"](self, tensor1, tensor2, value=value)


@operator(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    forms=ALL,
    saves="tensor1:tensor2 tensor2:tensor1",
)
def addcmul(self, tensor1, tensor2, value=1):
    """self + value * tensor1 * tensor2. Source: PyTorch, torch.addcmul."""
    a, b, c = align(self, tensor1, tensor2)
    if a.dtype.kind == "b":
        raise not_implemented("addcmul_cpu_out", a)
    return a + (b * c if value == 1 else b * to(int(value) if is_integral(a) else value, dtype_of(a)) * c)


@operator(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", forms=ALL, saves="tensor1:tensor2 tensor2"
)
def addcdiv(self, tensor1, tensor2, value=1):
    """self + value * tensor1 / tensor2. Source: PyTorch, torch.addcdiv."""
    if is_integral(tensor1) and is_integral(tensor2):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division "
            "of "
            "tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / "
            "tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The future "
            "addcdiv behavior is just the latter implementation: (input + value * tensor1 / tensor2), for all dtypes."
        )
    a, b, c = align(self, tensor1, tensor2)
    return a + (b / c if value == 1 else b * value / c)


def _of_floats(name, primitive, forms=ALL, alias=(), kernel=None, saves="self other"):
    """Two tensors of floating point; integers are refused."""

    def body(self, other):
        a, b = align(self, other)
        if not is_floating(a):
            raise not_implemented(kernel or f"{name}_cpu", a)
        return primitive(a, b)

    body.__doc__ = f"Elementwise {name} of floating point tensors. Source: PyTorch, torch.{name}."
    operator(f"{name}(Tensor self, Tensor other) -> Tensor", forms=forms, saves=saves, aliases=alias)(body)


_of_floats("hypot", prims.hypot)


def _nextafter_share(g, out, a, b):
    return prims.sum_to(prims.where(prims.equal(a, b), constant(0, g.dtype), g), shape=a.shape)


_of_floats(
    "nextafter",
    prims.host_call(
        "nextafter",
        lambda a, b: np.nextafter(a, b),
        uses_output=False,
        vjp=[_nextafter_share, lambda g, out, a, b: prims.sum_to(prims.zeros_like(g), shape=b.shape)],
    ),
)


@operator("logaddexp(Tensor self, Tensor other) -> Tensor", forms="function method out", saves="self other")
def logaddexp(self, other):
    """log(exp(self) + exp(other)). Source: PyTorch, torch.logaddexp."""
    a, b = align(self, other)
    if is_integral(a):
        raise not_implemented("logaddexp_cpu", a)
    return prims.logaddexp(a, b)


@operator("logaddexp2(Tensor self, Tensor other) -> Tensor", forms="function method out", saves="self other")
def logaddexp2(self, other):
    """log2(2 ** self + 2 ** other). Source: PyTorch, torch.logaddexp2."""
    a, b = align(self, other)
    if not is_floating(a):
        raise not_implemented("logaddexp2_cpu", a)
    return prims.logaddexp2(a, b)


@operator("atan2(Tensor self, Tensor other) -> Tensor", forms=ALL, saves="self other", aliases=("arctan2",))
def atan2(self, other):
    """The angle of the point (other, self). Source: PyTorch, torch.atan2."""
    a, b = align_floating(self, other)
    if is_complex(a):
        raise not_implemented("atan2_cpu", a)
    return prims.atan2(a, b)


@operator("copysign.Tensor(Tensor self, Operand other) -> Tensor", forms=ALL, saves="self result")
def copysign(self, other):
    """The size of `self` with the sign of `other`. Source: PyTorch, torch.copysign."""
    a, b = align_floating(self, other)
    if is_complex(a):
        raise not_implemented("copysign_cpu", a)
    return prims.copysign(a, b)


_heaviside = prims.host_call(
    "heaviside", lambda a, b: np.where(a == 0, b, (a > 0).astype(a.dtype)), vjp=no_derivative("heaviside"), uses_output=False
)


@operator("heaviside(Tensor self, Tensor values) -> Tensor", forms=ALL, grad_name="NotImplemented")
def heaviside(self, values):
    """0 below zero, 1 above, `values` at zero. Source: PyTorch, torch.heaviside."""
    if is_complex(self) or is_complex(values):
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if self.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    broadcast_shapes(self.shape, values.shape)
    return _heaviside(self, values)


@operator(
    "float_power.Tensor(Operand self, Operand exponent) -> Tensor",
    forms=ALL,
    saves="self exponent result",
    grad_name="PowBackward0",
)
def float_power(self, exponent):
    """Power in double precision. Source: PyTorch, torch.float_power."""
    wide = dtypes.complex128 if result_type(self, exponent).is_complex else dtypes.float64
    a = to(self, wide)
    if not isinstance(exponent, Value):
        return pow(a, exponent)
    return pow(a, to(exponent, wide))


def _float_power_in_place(self, exponent):
    """The power, in place; the tensor must be in double precision. Source: PyTorch, Tensor.float_power_."""
    made = OPERATORS["float_power"](self, exponent)
    if made._dtype is not self._dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {self._dtype.scalar_name} but the operation's result requires dtype "
            f"{made._dtype.scalar_name}"
        )
    return _raise_in_place(self, exponent)


_raise_in_place = METHODS["float_power_"]
METHODS["float_power_"] = _float_power_in_place


def _scale(a, exponent):
    wide = a.astype(np.float32) if a.dtype.itemsize < 4 else a
    return np.ldexp(wide, np.clip(exponent, -100000, 100000).astype(np.int32)).astype(a.dtype)


_scaled_by_two = prims.host_call(
    "ldexp", _scale, vjp=[lambda g, out, a, e: prims.sum_to(_scaled_by_two(g, e), shape=a.shape), None], uses_output=False
)


@operator("ldexp.Tensor(Tensor self, Tensor other) -> Tensor", forms=ALL, saves="self other")
def ldexp(self, other):
    """self * 2 ** other. Source: PyTorch, torch.ldexp."""
    if is_floating(self) and is_integral(other):
        if other.dtype.kind == "b":
            raise not_implemented("ldexp_cpu_exp", other)
        broadcast_shapes(self.shape, other.shape)
        return _scaled_by_two(self, other)
    return mul(self, pow(2.0, other))


_frexp = prims.host_call(
    "frexp",
    lambda a: tuple(np.frexp(a)) if a.dtype.kind == "f" else tuple(_frexp_wide(a)),
    outputs=2,
    joint_vjp=lambda grads, outs, needs, a: [grads[0] / _two_to(outs[1], a)],
)


def _frexp_wide(a):
    m, e = np.frexp(a.astype(np.float32))
    return m.astype(a.dtype), e


def _two_to(exponent, like):
    return prims.exp2(prims.cast(exponent, dtype=like.dtype))


@operator("frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", forms="function method out", saves="result")
def frexp(self):
    """Mantissa in [0.5, 1) and exponent (int32) of floating point numbers. Source: PyTorch, torch.frexp."""
    if not is_floating(self):
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return _frexp(self)


@operator("logit(Tensor self, float? eps=None) -> Tensor", forms=ALL, saves="self", aliases=("special.logit",))
def logit(self, eps=None):
    """log(x / (1 - x)), the input limited to [eps, 1 - eps]. Source: PyTorch, torch.logit."""
    value = floating(self)
    if is_complex(value):
        raise not_implemented("logit_cpu", value)
    return prims.logit(value, eps=None if eps is None else float(eps))


@operator("xlogy.Tensor(Operand self, Operand other) -> Tensor", forms=ALL, saves="self other", aliases=("special.xlogy",))
def xlogy(self, other):
    """self * log(other), 0 where self is 0. Source: PyTorch, torch.xlogy."""
    a, b = align_floating(self, other)
    if is_complex(a):
        raise not_implemented("xlogy_cpu", a)
    return prims.xlogy(a, b)


@operator("sinc(Tensor self) -> Tensor", forms=ALL, saves="self", aliases=("special.sinc",))
def sinc(self):
    """sin(pi x) / (pi x), 1 at zero. Source: PyTorch, torch.sinc."""
    return prims.sinc(floating(self))
