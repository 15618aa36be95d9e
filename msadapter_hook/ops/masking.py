"""Masks and places: masked_fill, masked_select, masked_scatter, nonzero and what is found by it, fill_diagonal_."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import constant, value_of
from msadapter_hook.tensor import cast_value, detached, dtypes, from_array, from_value, geometry

from . import expanded
from .promotion import dtype_of
from .registry import composite, operator
from .tables import METHODS, call
from .views import many
from .writing import check_inplace, write_inplace


# ------------------------------------------------------------------------------------------------ masks
def _mask(mask, name):
    if mask.dtype.kind != "b":
        names = {"float32": "float", "float64": "double", "int32": "int", "int64": "long int", "uint8": "unsigned char",
                 "int8": "signed char", "int16": "short int", "float16": "c10::Half", "bfloat16": "c10::BFloat16"}
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype "
                           f"{names.get(mask.dtype.name, mask.dtype.name)}"
                           if name == "masked_fill" else f"{name}: expected BoolTensor for mask")
    return mask


@operator("masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", forms="function method inplace out",
          saves="mask",
          overlap="no")
@operator("masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", forms="function method inplace out",
          saves="mask",
          overlap="no")
def masked_fill(self, mask, value):
    """`value` where the mask holds. Source: PyTorch, Tensor.masked_fill_."""
    if hasattr(value, "shape"):
        if value.ndim:
            raise RuntimeError("masked_fill only supports a 0-dimensional value tensor, but got tensor with "
                               f"{value.ndim} dimension(s).")
        if not dtypes.can_cast(dtype_of(value), dtype_of(self)):
            raise RuntimeError(f"value cannot be converted to type {dtype_of(self).scalar_name.lower()} without "
                               "overflow")
        value = cast_value(value, dtype_of(self))
    else:
        if isinstance(value, complex) and self.dtype.kind != "c" or (
                isinstance(value, float) and self.dtype.kind in "iu"
                and (value != value or value in (np.inf, -np.inf))):
            raise RuntimeError(f"value cannot be converted to type {_c_type(self)} without overflow")
        if isinstance(value, int) and self.dtype.kind in "iu" and not (
                np.iinfo(self.dtype).min <= value <= np.iinfo(self.dtype).max):
            raise RuntimeError(f"value cannot be converted to type {_c_type(self)} without overflow")
        value = constant(value, self.dtype)
    mask = _mask(mask, "masked_fill")
    return prims.masked_fill(self, mask, value)


def _c_type(v):
    return {"float32": "float", "float64": "double", "int32": "int", "int64": "int64_t", "int16": "int16_t",
            "int8": "int8_t",
            "uint8": "uint8_t", "float16": "at::Half", "bfloat16": "at::BFloat16"}.get(v.dtype.name, v.dtype.name)


@operator("masked_select(Tensor self, Tensor mask) -> Tensor", forms="function method out", saves="mask",
          overlap="any")
def masked_select(self, mask):
    """The elements where the mask holds, as a vector. Source: PyTorch, torch.masked_select."""
    _mask(mask, "masked_select")
    shape = geometry.broadcast_shapes(self.shape, mask.shape)
    wide = prims.broadcast_to(self, shape=shape) if self.shape != shape else self
    places = np.flatnonzero(np.broadcast_to(mask.numpy, shape))
    return prims.gather(prims.reshape(wide, shape=(wide.size,)), value_of(places), axis=0)


@operator("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", forms="function method inplace",
          saves="mask")
def masked_scatter(self, mask, source):
    """The elements where the mask holds replaced by those of `source`, in order. Source: PyTorch,
    Tensor.masked_scatter_."""
    if mask.dtype.kind != "b":
        raise RuntimeError("masked_scatter_ only supports boolean masks, but got mask with dtype "
                           f"{str(dtype_of(mask))[6:]}")
    if self.dtype != source.dtype:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes but got "
                           f"{dtype_of(self).scalar_name} and {dtype_of(source).scalar_name}")
    shape = geometry.broadcast_shapes(self.shape, mask.shape)
    wide = prims.broadcast_to(self, shape=shape) if self.shape != shape else self
    places = np.flatnonzero(np.broadcast_to(mask.numpy, shape))
    if places.size > source.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    first = prims.strided_slice(prims.reshape(source, shape=(source.size,)), start=(0,), stop=(places.size,), step=(1,))
    flat = prims.index_put(prims.reshape(wide, shape=(wide.size,)), first, value_of(places), axes=(0,),
                           accumulate=False)
    return prims.reshape(flat, shape=shape)


# ------------------------------------------------------------------------------------------------ where elements are
def _places(t):
    """One row per element that is not zero; in memory the dimensions lie one after the other, as in PyTorch."""
    rows = np.argwhere(detached(t).numpy).astype(np.int64, copy=False)
    return from_value(value_of(np.ascontiguousarray(rows)), stride=(1, max(rows.shape[0], 1)) if rows.size else None)


@composite("nonzero(Tensor self, *, bool as_tuple=False) -> Tensor", forms="function method out")
def nonzero(self, as_tuple=False):
    """The indices of elements that are not zero: (n, dims) int64, or one vector per dimension. Source: PyTorch,
    torch.nonzero."""
    if as_tuple:
        found = _places(self if self.ndim else self.reshape((1,)))
        return many(found.unbind(1), "unbind")
    return _places(self)


@composite("argwhere(Tensor self) -> Tensor")
def argwhere(self):
    """The indices of elements that are not zero, as rows. Source: PyTorch, torch.argwhere."""
    return _places(self)


@composite("nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor", forms="function method out")
def nonzero_static(self, size, fill_value=-1):
    """nonzero cut or filled up to `size` rows. Source: PyTorch, torch.nonzero_static."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    out = np.full((size, self.dim()), fill_value, np.int64)
    found = np.argwhere(detached(self).numpy)[:size]
    out[:len(found)] = found
    return from_array(out)


