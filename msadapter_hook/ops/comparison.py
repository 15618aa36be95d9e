"""Tests of elements and of whole tensors: logic, kinds of numbers, closeness, extremes of two tensors."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import Value, constant, value_of
from msadapter_hook.tensor import Tensor, detached
from msadapter_hook.tensor.geometry import broadcast_shapes

from .promotion import align, dtype_of, is_complex, is_integral, result_type, to
from .refusals import not_implemented
from .registry import composite, operator

ALL = "function method inplace out"


# ------------------------------------------------------------------------------------------------ logic
def _truth(value):
    return value if value.dtype.kind == "b" else prims.not_equal(value, constant(0, value.dtype))


def _logical(name, primitive):
    def body(self, other):
        broadcast_shapes(self.shape, other.shape)
        return primitive(_truth(self), _truth(other))

    body.__doc__ = f"Elementwise {name} of truth values; bool. Source: PyTorch, torch.{name}."
    operator(f"{name}(Tensor self, Tensor other) -> Tensor", forms=ALL)(body)


_logical("logical_and", prims.logical_and)
_logical("logical_or", prims.logical_or)
_logical("logical_xor", prims.logical_xor)


@operator("logical_not(Tensor self) -> Tensor", forms=ALL)
def logical_not(self):
    """True where zero. Source: PyTorch, torch.logical_not."""
    return prims.logical_not(_truth(self))


# ------------------------------------------------------------------------------------------------ kinds of numbers
def _filled(value, truth):
    return value_of(np.full(value.shape, truth))


@operator("isnan(Tensor self) -> Tensor")
def isnan(self):
    """Where the element is not a number. Source: PyTorch, torch.isnan."""
    return _filled(self, False) if is_integral(self) else prims.isnan(self)


@operator("isinf(Tensor self) -> Tensor")
def isinf(self):
    """Where the element is infinite. Source: PyTorch, torch.isinf."""
    return _filled(self, False) if is_integral(self) else prims.isinf(self)


@operator("isfinite(Tensor self) -> Tensor")
def isfinite(self):
    """Where the element is finite. Source: PyTorch, torch.isfinite."""
    return _filled(self, True) if is_integral(self) else prims.isfinite(self)


def _one_infinity(name, number):
    def body(self):
        if is_complex(self):
            raise RuntimeError(f"{name} does not support complex inputs.")
        return _filled(self, False) if is_integral(self) else prims.equal(self, constant(number, self.dtype))

    body.__doc__ = f"Where the element is {number}. Source: PyTorch, torch.{name}."
    operator(f"{name}(Tensor self) -> Tensor", forms="function method out")(body)


_one_infinity("isposinf", float("inf"))
_one_infinity("isneginf", -float("inf"))


@operator("isreal(Tensor self) -> Tensor")
def isreal(self):
    """Where the imaginary part is zero. Source: PyTorch, torch.isreal."""
    if not is_complex(self):
        return _filled(self, True)
    part = prims.imag(self)
    return prims.equal(part, constant(0, part.dtype))


@operator("signbit(Tensor self) -> Tensor", forms="function method out")
def signbit(self):
    """Where the sign bit is set. Source: PyTorch, torch.signbit."""
    if is_complex(self):
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    if is_integral(self):
        return _filled(self, False) if self.dtype.kind in "ub" else prims.less(self, constant(0, self.dtype))
    return prims.signbit(self)


# ------------------------------------------------------------------------------------------------ closeness
def _isclose(a, b, *, rtol, atol, equal_nan):
    if a.dtype.kind in "biu":
        a_, b_ = a.astype(np.int64), b.astype(np.int64)
    elif a.dtype.kind == "c":
        a_, b_ = a, b
    else:
        wide = a.dtype if a.dtype.itemsize >= 4 else np.dtype(np.float32)
        a_, b_ = a.astype(wide), b.astype(wide)
    close = np.asarray(a_ == b_)
    if equal_nan and a.dtype.kind not in "biu":
        close = close | (np.isnan(a_) & np.isnan(b_))
    if rtol == 0 and atol == 0:
        return close
    if a.dtype.kind in "biu":
        allowed = np.float32(atol) + np.abs(np.float32(rtol) * b_.astype(np.float32))
        return close | (np.abs(a_ - b_).astype(np.float32) <= allowed)
    size = np.abs(b_)
    kind = size.dtype.type
    distance = np.abs(a_ - b_)
    allowed = kind(atol) + np.abs(kind(rtol) * size)
    return close | (np.isfinite(distance) & (distance <= allowed))


_isclose_primitive = prims.host_call("isclose", _isclose, differentiable=False)


def _close(self, other, rtol, atol, equal_nan):
    if self.dtype != other.dtype:
        raise RuntimeError(f"{dtype_of(self).scalar_name} did not match {dtype_of(other).scalar_name}")
    if rtol < 0:
        raise RuntimeError(f"rtol must be greater than or equal to zero, but got {rtol:g}")
    if atol < 0:
        raise RuntimeError(f"atol must be greater than or equal to zero, but got {atol:g}")
    self, other = align(self, other)
    return _isclose_primitive(self, other, rtol=float(rtol), atol=float(atol), equal_nan=equal_nan)


@composite("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor")
def isclose(self, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Where |self - other| <= atol + rtol * |other|. Source: PyTorch, torch.isclose."""
    made = Tensor._make(_close(detached(self), detached(other), rtol, atol, equal_nan))
    # PyTorch gathers the result in place, which shows in the version counter.
    made._history.version.count += bool(equal_nan and (self._dtype.is_floating_point or self._dtype.is_complex)) + bool(
        rtol or atol
    )
    return made


