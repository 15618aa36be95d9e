"""The old constructors: `torch.Tensor(2, 3)`, `torch.Tensor([1, 2])`, `torch.LongTensor(...)`, `x.new(...)`."""

import numpy as np

from msadapter_hook.tensor import Size, Tensor, dtypes, from_array
from msadapter_hook.tensor.device import device as Device

from .arguments import type_name
from .creation import _filled, _flatten, _shape
from .registry import plain
from .tables import METHODS


def _options(dtype):
    return (f"TensorOptions(dtype={dtype.type_name}, device=cpu, layout=Strided, requires_grad=false (default), "
            "pinned_memory=false (default), memory_format=(nullopt))")


def _from_sequence(data, dtype):
    """Nested data cast to `dtype`, as C casts it: fractions are cut off, and nothing is refused."""
    if isinstance(data, np.ndarray):
        return from_array(np.array(data).astype(dtype.numpy), dtype)
    shape, flat = _shape(data), []
    _flatten(data, shape, 0, flat, ())
    flat = [x.item() if isinstance(x, (Tensor, np.generic)) else x for x in flat]
    if dtype.is_complex or not any(isinstance(x, complex) for x in flat):
        with np.errstate(all="ignore"):
            wide = np.complex128 if dtype.is_complex else np.float64
            if flat and all(isinstance(x, int) and abs(x) < 2 ** 63 for x in flat):
                wide = np.int64
            array = np.array(flat, wide).astype(dtype.numpy)
        return from_array(array.reshape(shape), dtype)
    raise TypeError("can't convert complex to float")


def construct(args, dtype, data=None, strict=False):
    """The tensor of an old constructor's arguments. `strict`: another tensor must have `dtype`."""
    if data is not None:
        args = (data, *args)
    if not args:
        return _filled((0,), 0, dtype)
    first = args[0]
    if len(args) == 1:
        if isinstance(first, Tensor):
            if strict and first._dtype is not dtype:
                raise TypeError(f"expected {_options(dtype)} (got {_options(first._dtype)})")
            return first.detach() if not first.requires_grad else first.view(first._size)
        if isinstance(first, Size):
            return _filled(first, 0, dtype)
        if isinstance(first,
                      (list, tuple, range, np.ndarray)) and not (isinstance(first, np.ndarray) and not first.ndim):
            return _from_sequence(first, dtype)
        if isinstance(first, str):
            raise TypeError("new(): invalid data type 'str'")
        if hasattr(first, "_untyped_storage") or hasattr(first, "nbytes") and hasattr(first, "data_ptr"):
            return _filled((0,), 0, dtype).set_(first)
        if isinstance(first, bool) or not hasattr(first, "__index__"):
            if hasattr(first, "__len__") and hasattr(first, "__getitem__") and not isinstance(first, (dict, set)):
                return _from_sequence(first, dtype)
            raise TypeError(f"new(): data must be a sequence (got {_full_name(first)})")
    for i, n in enumerate(args):
        if isinstance(n, bool) or not hasattr(n, "__index__"):
            if i == 0:
                raise TypeError(f"new() received an invalid combination of arguments - got "
                                f"({', '.join(type_name(a).partition(' ')[0] for a in args)}), but expected one of:\n"
                                " * (*, torch.device device = None)\n * (torch.Storage storage)\n * (Tensor other)\n"
                                " * (tuple of ints size, *, torch.device device = None)\n"
                                " * (object data, *, torch.device device = None)\n")
            raise TypeError(f"new(): argument 'size' failed to unpack the object at pos {i + 1} with error \"type must "
                            f"be tuple of ints,but got {_full_name(n)}\"")
    return _filled(tuple([n.__index__() for n in args]), 0, dtype)


def _full_name(x):
    kind = type(x)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _on(device):
    if device is not None and Device(device).type != "cpu":
        raise RuntimeError(f"legacy constructor expects device type: cpu but device type: {Device(device).type} was "
                           "passed")


def _tensor_new(cls, *args, device=None, data=None, **keywords):
    """`torch.Tensor(*size)`, `torch.Tensor(data)`, `torch.Tensor(other)`. Source: PyTorch, torch.Tensor."""
    if cls is not Tensor and (keywords or len(args) > 1 and not all(isinstance(a, int) for a in args)):
        args = args[:1] if args else args  # the rest belongs to the subclass
    elif keywords:
        raise TypeError(f"new() got an unexpected keyword argument '{next(iter(keywords))}'")
    _on(device)
    made = construct(args, dtypes.get_default_dtype(), data)
    return made if cls is Tensor else made.detach().as_subclass(cls)


METHODS["__new__"] = staticmethod(_tensor_new)


def new(self, *args, device=None, data=None):
    """A tensor of this one's dtype, by the old constructor. Source: PyTorch, Tensor.new."""
    _on(device)
    return construct(args, self._dtype, data, strict=True)


METHODS["new"] = new


class tensortype(type):
    """The class of `torch.FloatTensor` and its kin: tensors of the dtype are their instances."""

    __module__ = "torch"

    def __new__(mcs, name, dtype, module):
        return type.__new__(mcs, name, (),
                            {"dtype": dtype, "layout": dtypes.strided, "is_cuda": False, "is_sparse": False,
                                            "__module__": module})

    def __init__(cls, name, dtype, module):
        type.__init__(cls, name, (), {})

    def __call__(cls, *args, device=None, data=None):
        _on(device)
        return construct(args, cls.dtype, data, strict=True)

    def __instancecheck__(cls, x):
        return isinstance(x, Tensor) and x._dtype is cls.dtype and x.layout is dtypes.strided

    def __reduce__(cls):
        return f"{cls.__module__}.{cls.__name__}"


TYPES = {}
for _dtype in (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.int64, dtypes.int32,
               dtypes.int16,
               dtypes.int8, dtypes.uint8, dtypes.bool_):
    _name = f"{_dtype.scalar_name}Tensor"
    TYPES[_name] = plain(tensortype(_name, _dtype, "torch"), _name)


def set_default_tensor_type(t):
    """Let floating point tensors be of this type by default. Source: PyTorch, torch.set_default_tensor_type."""
    if isinstance(t, str):
        found = TYPES.get(t.rpartition(".")[2])
        if found is None:
            raise ValueError(f"invalid type: '{t}'")
        t = found
    if not isinstance(getattr(t, "dtype", None), dtypes.dtype) or isinstance(t, Tensor):
        raise TypeError("invalid type object")
    if not t.dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    dtypes.set_default_dtype(t.dtype)


plain(set_default_tensor_type)