@composite("where(Tensor condition) -> Tensor[]", forms="function")
def where_nonzero(condition):
    """The indices of elements that hold, one vector per dimension. Source: PyTorch, torch.where."""
    return nonzero(condition, True)


def _where(self, condition, other):
    """`self` where `condition` holds, `other` elsewhere. Source: PyTorch, Tensor.where."""
    return call("where", condition, self, other)


METHODS["where"] = _where


@composite("unravel_index(Tensor self, int[1] shape) -> Tensor[]", forms="function")
def unravel_index(self, shape):
    """Flat positions as one index per dimension of `shape`. Source: PyTorch, torch.unravel_index."""
    if self._dtype.is_floating_point or self._dtype.is_complex or self._dtype is dtypes.bool_:
        raise ValueError(f"expected 'indices' to be integer dtype, but got {self._dtype}")
    if any(n < 0 for n in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(shape)}")
    array, parts = detached(self).numpy, []
    for n in reversed(shape):
        parts.append(array % n)
        array = array // n
    return tuple([from_array(p) for p in parts[::-1]])


def fill_diagonal_(self, fill_value, wrap=False):
    """One number on the main diagonal, in place. Source: PyTorch, Tensor.fill_diagonal_."""
    if self.dim() < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.dim() > 2 and len(set(self._size)) != 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    if 0 in self._stride and expanded.is_expanded(self):
        return _fill_diagonal_once(self, fill_value, wrap)
    check_inplace(self)
    flat_stride = sum(geometry.contiguous_stride(self._size))
    n = self.numel()
    last = min(self._size) if self.dim() == 2 else self._size[0]
    places = np.arange(last) * flat_stride
    if wrap and self.dim() == 2 and self._size[0] > self._size[1]:
        places = np.arange(0, n, flat_stride)
    filler = constant(fill_value, self._dtype.numpy)
    flat = prims.index_put(prims.reshape(self.value, shape=(n,)), filler, value_of(places), axes=(0,), accumulate=False)
    write_inplace(self, prims.reshape(flat, shape=tuple(self._size)), self._dtype, name="FillDiagonalBackward0")
    return self


def _fill_diagonal_once(self, fill_value, wrap):
    """The numbers in memory that have a place on the diagonal of an expanded tensor."""
    mask = fill_diagonal_(from_array(np.zeros(self._size, bool)), True, wrap)
    METHODS["masked_fill_"](expanded.once(self), expanded.any_place(self, mask), fill_value)
    return self


METHODS["fill_diagonal_"] = fill_diagonal_