@operator("allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool")
def allclose(self, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether all elements are close; a Python bool. Source: PyTorch, torch.allclose."""
    return bool(_close(self, other, rtol, atol, equal_nan).numpy.all())


@operator("equal(Tensor self, Tensor other) -> bool")
def equal(self, other):
    """Whether size and elements are the same; a Python bool. Source: PyTorch, torch.equal."""
    if self.shape != other.shape:
        return False
    a, b = align(self, other)
    return bool((a.numpy == b.numpy).all())


# ------------------------------------------------------------------------------------------------ the larger and the smaller of two
def _of_two(name, primitive, alias=None, doc=""):
    def body(self, other):
        a, b = align(self, other)
        if is_complex(a):
            raise RuntimeError(f"{name} not implemented for complex tensors.")
        return primitive(a, b)

    body.__doc__ = f"{doc} Source: PyTorch, torch.{name}."
    operator(f"{name}(Tensor self, Tensor other) -> Tensor", forms="function method out", saves="self other")(body)


_of_two("maximum", prims.maximum, doc="The larger of two elements; NaN wins.")
_of_two("minimum", prims.minimum, doc="The smaller of two elements; NaN wins.")
_of_two("fmax", prims.fmax, doc="The larger of two elements; a number wins over NaN.")
_of_two("fmin", prims.fmin, doc="The smaller of two elements; a number wins over NaN.")


# ------------------------------------------------------------------------------------------------ membership
def _isin(elements, test, *, invert):
    return np.isin(elements, test, invert=invert)


_isin_primitive = prims.host_call("isin", _isin, differentiable=False)


@operator(
    "isin(Operand elements, Operand test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor", forms="function out"
)
def isin(elements, test_elements, assume_unique=False, invert=False):
    """Where an element is among the test elements. Source: PyTorch, torch.isin."""
    if not isinstance(elements, Value) and not isinstance(test_elements, Value):
        raise TypeError(
            "isin() received an invalid combination of arguments - got (Number, Number), but expected a Tensor among them"
        )
    for value in (elements, test_elements):
        dtype = result_type(value)
        if dtype.is_complex or dtype.scalar_name == "Bool":
            raise RuntimeError(f"Unsupported input type encountered for isin(): {dtype.scalar_name}")
    a, b = _members(elements, test_elements)
    return _isin_primitive(a, b, invert=invert)


def _members(a, b):
    dtype = result_type(a, b)
    return to(a, dtype), to(b, dtype)


@composite("result_type(Operand tensor1, Operand tensor2) -> ScalarType", forms="function")
def result_dtype(tensor1, tensor2):
    """The dtype of arithmetic with these operands. Source: PyTorch, torch.result_type."""
    return result_type(*[detached(x) if isinstance(x, Tensor) else x for x in (tensor1, tensor2)])


@composite("type_as(Tensor self, Tensor other) -> Tensor", forms="method")
def type_as(self, other):
    """The tensor in the dtype of `other`. Source: PyTorch, Tensor.type_as."""
    return self.to(other._dtype)


@composite("_is_all_true(Tensor self) -> Tensor")
def is_all_true(self):
    """Whether every element is true; a bool tensor. Source: PyTorch, torch._is_all_true."""
    return self.all()


@composite("_is_any_true(Tensor self) -> Tensor")
def is_any_true(self):
    """Whether some element is true; a bool tensor. Source: PyTorch, torch._is_any_true."""
    return self.any()


@composite("is_signed(Tensor self) -> bool")
def is_signed(self):
    """Whether the dtype has negative numbers. Source: PyTorch, torch.is_signed."""
    return self._dtype.is_signed


@composite("is_nonzero(Tensor self) -> bool", forms="method")
def is_nonzero(self):
    """Whether the single element is not zero. Source: PyTorch, Tensor.is_nonzero."""
    return bool(self)


@composite("is_same_size(Tensor self, Tensor other) -> bool")
def is_same_size(self, other):
    """Whether the sizes agree. Source: PyTorch, torch.is_same_size."""
    return self._size == other._size


def ordered(value, kernel):
    """Raise where the dtype has no order."""
    if is_complex(value):
        raise not_implemented(kernel, value)
    return value
