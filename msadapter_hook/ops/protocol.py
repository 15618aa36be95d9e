"""What Python asks of a tensor: its text, copies, pickles, and the properties that PyTorch code looks at."""

import copy as _copy
from collections import OrderedDict

import numpy as np

from msadapter_hook.tape import no_grad
from msadapter_hook.tensor import Tensor, from_array, printing
from msadapter_hook.tensor import generator as generators
from msadapter_hook.tensor.device import current_device
from msadapter_hook.tensor.storage import deep_copied

from . import dispatch, overrides
from .devices import place
from .dispatch import wrapper


def _text(self, tensor_contents=None):
    grad_fn = self.grad_fn if not self.is_leaf else None
    name = type(grad_fn).__name__
    class_name = "tensor" if type(self)._overrides is False else type(self).__name__
    shown = self.device if self.device.type != current_device().type else None
    if tensor_contents is not None or self._history.value.wrapped:
        if tensor_contents is None:
            tensor_contents = _contents(self, len(class_name) + 1)
        return printing.format_tensor(None, self._dtype, shape=self._size, requires_grad=self.requires_grad, device=shown,
                                      grad_fn_name=name if grad_fn is not None else None, class_name=class_name,
                                      contents=tensor_contents)
    if self.is_meta:
        return printing.format_tensor(None, self._dtype, shape=self._size, requires_grad=self.requires_grad,
                                      grad_fn_name=name if grad_fn is not None else None, device=self.device, class_name=class_name)
    plain = self.detach()
    if self.is_conj() or self.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    return printing.format_tensor(
        plain.as_subclass(Tensor).value.numpy, self._dtype, requires_grad=self.requires_grad,
        grad_fn_name=name if grad_fn is not None else None, device=shown, class_name=class_name)


def elements(tensor):
    """The elements of a tensor whose class alone knows them, asked for one by one, as a NumPy array."""
    with no_grad():
        flat = tensor.reshape((-1,)) if tensor.ndim else tensor.unsqueeze(0)
        numbers = [flat.select(0, i).item() for i in range(tensor.numel())]
    dtype = np.dtype(np.float32) if tensor._dtype.numpy.kind == "V" else tensor._dtype.numpy
    return np.array(numbers, dtype).reshape(tensor._size)


def _contents(self, indent):
    if self.numel() > printing.PRINT_OPTS.threshold:
        return "..."
    return printing.format_values(elements(self), indent) if self.numel() else "[]"


def __repr__(self, *, tensor_contents=None):
    if self._overrides or overrides.entered:
        with overrides.DisableTorchFunctionSubclass(), dispatch.without_modes():
            text = _text(self, tensor_contents)
        return f"Parameter({text})" if self._overrides and getattr(self, "_is_param", False) else text
    return _text(self)


def __deepcopy__(self, memo):
    """A copy with storage of its own, shared as the original's is. Source: PyTorch, Tensor.__deepcopy__."""
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were "
            "attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001")
    if id(self) in memo:
        return memo[id(self)]
    if self._dispatches and self._history.value.wrapped:
        return _deepcopied_wrapper(self, memo)
    copied = deep_copied(self._history.storage, memo)
    history = self._history
    moves = ()
    while history is not None:
        moves = history.moves + moves
        history = history.parent
    moves = moves + self._moves
    made = Tensor._window(copied, moves, self._size, self._stride, self._offset, self._dtype)
    if moves:
        copied.views = True
    if type(self) is not Tensor:
        made = made.as_subclass(type(self))
    if self.requires_grad:
        made.requires_grad_()
    if self.grad is not None:
        made.grad = _copy.deepcopy(self.grad, memo)
    memo[id(self)] = made
    made.__dict__.update(_copy.deepcopy(self.__dict__, memo))
    return made


def _deepcopied_wrapper(self, memo):
    """A copy of a tensor whose data only its class knows: its clone, with copies of its attributes."""
    made = self.clone()
    if type(made) is not type(self):
        raise RuntimeError("The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that "
                           "properly implement clone() and for which cloning returns another instance of the same subclass; the clone of "
                           f"{type(self)} is a {type(made)}. Give the class a __deepcopy__ of its own, or a clone() that gives its type")
    made = made.detach()
    if self.requires_grad:
        made.requires_grad_()
    if self.grad is not None:
        made.grad = _copy.deepcopy(self.grad, memo)
    memo[id(self)] = made
    if type(self).__dict__.get("__slots__"):
        for name in type(self).__slots__:
            if hasattr(self, name):
                setattr(made, name, _copy.deepcopy(getattr(self, name), memo))
    made.__dict__.update(_copy.deepcopy(self.__dict__, memo))
    return made


