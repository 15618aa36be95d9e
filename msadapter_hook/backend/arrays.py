"""Arrays in and out of MindSpore, without copying wherever memory can be shared."""

import ml_dtypes
import numpy as np

from .runtime import in_reach, mindspore

_from_numpy = mindspore.from_numpy
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def from_numpy(array: np.ndarray) -> "mindspore.Tensor":
    """A MindSpore tensor over the memory of `array` (copied only where it is not contiguous or not writable)."""
    flags = array.flags
    if not flags.c_contiguous or not flags.writeable:
        array = np.array(array, order="C", copy=True)
    return _from_numpy(array)


class _Memory:
    """Memory of a tensor as NumPy takes it; keeps the tensor."""

    __slots__ = ("__array_interface__", "tensor")


_TYPES = {getattr(mindspore, name): (np.dtype(name).str, np.dtype(name).itemsize) for name in (
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "complex64", "complex128")}


def strided(tensor: "mindspore.Tensor") -> np.ndarray | None:
    """A NumPy array over the memory of the tensor, with its strides; None where NumPy cannot read it there."""
    known = _TYPES.get(tensor.dtype)
    if known is None or not in_reach():
        return None
    kind, size = known
    memory = _Memory()
    memory.tensor = tensor
    memory.__array_interface__ = {"shape": tensor.shape, "typestr": kind, "strides": tuple([n * size for n in tensor.stride()]),
                                  "data": (tensor.data_ptr(), False), "version": 3}
    return np.asarray(memory)


def as_numpy(tensor: "mindspore.Tensor") -> np.ndarray:
    """A NumPy array of the tensor; shares memory unless the tensor is a strided view."""
    if not tensor.is_contiguous():
        array = strided(tensor)
        if array is not None:
            return array.copy()
    array = tensor.asnumpy()
    if array.dtype.num >= 256 and array.dtype is not _BFLOAT16:  # MindSpore has a bfloat16 of its own for NumPy
        return array.view(np.uint16).view(_BFLOAT16) if array.dtype.name == "bfloat16" else array
    return array
