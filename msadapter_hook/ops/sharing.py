"""Tensors over memory that others own: buffers, and DLPack in both directions."""

import warnings

import numpy as np

from msadapter_hook.tensor import Tensor, dtypes, share_array

from .registry import plain
from .tables import METHODS


@plain
def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A vector over the memory of a buffer. Source: PyTorch, torch.frombuffer."""
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    total = view.nbytes
    item = dtype.itemsize
    if total == 0 or count == 0:
        raise ValueError(f"both buffer length ({total}) and count ({count}) must not be 0")
    if not 0 <= offset < total:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({total} "
                         "bytes) minus 1")
    if count > 0 and offset + count * item > total:
        raise ValueError(f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must not be "
                         f"greater than actual buffer length ({total} bytes)")
    if count < 0:
        if (total - offset) % item:
            raise ValueError(f"buffer length ({total - offset} bytes) after offset ({offset} bytes) must be a multiple "
                             f"of element size ({item})")
        count = (total - offset) // item
    if view.readonly:
        warnings.warn("The given buffer is not writable, and PyTorch does not support non-writable tensors. This "
                      "means you can write to the underlying (supposedly non-writable) buffer using "
                      "the tensor.", stacklevel=2)
    array = np.frombuffer(buffer, np.uint8, count * item, offset)
    made = share_array(array if array.flags.writeable else array.copy())
    made = made.view(dtype) if dtype is not dtypes.uint8 else made
    return made.requires_grad_() if requires_grad else made


# ------------------------------------------------------------------------------------------------ DLPack
def __dlpack__(self, *, stream=-1, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule over the tensor's memory. BufferError where it cannot be exported. Source: PyTorch,
    Tensor.__dlpack__."""
    if stream is not None and not isinstance(stream, int):
        raise TypeError("stream must be ``int`` or ``none``")
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set")
    if self._dtype.numpy.kind == "V" or self._dtype is dtypes.complex32:
        raise BufferError(f"Can't export tensors of {self._dtype} to DLPack; convert to float32 first")
    return (self.clone() if copy else self).numpy().__dlpack__()


def __dlpack_device__(self):
    """(device type, index) in DLPack's numbers: memory of the host. Source: PyTorch, Tensor.__dlpack_device__."""
    return 1, 0


METHODS["__dlpack__"], METHODS["__dlpack_device__"] = __dlpack__, __dlpack_device__


class _Writable:
    """The memory of an array, without NumPy's flag that forbids writing."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


class _Capsule:
    """What NumPy wants to see around a bare capsule."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, *, stream=None):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


@plain
def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor over the memory of an object that speaks DLPack, or of a capsule. Source: PyTorch, torch.from_dlpack."""
    if isinstance(ext_tensor, Tensor):
        if ext_tensor.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        found = ext_tensor.detach()
    else:
        if not hasattr(ext_tensor, "__dlpack__"):
            if type(ext_tensor).__name__ != "PyCapsule" or '"dltensor"' not in repr(ext_tensor):
                raise RuntimeError("from_dlpack received an invalid capsule. Note that DLTensor capsules can be "
                                   "consumed only once, so you might have already constructed a tensor from it once.")
            ext_tensor = _Capsule(ext_tensor)
        array = np.from_dlpack(ext_tensor)
        found = share_array(array if array.flags.writeable or not array.size else np.asarray(_Writable(array)))
    if copy:
        found = found.clone()
    return found if device is None else found.to(device)
