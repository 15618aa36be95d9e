"""Tensor: a thin handle on a storage, a geometry and a history. Operators are attached to it by `ops`."""

import warnings
import weakref

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import Value, enable_grad, no_grad, value_of
from msadapter_hook.tape.abstract import Meta
from msadapter_hook.tape.recording import state

from . import dtype as dtypes
from . import geometry, view
from .device import cpu, meta
from .geometry import Size, size_of, standard_stride
from .leaf import Leaf, UnkeptLeaf
from .storage import History, UntypedStorage, new_storage, write_through

Meta.place = meta
DTYPE_OF = {t.numpy: t for t in dtypes.ALL if t is not dtypes.complex32}


class TensorBase:
    """State of a tensor. `_size`, `_stride`, `_offset`: its geometry in the storage; `_moves`: how it is read from the
    base of its `_history`; `_value`, `_generation`: the value read last, and when."""

    __slots__ = ("_history", "_size", "_stride", "_offset", "_moves", "_value", "_generation", "_dtype", "_leaf", "_extra",
                 "_source", "_base", "_parent", "__dict__", "__weakref__")

    # -------------------------------------------------------------------------------------------- making
    @classmethod
    def _make(cls, value: Value, dtype=None, stride=None, device=None):
        """A new tensor of this class over `value`, which becomes the base of a storage of its own."""
        if value.wrapped and not state.symbolic:
            return value.shown()
        self = object.__new__(cls)
        shape = value.shape
        stride = stride or standard_stride(shape)
        self._history = new_storage(value, shape, stride, device)
        self._size = size_of(shape)
        self._stride = stride
        self._offset = 0
        self._moves = ()
        self._value = value
        self._generation = 0
        self._dtype = dtype or DTYPE_OF[value.dtype]
        self._leaf = None
        self._extra = None
        self._source = None
        self._base = None
        self._parent = None
        return self

    @classmethod
    def _window(cls, history, moves, size, stride, offset, dtype):
        """A tensor of this class over an existing history."""
        self = object.__new__(cls)
        self._history = history
        self._size = Size(size)
        self._stride = tuple(stride)
        self._offset = offset
        self._moves = moves
        self._value = None
        self._generation = -1 - history.storage.generation  # not read yet, made at that generation
        self._dtype = dtype
        self._leaf = None
        self._extra = None
        self._source = None
        self._base = None
        self._parent = None
        return self

    def _view(self, move, size, stride, offset=None, dtype=None):
        """The view of this tensor that `move` shows; a plain Tensor."""
        offset = self._offset if offset is None else offset
        dtype = dtype or self._dtype
        if not state.enabled and self._history.value.requires_grad:
            made = self._view_without_history(move, size, stride, offset, dtype)
        else:
            self._history.views = True
            made = Tensor._window(self._history, self._moves + (move,), size, stride, offset, dtype)
            if self._moves and self._history.value.requires_grad:
                made._parent = (self, self._history.storage.generation)
        made._base = self._base if self._base is not None else self
        if self._extra is not None and "multiview" in self._extra:
            made._extra_state()["multiview"] = self._extra["multiview"]
        return made

    def _view_without_history(self, move, size, stride, offset, dtype):
        """A view made while nothing is recorded: it shares the data, and claims to be a leaf that requires grad."""
        history = self._alias_history(share_version=True)
        made = Tensor._window(history, (move,), size, stride, offset, dtype)
        return made._unrecorded_view((self._base if self._base is not None else self).requires_grad)

    def _unrecorded_view(self, requires_grad=True):
        """This window (of a history without gradients) as a view made while nothing is recorded, whose base requires grad or not."""
        made = self
        if requires_grad and (self._dtype.is_floating_point or self._dtype.is_complex):
            made = self._alias(Tensor, share_version=True, leaf=UnkeptLeaf(None))
        made._extra = {"no_grad_view": "inference" if state.inference else "no_grad"}
        return made

    def _alias_history(self, share_version, leaf=None):
        """A new history that starts with this tensor's data."""
        mine = self._history
        mine.views = True
        if mine.storage.buffer is not None:
            with no_grad():
                data = value_of(self.value.numpy.copy())
        else:
            data = self.value.detach()
        if leaf is not None:
            data = data.as_leaf(leaf)
        return History(mine.storage, data, self._size, self._stride, self._offset, mine, self._moves,
                       mine.version if share_version else None)

    def _alias(self, cls=None, share_version=True, leaf=None):
        """This tensor's data under a history of its own: what `detach()`, `.data` and Parameter give."""
        history = self._alias_history(share_version, leaf)
        made = (cls or Tensor)._window(history, (), self._size, self._stride, self._offset, self._dtype)
        if leaf is not None:
            made._leaf = leaf
            leaf.tensor = weakref.ref(made)
        return made

    # -------------------------------------------------------------------------------------------- data
    @property
    def value(self) -> Value:
        """The tensor's Value, read anew after the storage has changed."""
        history = self._history
        storage = history.storage
        if storage.buffer is None:
            if self._generation == storage.generation:
                v = self._value
                if v.requires_grad and not state.enabled:
                    return v.detach()
                return v
            v = self._seen(history.read())
            if v.requires_grad and self._moves and self._extra is not None and "retains" in self._extra:
                self._retain_here(v)
            if state.enabled or not history.value.requires_grad:
                self._value = v
                self._generation = storage.generation
            elif v.requires_grad:  # the base itself: nothing was read through a move
                return v.detach()
            return v
        base = v = history.read()
        if v.requires_grad:  # hooks and grad_fn belong to one value, as long as the data do not change
            if self._source is base and self._generation == storage.generation:
                return self._value
            v = self._value if _read_from(self._value, base, self._moves) else self._seen(v)
            self._value, self._source, self._generation = v, base, storage.generation
            return v
        return self._through(v)

    def _retain_here(self, v):
        """Keep the gradient of what this view shows now, no longer that of what it showed before a write."""
        old = self._value
        tap = old.node.taps.pop(old.index, None) if old is not None and old.node is not None and old.node.taps else None
        if tap is not None:
            old.node.taps[old.index] = type(tap)()
            old.node.taps[old.index].hooks = tap.hooks
            if v.node.taps is None:
                v.node.taps = {}
            v.node.taps.setdefault(v.index, type(tap)()).retained = tap.retained

    def _seen(self, base):
        """What this view shows of the base. A view of a view is read from that view's value, whose gradient and hooks see what
        flows through here, unless the storage has been written to since: then both are views of the new base."""
        if self._parent is None:
            return self._through(base)
        parent, generation = self._parent
        self._parent = None
        if generation != self._history.storage.generation or not state.enabled:
            return self._through(base)
        move = self._moves[-1]
        v = move.read(parent.value)
        if v.requires_grad and v.node.operator is None:
            v.node.operator = move.grad_name
        return v

    def _through(self, v):
        """The base Value seen through the moves; nodes of the view bear its name."""
        written = self._generation != -1 - self._history.storage.generation and not self._shared
        for move in self._moves:
            v = move.read(v)
            if v.requires_grad and v.node.operator is None and not written:
                v.node.operator = move.grad_name
        if written and v.requires_grad and v.node is not None and v.node.operator is None:
            v.node.operator = "AsStridedBackward0"  # what PyTorch makes of a view after a write
        return v

    def _write(self, new: Value):
        """Make `new` (of this tensor's shape and dtype) the data, seen by every tensor on the storage."""
        history = self._history
        storage = history.storage
        if storage.buffer is not None and new._numpy is not None and np.may_share_memory(new._numpy, storage.buffer):
            new = Value(new.shape, new.dtype, new.numpy.copy(), None, new.node, new.index, new.requires_grad)
        if self._moves:
            base = history.read()
            result = write_through(self._moves, base, new)
            if state.enabled and not result.requires_grad and base.requires_grad or state.levels and _forgets(base, result):
                result = prims.overwrite(base, result)
            if result.node is not None and result.node.operator is None:
                result.node.operator = "CopySlices"
            history.write(result)
            return
        if state.enabled and not new.requires_grad and history.value.requires_grad or state.levels and _forgets(history.value, new):
            new = prims.overwrite(history.read(), new)
        history.write(new)
        if storage.buffer is None:
            self._value = history.value
            self._generation = storage.generation

    @property
    def _shared(self):
        """The memory is visible from outside (NumPy, data_ptr)."""
        return self._history.storage.buffer is not None

    def _strided_numpy(self) -> np.ndarray:
        """A NumPy array over the tensor's own memory, with its strides."""
        flat = self._history.storage.export()
        dtype = self._dtype.numpy
        if flat.dtype != dtype:
            flat = flat.view(np.uint8)
            flat = flat[: flat.size // dtype.itemsize * dtype.itemsize].view(dtype)
        return np.lib.stride_tricks.as_strided(
            flat[self._offset:] if self._offset else flat, self._size, [s * dtype.itemsize for s in self._stride])

    # -------------------------------------------------------------------------------------------- autograd state
    @property
    def requires_grad(self) -> bool:
        """Whether a gradient is computed for this tensor. Source: PyTorch, Tensor.requires_grad."""
        if self._leaf is not None:
            return True
        history = self._history
        if self._generation == history.storage.generation:
            return self._value.requires_grad
        if not history.value.requires_grad:
            return False
        if not self._moves:
            return True
        with enable_grad():  # a view that is out of date: what it shows decides
            return self.value.requires_grad

    @requires_grad.setter
    def requires_grad(self, mode):
        if mode is True and not (self._dtype.is_floating_point or self._dtype.is_complex):
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        self.requires_grad_(mode)

    @requires_grad.deleter
    def requires_grad(self):
        raise RuntimeError("requires_grad must be a bool")

    def requires_grad_(self, requires_grad=True):
        """Start or stop computing gradients for this leaf, in place. Source: PyTorch, Tensor.requires_grad_."""
        if not isinstance(requires_grad, bool):
            raise RuntimeError("requires_grad must be a bool")
        if requires_grad and not (self._dtype.is_floating_point or self._dtype.is_complex):
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if requires_grad and self._history.storage.inference and not state.inference:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        if state.transforms and requires_grad:
            raise RuntimeError(
                "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) inside of a "
                "function being transformed by a functorch transform. This is unsupported, please attempt to use the functorch "
                "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of a function being "
                "transformed instead.")
        if requires_grad == self.requires_grad and (requires_grad is False or self._leaf is not None):
            return self
        if not self.is_leaf:
            if requires_grad:
                return self
            raise RuntimeError("you can only change requires_grad flags of leaf variables. If you want to use a computed "
                               "variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach().")
        history = self._history
        if not requires_grad:
            leaf, self._leaf = self._leaf, None
            self._extra_state().update(grad=leaf.grad, leaf=leaf)  # its hooks are there again with requires_grad
            if history.value.leaf is leaf:
                history.value = history.value.detach()
                self._value = None
                self._generation = -1
            return self
        extra = self._extra or {}
        leaf = extra.pop("leaf", None) or Leaf(weakref.ref(self))
        leaf.grad = extra.pop("grad", None)
        if self._moves or history.views or history.value.requires_grad or history.storage.buffer is not None:
            self._history = self._alias_history(share_version=True, leaf=leaf)
            self._moves = ()
        else:
            history.value = history.read().as_leaf(leaf)
        self._value = None
        self._generation = -1
        self._leaf = leaf
        return self

    @property
    def is_leaf(self) -> bool:
        """True for tensors made by the user, and for those that require no grad. Source: PyTorch, Tensor.is_leaf."""
        return self._leaf is not None or not self.requires_grad

    @property
    def grad(self):
        """The gradient gathered by backward, or None. Source: PyTorch, Tensor.grad."""
        if self._leaf is not None:
            return self._leaf.grad
        found = self._extra.get("grad") if self._extra is not None else None
        if found is None and self.requires_grad and not self.retains_grad:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated "
                "during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() "
                "on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See "
                "github.com/pytorch/pytorch/pull/30531 for more information.", UserWarning, stacklevel=2)
        return found

    @grad.setter
    def grad(self, new):
        if new is not None:
            if not isinstance(new, Tensor):
                raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(new).__name__}")
            if new is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if new._dtype is not self._dtype:
                raise RuntimeError(f"assigned grad has data of a different type: expected {self._dtype.scalar_name} tensor, "
                                   f"got {new._dtype.scalar_name}")
            if new._size != self._size:
                raise RuntimeError(f"assigned grad has data of a different size: expected {list(self._size)}, "
                                   f"got {list(new._size)}")
        if self._leaf is not None:
            self._leaf.grad = new
        elif new is not None or self._extra is not None:
            self._extra_state()["grad"] = new

    @grad.deleter
    def grad(self):
        self.grad = None

    def _extra_state(self):
        """Rarely used state (grad of a non-leaf, names, ...), a dictionary made at first use."""
        if self._extra is None:
            self._extra = {}
        return self._extra

    @property
    def _version(self) -> int:
        if self._history.storage.inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self._history.version.count

    @property
    def data(self):
        """The same data without history and with a version counter of its own. Source: PyTorch, Tensor.data."""
        if self._dispatches:
            return self.detach()
        return self._alias(Tensor if type(self) is not Tensor else None, share_version=False)

    @data.setter
    def data(self, new):
        """Let this tensor hold the data of `new`; its place in the graph stays."""
        if not isinstance(new, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(new).__name__}")
        leaf = self._leaf
        version = self._history.version
        if leaf is not None and not (new._dtype.is_floating_point or new._dtype.is_complex):
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        old = self.value
        self._history = new._alias_history(share_version=False, leaf=leaf)
        self._history.version = version
        if leaf is None and old.requires_grad:
            from .storage import renew

            self._history.value = renew(old, self._history.value)
        self._moves = ()
        self._size, self._stride, self._offset, self._dtype = new._size, new._stride, new._offset, new._dtype
        self._value = None
        self._generation = -1

    @data.deleter
    def data(self):
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    def detach(self):
        """The same data, cut from the graph; writes to either are seen by both. Source: PyTorch, Tensor.detach."""
        made = self._alias(Tensor, share_version=True)
        if state.levels:  # nor does a tangent follow
            value = made._history.value
            made._history.value = Value(value.shape, value.dtype, value.numpy)
        return made

    # -------------------------------------------------------------------------------------------- geometry
    @property
    def shape(self):
        return self._size

    @property
    def dtype(self):
        return self._dtype

    @property
    def device(self):
        return self._history.storage.device or cpu

    @property
    def ndim(self):
        return len(self._size)

    @property
    def layout(self):
        return dtypes.strided

    def dim(self):
        return len(self._size)

    ndimension = dim

    def size(self, dim=None):
        if dim is None:
            return self._size
        return self._size[geometry.wrap_dim(dim, len(self._size), scalar=False)]

    def stride(self, dim=None):
        if dim is None:
            return self._stride
        return self._stride[geometry.wrap_dim(dim, len(self._size), scalar=False)]

    def storage_offset(self):
        return self._offset

    def numel(self):
        return self._size.numel()

    nelement = numel

    def element_size(self):
        return self._dtype.itemsize

    @property
    def itemsize(self):
        return self._dtype.itemsize

    @property
    def nbytes(self):
        return self._size.numel() * self._dtype.itemsize

    def is_contiguous(self, memory_format=dtypes.contiguous_format):
        if memory_format is dtypes.contiguous_format or memory_format is dtypes.preserve_format:
            return geometry.is_contiguous(self._size, self._stride)
        rank = 4 if memory_format is dtypes.channels_last else 5
        return len(self._size) == rank and geometry.is_channels_last(self._size, self._stride)

    def untyped_storage(self):
        return UntypedStorage(_history=self._history)

    def data_ptr(self):
        """The address of the first element; from now on the memory stays in place. Source: PyTorch, Tensor.data_ptr."""
        if self._size.numel() == 0 or self._history.value.abstract:
            return 0
        return self._history.storage.export().ctypes.data + self._offset * self._dtype.itemsize

    def _is_view(self):
        return self._base is not None

    def is_set_to(self, tensor):
        return (self._history.storage is tensor._history.storage and self._size == tensor._size
                and self._stride == tensor._stride and self._offset == tensor._offset)


