"""Arrays in and out of MindSpore, without copying wherever memory can be shared."""

import numpy as np

from .runtime import mindspore

_from_numpy = mindspore.from_numpy


def from_numpy(array: np.ndarray) -> "mindspore.Tensor":
    """A MindSpore tensor over the memory of `array` (copied only where it is not contiguous or not writable)."""
    flags = array.flags
    if not flags.c_contiguous or not flags.writeable:
        array = np.array(array, order="C", copy=True)
    return _from_numpy(array)


def as_numpy(tensor: "mindspore.Tensor") -> np.ndarray:
    """A NumPy array of the tensor; shares memory unless the tensor is a strided view."""
    return tensor.asnumpy()
