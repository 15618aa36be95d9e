# Parameter, Buffer and their uninitialized forms: tensors that a Module registers when they are assigned to it.
from collections import OrderedDict

from msadapter_hook import foreign

from .. import Tensor, empty, preserve_format
from .._C import _disabled_torch_function_impl

__all__ = [
    "Parameter",
    "UninitializedParameter",
    "is_lazy",
    "Buffer",
    "UninitializedBuffer",
    "UninitializedTensorMixin",
]


class _ParameterMeta(type(Tensor)):
    # A tensor of another subclass becomes a parameter by a flag, not by its class.
    def __instancecheck__(cls, instance):
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is registered as a parameter when assigned as an attribute of a Module.

    Shares storage with `data`; requires grad unless told otherwise. Source: PyTorch, torch.nn.Parameter.
    """

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = empty(0)
        elif not isinstance(data, Tensor):
            data = foreign.tensor(data)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        tensor = data.detach().requires_grad_(requires_grad)
        if type(tensor) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns "
                f"an instance of the same type, but return type {type(tensor).__name__} was found instead."
            )
        tensor._is_param = True
        return tensor

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.data.clone(memory_format=preserve_format), self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto):
        from .._utils import _rebuild_parameter, _rebuild_parameter_with_state

        # Hooks are not written; the empty dictionary keeps the place that old files have for them.
        if self.__dict__:
            return _rebuild_parameter_with_state, (self.data, self.requires_grad, OrderedDict(), dict(self.__dict__))
        return _rebuild_parameter, (self.data, self.requires_grad, OrderedDict())

    __torch_function__ = _disabled_torch_function_impl


# What may be done to a tensor that has no shape yet: moving it, changing its type, copying it.
_ALLOWED_NAMES = frozenset(
    "__hash__ size copy_ is_complex is_floating_point half float double char short int long bfloat16 cuda cpu to "
    "get_device _has_compatible_shallow_copy_type __get__ __set__".split()
)


class UninitializedTensorMixin:
    """Behaviour shared by tensors whose shape is not known until `materialize` is called."""

    def materialize(self, shape, device=None, dtype=None):
        """Give the tensor memory of `shape` (device and dtype: its own); it becomes a plain parameter or buffer."""
        self.data = empty(
            shape,
            device=self.data.device if device is None else device,
            dtype=self.data.dtype if dtype is None else dtype,
        )
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self):
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, proto):
        return type(self), (self.requires_grad,)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if type(func).__name__ == "method-wrapper" or getattr(func, "__name__", "") in _ALLOWED_NAMES:
            return super().__torch_function__(func, types, args, kwargs or {})
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a "
            "`LazyModule` or explicitly manipulating `torch.nn.parameter.UninitializedParameter` objects. When using "
            "LazyModules Call `forward` with a dummy batch to initialize the parameters before calling torch functions"
        )


def is_lazy(param):
    """Whether `param` is an uninitialized parameter or buffer."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is still unknown. Source: PyTorch, torch.nn.parameter.UninitializedParameter."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return Tensor._make_subclass(cls, empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        memo[id(self)] = result
        return result


class _BufferMeta(type(Tensor)):
    def __instancecheck__(cls, instance):
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that is registered as a buffer when assigned as an attribute of a Module.

    The result is a tensor of the class of `data` with a mark. Source: PyTorch, torch.nn.Buffer.
    """

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = empty(0)
        tensor = data.detach().requires_grad_(data.requires_grad)
        tensor.persistent = persistent
        tensor._is_buffer = True
        return tensor

    __torch_function__ = _disabled_torch_function_impl


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is still unknown. Source: PyTorch, torch.nn.parameter.UninitializedBuffer."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        result = Tensor._make_subclass(cls, empty(0, device=device, dtype=dtype), requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result