def DISABLED_DISPATCH(func, types, args=(), kwargs=None):
    """The `__torch_dispatch__` of classes that do not ask for it, and what a class that does may fall back to: the operator on
    tensors as plain ones. Source: PyTorch, torch._C._disabled_torch_dispatch_impl."""
    return Tensor._undispatched(func, args, kwargs or {})


def _read_from(value, base, moves):
    """Whether a value is what these moves showed of this very base: it still is, whether the memory has been handed out since or not."""
    for _ in range(3 * len(moves)):  # a move is recorded as three nodes at most
        if value is base or value is None or value.leaf is not None or value.node is None or not value.node.inputs:
            break
        value = value.node.inputs[0]
    return value is base


def _forgets(old, new):
    """Whether a write leaves nothing of a value that has a tangent: then the tangent becomes zero, it does not go away."""
    return any(level.tangent(old) is not None and level.tangent(new) is None for level in state.levels)


def DISABLED(func, types, args=(), kwargs=None):
    """The `__torch_function__` of classes that behave as plain tensors; as PyTorch's it is never bound to its class. Source: PyTorch,
    torch._C._disabled_torch_function_impl."""
    return Tensor._disabled_torch_function(func, args, kwargs or {})


def _function(cls):
    """The function behind the `__torch_function__` of a class."""
    return getattr(cls.__torch_function__, "__func__", cls.__torch_function__)


