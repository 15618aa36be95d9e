# How tensors are pickled: in PyTorch's format, so that its checkpoints and ours are the same.
from collections import OrderedDict

from msadapter_hook.tensor import Tensor
from msadapter_hook.tensor.dtype import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided

from ._utils import (
    _get_obj_state,
    _rebuild_meta_tensor_no_storage,
    _rebuild_nested_tensor,
    _rebuild_sparse_tensor,
    _rebuild_tensor_v2,
    _rebuild_tensor_v3,
    _rebuild_wrapper_subclass,
    _set_obj_state,
    _waiting,
)
from .storage import TypedStorage, _legacy_storage_class, _warn_typed_storage_removal
from .utils.hooks import warn_if_has_hooks


def _rebuild_from_type_v2(func, new_type, args, state):
    """A tensor of a subclass, or one with attributes: made as a plain tensor, then given type and state."""
    made = func(*args)
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    if getattr(made.__class__, "__setstate__", Tensor.__setstate__) is not Tensor.__setstate__:
        made.__setstate__(state)
    else:
        made = _set_obj_state(made, state)
    return made


def _reduce_plain(self):
    if self.device.type == "meta":
        return _rebuild_meta_tensor_no_storage, (self.dtype, tuple(self.size()), self.stride(), self.requires_grad)
    if self._dispatches and self._history.value.wrapped:
        return _rebuild_wrapper_subclass, (type(self), self.dtype, tuple(self.size()), self.stride(), self.storage_offset(), self.layout,
                                           self.device, self.requires_grad)
    geometry = (self.storage_offset(), tuple(self.size()), self.stride())
    hooks = OrderedDict()  # hooks are never saved; the format has a place for them
    if _legacy_storage_class(self.dtype) is None:
        return _rebuild_tensor_v3, (self.untyped_storage(), *geometry, self.requires_grad, hooks, self.dtype, *_waiting(self))
    storage = TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)
    return _rebuild_tensor_v2, (storage, *geometry, self.requires_grad, hooks, *_waiting(self))


def _reduce_compound(self):
    if self.layout is sparse_coo:
        return _rebuild_sparse_tensor, (sparse_coo, (self._indices(), self._values(), self.size(), self.is_coalesced()))
    if self.layout in (sparse_csr, sparse_bsr):
        return _rebuild_sparse_tensor, (self.layout, (self.crow_indices(), self.col_indices(), self.values().detach(), self.size()))
    if self.layout in (sparse_csc, sparse_bsc):
        return _rebuild_sparse_tensor, (self.layout, (self.ccol_indices(), self.row_indices(), self.values().detach(), self.size()))
    if self.is_nested and self.layout is strided:
        return _rebuild_nested_tensor, (self.values().detach(), self._nested_tensor_size(), self._nested_tensor_strides(),
                                        self._nested_tensor_storage_offsets())
    return self._reduced()


def _reduce_ex(self, protocol):
    warn_if_has_hooks(self)
    if self._compound:
        return _reduce_compound(self)
    state = _get_obj_state(self)
    if type(self) is Tensor and not state:
        return _reduce_plain(self)
    func, args = _reduce_plain(self)
    # a subclass may carry methods of its own for its state
    state = self.__getstate__() if _has_own_getstate(type(self)) else (state or None)
    return _rebuild_from_type_v2, (func, type(self), args, state)


def _has_own_getstate(cls):
    return any("__getstate__" in c.__dict__ for c in cls.__mro__ if not issubclass(Tensor, c))


def _setstate(self, state):
    """Takes over attributes, or the (storage, offset, size, stride) of the oldest files."""
    if isinstance(state, tuple) and len(state) == 4 and isinstance(state[0], TypedStorage):
        self.set_(*state)
    else:
        _set_obj_state(self, state)


def _storage(self):
    """The TypedStorage under this tensor (deprecated in PyTorch: `untyped_storage()` is the one to use)."""
    _warn_typed_storage_removal(stacklevel=2)
    return self._typed_storage()


def _typed_storage(self):
    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


for _name, _function in {
    "__reduce_ex__": _reduce_ex,
    "__setstate__": _setstate,
    "storage": _storage,
    "_typed_storage": _typed_storage,
}.items():
    setattr(Tensor, _name, _function)