def __reduce_ex__(self, protocol):
    """Pickles as PyTorch's: the storage, and the geometry over it."""
    import importlib

    utils = importlib.import_module(_served(type(self)) + "._utils")
    storage = importlib.import_module(_served(type(self)) + ".storage")
    typed = storage.TypedStorage(wrap_storage=self.untyped_storage(), dtype=self._dtype, _internal=True)
    arguments = (typed, self._offset, tuple(self._size), self._stride, self.requires_grad, OrderedDict(), *utils._waiting(self))
    if type(self) is Tensor and not self.__dict__:
        return utils._rebuild_tensor_v2, arguments
    tensor_module = importlib.import_module(_served(type(self)) + "._tensor")
    return tensor_module._rebuild_from_type_v2, (utils._rebuild_tensor_v2, type(self), arguments, dict(self.__dict__))


def _served(cls):
    """The name under which the served tree is imported."""
    return "torch"


def _type_flag(*kinds):
    return property(lambda self: self.device.type in kinds)


def is_floating_point(self):
    return self._dtype.is_floating_point


def is_complex(self):
    return self._dtype.is_complex


def is_signed(self):
    return self._dtype.is_signed


def is_inference(self):
    return self._history.storage.inference


def cuda(self, device=None, non_blocking=False, memory_format=None):
    """On MindSpore's device: the adapter's one device, with one warning. Source: PyTorch, Tensor.cuda."""
    return place(self, "cuda")


def npu(self, device=None, non_blocking=False):
    return place(self, "npu")


def get_device(self):
    return -1 if self.device.type == "cpu" else self.device.index or 0


def pin_memory(self, device=None):
    """Itself: there is no pinned memory to copy to. Source: PyTorch, Tensor.pin_memory."""
    return self


def is_pinned(self, device=None):
    return False


def share_memory_(self):
    """Itself: workers are threads, which share memory. Source: PyTorch, Tensor.share_memory_."""
    return self


def is_shared(self):
    return False


def is_same_size(self, other):
    if self.is_nested != other.is_nested:
        words = ["nested" if t.is_nested else "not nested" for t in (self, other)]
        raise RuntimeError(f"Expected both self and other to be nested tensors. Self is {words[0]}. While Other is {words[1]}.")
    return self._size == other._size


def to_dense(self, dtype=None, *, masked_grad=None):
    """The tensor itself: every tensor is dense here. Source: PyTorch, Tensor.to_dense."""
    return self if dtype is None else self.to(dtype)


def storage_type(self):
    """The legacy storage class of the dtype, as torch.FloatStorage. Source: PyTorch, Tensor.storage_type."""
    import importlib

    return importlib.import_module(_served(type(self)) + ".storage")._legacy_storage_class(self._dtype)


def _fix_weakref(self):
    """Nothing to mend: weak references are right as long as a tensor lives. Source: PyTorch, Tensor._fix_weakref."""


def install():
    """Attach the protocol to Tensor, and tensors to the generator's states."""
    for method in (__repr__, __deepcopy__, __reduce_ex__, is_floating_point, is_complex, is_signed, is_inference, cuda, npu,
                   get_device, pin_memory, is_pinned, share_memory_, is_shared, is_same_size, to_dense,
                   storage_type, _fix_weakref):
        setattr(Tensor, method.__name__, method)
    for name, kinds in {"is_cuda": ("cuda",), "is_cpu": ("cpu",), "is_meta": ("meta",), "is_mps": ("mps",), "is_npu": ("npu",),
                        "is_xpu": ("xpu",), "is_ipu": ("ipu",), "is_xla": ("xla",), "is_maia": ("maia",),
                        "is_vulkan": ("vulkan",)}.items():
        setattr(Tensor, name, _type_flag(*kinds))
    for name in ("is_sparse", "is_sparse_csr", "is_quantized", "is_nested", "is_mkldnn"):
        setattr(Tensor, name, False)
    Tensor._make_wrapper_subclass = staticmethod(wrapper)
    Tensor.names = property(lambda self: (None,) * self.ndim)
    generators.state_out = from_array
    generators.state_in = _state_array


def _state_array(state):
    import numpy as np

    if not isinstance(state, (Tensor, np.ndarray)):
        raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
    array = state if isinstance(state, np.ndarray) else state.detach().value.numpy
    if array.dtype != np.uint8:
        raise TypeError("RNG state must be a torch.ByteTensor")
    return array