class TensorMeta(type):
    """The class of Tensor and its subclasses, which notices who wants a say in operators."""

    def __setattr__(cls, name, value):
        super().__setattr__(name, value)
        if name in ("__torch_function__", "__torch_dispatch__") and cls is not Tensor:
            cls._take_part()


TensorMeta.__name__ = TensorMeta.__qualname__ = "_TensorMeta"


class Tensor(TensorBase, metaclass=TensorMeta):
    """A multi-dimensional array whose computations are recorded on the tape. Source: PyTorch, torch.Tensor."""

    __slots__ = ()
    __module__ = "torch"

    #: Subclasses take part in what operators do through `__torch_function__`; plain tensors are not asked.
    _overrides = False
    _asks = False  # by `__torch_function__`
    _dispatches = False  # by `__torch_dispatch__`
    __torch_dispatch__ = staticmethod(DISABLED_DISPATCH)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__torch_dispatch__" in cls.__dict__ and _function(cls) is _function(Tensor):
            cls.__torch_function__ = staticmethod(DISABLED)  # who sees the operators below has no need of the functions
        cls._take_part()

    @classmethod
    def _take_part(cls):
        """Note whether the class asks for functions and for what is below them."""
        cls._asks = _function(cls) is not DISABLED
        cls._dispatches = cls.__torch_dispatch__ is not DISABLED_DISPATCH
        cls._overrides = cls._asks or cls._dispatches

    @staticmethod
    def _make_subclass(cls, data, require_grad=False, **unused):
        """`data` as an instance of `cls`: the same storage, no history. Source: PyTorch, Tensor._make_subclass."""
        if require_grad and not (data._dtype.is_floating_point or data._dtype.is_complex):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        if require_grad and data._history.storage.inference and not state.inference:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        return data._alias(cls, leaf=Leaf(None) if require_grad else None)

    def as_subclass(self, cls):
        """The same tensor, history included, as an instance of `cls`. Source: PyTorch, Tensor.as_subclass."""
        made = object.__new__(cls)
        for name in TensorBase.__slots__[:-2]:
            setattr(made, name, getattr(self, name))
        return made


