# Internal helpers whose names PyTorch's pickles and libraries know: rebuilding tensors, wrapped exceptions.
import sys
import traceback


class KeyErrorMessage(str):
    """A message whose repr is itself: KeyError prints the repr of its argument."""

    def __repr__(self):
        return self


class ExceptionWrapper:
    """An exception with its traceback as text, to be raised again in another thread or process."""

    def __init__(self, exc_info=None, where="in background"):
        if exc_info is None:
            exc_info = sys.exc_info()
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self):
        """Raises an exception of the same type whose message holds the original traceback."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)
        try:
            exception = self.exc_type(message)
        except Exception:
            # its constructor wants other arguments
            raise RuntimeError(message) from None
        raise exception


# ------------------------------------------------------------------------------------------ tensors out of checkpoints
# The names, and the order of the arguments, are PyTorch's file format.
def _rebuild_tensor(storage, storage_offset, size, stride):
    """A tensor over a TypedStorage."""
    return storage._tensor(size, stride, storage_offset)


def _waiting(tensor):
    """What a checkpoint notes beside the memory: the conjugation and the negation that wait; () where none does."""
    found = {name: True for name, waits in (("conj", tensor.is_conj()), ("neg", tensor.is_neg())) if waits}
    return (found,) if found else ()


def _finish(tensor, requires_grad, metadata):
    if metadata:
        for key in ("conj", "neg"):
            if metadata.get(key):
                tensor = tensor.conj() if key == "conj" else tensor._neg_view()
    if requires_grad:
        tensor.requires_grad_(True)
    return tensor


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    """A tensor over a TypedStorage; the hooks are an empty table."""
    return _finish(_rebuild_tensor(storage, storage_offset, size, stride), requires_grad, metadata)


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    """A tensor of `dtype` over bytes; for the dtypes that have no storage class."""
    from .storage import TypedStorage

    memory = storage._memory if isinstance(storage, TypedStorage) else storage
    if hasattr(memory, "storage"):
        memory = memory.storage()
    typed = TypedStorage(wrap_storage=memory, dtype=dtype)
    return _finish(typed._tensor(size, stride, storage_offset), requires_grad, metadata)


def _rebuild_parameter(data, requires_grad, backward_hooks):
    """A Parameter over a tensor."""
    from .nn.parameter import Parameter

    return Parameter(data, requires_grad)


def _set_obj_state(obj, state):
    """Attributes (and, in a pair, slots) onto a tensor of a subclass."""
    slots = None
    if isinstance(state, tuple):
        if len(state) != 2:
            raise RuntimeError(f"Invalid serialized state: {state}")
        state, slots = state
    for table in (state, slots):
        for key, value in (table or {}).items():
            setattr(obj, key, value)
    return obj


def _get_obj_state(obj):
    """The attributes of a tensor of a subclass, as pickles have them; a pair when there are slots too."""
    from copyreg import _slotnames

    state = dict(getattr(obj, "__dict__", None) or {})
    own_slots = [name for cls in type(obj).__mro__ for name in _user_slots(cls)]
    slots = {name: getattr(obj, name) for name in _slotnames(type(obj)) if name in own_slots and hasattr(obj, name)}
    return (state, slots) if slots else state


def _user_slots(cls):
    from msadapter_hook.tensor import Tensor

    if issubclass(Tensor, cls):
        return ()
    slots = cls.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    """A Parameter with attributes of its own."""
    return _set_obj_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    """A tensor without data."""
    from . import empty_strided

    return empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def _rebuild_device_tensor_from_numpy(data, dtype, device, requires_grad):
    """A tensor of an accelerator that was stored as a NumPy array."""
    from . import from_numpy

    tensor = from_numpy(data).to(dtype=dtype, device=device)
    tensor.requires_grad = requires_grad
    return tensor


def _rebuild_device_tensor_from_cpu_tensor(data, dtype, device, requires_grad):
    """A tensor of an accelerator that was stored as a host tensor."""
    tensor = data.to(dtype=dtype, device=device)
    tensor.requires_grad = requires_grad
    return tensor


def _rebuild_sparse_tensor(layout, data):
    """A sparse tensor from its parts (indices, values, size, or those of a compressed layout), which are checked: files lie."""
    from . import sparse_bsc, sparse_bsr, sparse_compressed_tensor, sparse_coo, sparse_coo_tensor, sparse_csc, sparse_csr

    if layout is sparse_coo:
        indices, values, size = data[:3]
        coalesced = data[3] if len(data) > 3 else False
        return sparse_coo_tensor(indices, values, size, is_coalesced=coalesced or None, check_invariants=True)
    if layout not in (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc):
        raise NotImplementedError(f"loading of a sparse tensor of layout {layout} is not supported; save it dense")
    return sparse_compressed_tensor(*data[:4], layout=layout, check_invariants=True)


def _unsupported(kind):
    def rebuild(*args, **kwargs):
        raise NotImplementedError(f"loading of {kind} tensors is not supported; save them as plain tensors")

    return rebuild


_rebuild_qtensor = _unsupported("quantized")


def _rebuild_nested_tensor(buffer, sizes, strides, storage_offsets):
    """A strided nested tensor from its elements and the geometry of each tensor, which is checked: files lie."""
    from .nested import as_nested_tensor

    pieces = []
    for size, stride, offset in zip(sizes.tolist(), strides.tolist(), storage_offsets.tolist()):
        last = offset + sum((n - 1) * s for n, s in zip(size, stride)) if 0 not in size else 0
        if offset < 0 or min(size, default=0) < 0 or min(stride, default=0) < 0 or 0 not in size and last >= buffer.numel():
            raise RuntimeError(f"a tensor of size {size}, strides {stride} and offset {offset} does not fit into {buffer.numel()} elements")
        pieces.append(buffer.as_strided(size, stride, offset) if buffer.numel() else buffer.new_empty(size))
    return as_nested_tensor(pieces).detach()


def _rebuild_wrapper_subclass(cls, dtype, size, stride, storage_offset, layout, device, requires_grad):
    """A tensor of a subclass whose data are its attributes."""
    from . import Tensor

    return Tensor._make_wrapper_subclass(cls, size, strides=stride, storage_offset=storage_offset, layout=layout, device=device,
                                         requires_grad=requires_grad, dtype=dtype)




def _element_size(dtype):
    """Bytes of one element of a dtype."""
    if not hasattr(dtype, "itemsize"):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _get_device_index(device, optional=False, allow_cpu=False):
    """The number of a device: -1 for the CPU (where allowed), 0 for none given (where optional). ValueError otherwise. Source:
    PyTorch, torch._utils._get_device_index."""
    from . import device as Device

    if isinstance(device, str):
        device = Device(device)
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if isinstance(device, Device):
        if device.type == "cpu":
            if allow_cpu:
                return -1
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        return 0 if device.index is None else device.index
    if optional and device is None:
        return 0
    raise ValueError(f"Expected a torch.device with a specified index or an integer, but got: {device}")
