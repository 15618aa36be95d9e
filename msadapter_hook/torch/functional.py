"""torch.functional: public functions of torch that are plain Python over operators."""

from msadapter_hook.tensor import Size as _Size
from msadapter_hook.tensor import Tensor as _Tensor
from msadapter_hook.tensor import geometry as _geometry

__all__ = ["broadcast_shapes", "is_complex", "is_floating_point", "is_nonzero", "is_storage", "is_tensor", "numel",
           "result_type", "typename"]


def is_tensor(obj):
    """Whether `obj` is a tensor. Source: PyTorch, torch.is_tensor."""
    return isinstance(obj, _Tensor)


def is_storage(obj):
    """Whether `obj` is a storage. Source: PyTorch, torch.is_storage."""
    from msadapter_hook.tensor import UntypedStorage

    return isinstance(obj, UntypedStorage) or type(obj).__name__ == "TypedStorage"


def is_floating_point(input):
    """Whether the dtype is floating point. Source: PyTorch, torch.is_floating_point."""
    return input.dtype.is_floating_point


def is_complex(input):
    """Whether the dtype is complex. Source: PyTorch, torch.is_complex."""
    return input.dtype.is_complex


def is_nonzero(input):
    """Whether the single element is not zero. Source: PyTorch, torch.is_nonzero."""
    if input.numel() != 1:
        raise RuntimeError("Boolean value of Tensor with " + ("no values" if not input.numel() else "more than one value")
                           + " is ambiguous")
    return bool(input)


def numel(input):
    """How many elements. Source: PyTorch, torch.numel."""
    return input.numel()


def broadcast_shapes(*shapes):
    """The common shape. Source: PyTorch, torch.broadcast_shapes."""
    return _Size(_geometry.broadcast_shapes(*[(s,) if isinstance(s, int) else tuple(s) for s in shapes]))


def typename(obj):
    """The name of an object's type, as `torch.FloatTensor` for tensors. Source: PyTorch, torch.typename."""
    if isinstance(obj, _Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    module = getattr(obj if hasattr(obj, "__module__") and hasattr(obj, "__qualname__") else kind, "__module__", "") or ""
    name = getattr(obj, "__qualname__", None) or kind.__qualname__
    return name if module in ("", "builtins", "__builtin__") else f"{module}.{name}"


def result_type(tensor1, tensor2):
    """The dtype of an operation over two tensors or numbers. Source: PyTorch, torch.result_type."""
    from msadapter_hook.tensor import dtypes

    return dtypes.result_type((tensor1, tensor2))


def _assert(condition, message):
    """`assert` for programs that are traced. Source: PyTorch, torch._assert."""
    assert condition, message


def _check(cond, message=None):
    """RuntimeError unless `cond`. Source: PyTorch, torch._check."""
    _check_with(RuntimeError, cond, message)


def _check_with(error, cond, message):
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        raise error("Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
                    "enhancement request to PyTorch.)" if message is None else message())


def _check_tensor_all(cond, message=None):
    """RuntimeError unless every element is true. Source: PyTorch, torch._check_tensor_all."""
    _check_with(RuntimeError, bool(cond.all()), message)


def _check_value(cond, message=None):
    _check_with(ValueError, cond, message)


def _check_index(cond, message=None):
    _check_with(IndexError, cond, message)


def _check_type(cond, message=None):
    _check_with(TypeError, cond, message)


def _assert_tensor_metadata(a, size=None, stride=None, dtype=None, *, device=None, layout=None):
    """RuntimeError unless the tensor has the size, strides, dtype, device and layout given. Source: PyTorch,
    torch._assert_tensor_metadata."""
    facts = (("sizes", size and list(size), list(a.shape)), ("strides", stride and list(stride), list(a.stride())),
             ("dtype", dtype, a.dtype), ("device", device, a.device), ("layout", layout, a.layout))
    for name, expected, found in facts:
        if expected is not None and expected != found:
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {expected}, Got: {found}")


def _shape_as_tensor(input):
    """The size as an int64 tensor."""
    from msadapter_hook.ops.creation import tensor

    return tensor(list(input.shape))