def from_value(value: Value, dtype=None, stride=None) -> Tensor:
    """A new tensor over a Value."""
    return Tensor._make(value, dtype, stride)


def from_array(array: np.ndarray, dtype=None) -> Tensor:
    """A new tensor over a NumPy array that nobody else writes to."""
    return Tensor._make(value_of(array), dtype)


def share_array(array: np.ndarray) -> Tensor:
    """A tensor over the memory of a NumPy array: writes on either side are seen on the other."""
    dtype = dtypes.from_numpy_dtype(array.dtype)
    if any(s < 0 for s in array.strides):
        raise ValueError("At least one stride in the given numpy array is negative, and tensors with negative strides are "
                         "not currently supported. (You can probably work around this by making a copy of your array "
                         " with array.copy().) ")
    if any(s % array.itemsize for s in array.strides):
        raise ValueError("given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
                         "reallocate the memory.")
    if array.flags.c_contiguous:
        flat = array.reshape(-1)
        self = Tensor._make(value_of(array), dtype)
        self._history.storage.buffer, self._history.storage.lent = flat, True
        self._generation = -1
        return self
    stride = tuple([s // array.itemsize for s in array.strides])
    length = 1 + sum((n - 1) * s for n, s in zip(array.shape, stride)) if array.size else 0
    flat = np.lib.stride_tricks.as_strided(array, (length,), (array.itemsize,))
    root = new_storage(value_of(flat), (length,), (1,))
    root.storage.buffer, root.storage.lent = flat, True
    move = view.AsStrided(array.shape, stride, 0, (length,), (1,))
    root.views = True
    return Tensor._window(root, (move,), array.shape, stride, 0, dtype)


def from_storage(storage: UntypedStorage, dtype, size, stride, offset=0, requires_grad=False) -> Tensor:
    """A tensor with this geometry (in elements of `dtype`) over an untyped storage.

    RuntimeError where the geometry does not fit into the storage.
    """
    size, stride = tuple(size), tuple(stride)
    length = storage.nbytes() // dtype.itemsize
    last = offset + sum((n - 1) * s for n, s in zip(size, stride)) if 0 not in size else 0
    if offset < 0 or min(stride, default=0) < 0 or (0 not in size and last >= length):
        raise RuntimeError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize "
                           f"{dtype.itemsize} requiring a storage size of {(last + 1) * dtype.itemsize} are out of bounds for "
                           f"storage of size {storage.nbytes()}")
    inner = storage._storage
    root = inner.root
    root.views = True
    moves = ()
    if dtype.numpy != root.value.dtype:
        if len(root.size) != 1:
            moves += (view.Reshape((geometry.numel(root.size),)),)
        usable = length * dtype.itemsize // root.value.dtype.itemsize
        if usable != geometry.numel(root.size):
            moves += (view.Slice((0,), (usable,), (1,)),)
        moves += (view.Bits(dtype.numpy),)
        base_size, base_stride = (length,), (1,)
    else:
        base_size, base_stride = root.size, root.stride
    if not (offset == 0 and size == base_size and stride == base_stride):
        moves += (view.AsStrided(size, stride, offset, base_size, base_stride),)
    made = Tensor._window(root, moves, size, stride, offset, dtype)
    return made.requires_grad_() if requires_grad else made


def detached(tensor: Tensor) -> Value:
    """The tensor's value without history."""
    with no_grad():
        return tensor.value


def cast_value(value: Value, dtype) -> Value:
    """The Value in the dtype (ours) asked for."""
    return value if value.dtype == dtype.numpy else prims.cast(value, dtype=dtype.numpy)
