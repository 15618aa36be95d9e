"""Arrays in and out of MindSpore, without copying wherever memory can be shared."""

import ml_dtypes
import numpy as np

from .runtime import mindspore

_from_numpy = mindspore.from_numpy
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def from_numpy(array: np.ndarray) -> "mindspore.Tensor":
    """A MindSpore tensor over the memory of `array` (copied only where it is not contiguous or not writable)."""
    flags = array.flags
    if not flags.c_contiguous or not flags.writeable:
        array = np.array(array, order="C", copy=True)
    return _from_numpy(array)


def as_numpy(tensor: "mindspore.Tensor") -> np.ndarray:
    """A NumPy array of the tensor; shares memory unless the tensor is a strided view."""
    array = tensor.asnumpy()
    if array.dtype.num >= 256 and array.dtype is not _BFLOAT16:  # MindSpore has a bfloat16 of its own for NumPy
        return array.view(np.uint16).view(_BFLOAT16) if array.dtype.name == "bfloat16" else array
    return array
