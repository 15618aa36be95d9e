"""Reductions over dimensions."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tensor import dtypes
from msadapter_hook.tensor.geometry import wrap_dims

from .promotion import dtype_of, floating, is_integral, to
from .registry import operator


def axes_of(value, dim):
    """The axes that `dim` names; None and () mean all."""
    if dim is None or dim == ():
        return tuple(range(value.ndim))
    return wrap_dims(dim, value.ndim)


@operator("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", grad_name="SumBackward0")
@operator("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
          forms="function method out", grad_name="SumBackward1")
def sum(self, dim=None, keepdim=False, dtype=None):
    """Sum; integers are summed as int64. Source: PyTorch, torch.sum."""
    if isinstance(dim, dtypes.dtype):
        dim, dtype = None, dim
    if dtype is not None:
        self = to(self, dtype)
    elif is_integral(self):
        self = to(self, dtypes.int64)
    return prims.sum(self, axes=axes_of(self, dim), keepdims=keepdim)


@operator("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", grad_name="MeanBackward0")
@operator("mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
          forms="function method out", grad_name="MeanBackward1")
def mean(self, dim=None, keepdim=False, dtype=None):
    """Mean of floating point or complex elements. Source: PyTorch, torch.mean."""
    if isinstance(dim, dtypes.dtype):
        dim, dtype = None, dim
    if dtype is not None:
        self = to(self, dtype)
    if is_integral(self):
        raise RuntimeError("mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
                           f"Got: {dtype_of(self).scalar_name}")
    return prims.mean(self, axes=axes_of(self, dim), keepdims=keepdim)


