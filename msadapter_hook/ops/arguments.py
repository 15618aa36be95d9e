"""Arguments of operators: what each kind of parameter takes, and PyTorch's errors where something else is given."""

import numbers

import numpy as np

from msadapter_hook.tensor import Tensor, dtypes
from msadapter_hook.tensor.device import device as Device
from msadapter_hook.tensor.generator import Generator


class Mismatch(Exception):
    """An argument is not of the kind its parameter takes; the next overload is tried."""

    def __init__(self, parameter, value, position=None):
        super().__init__(parameter, value)
        self.parameter, self.value, self.position = parameter, value, position


def type_name(value) -> str:
    """The type as PyTorch names it in errors."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "numel"):
        kind = type(value).__name__
        if value:
            inner = {type_name(v) for v in value}
            if len(inner) > 1:
                return f"{kind} of ({', '.join(type_name(v) for v in value)})"
            if len(value) > 4:
                return f"{kind} of {len(value)} items"
            return f"{kind} of [{', '.join(type_name(v) for v in value)}]"
        return kind
    return type(value).__name__


def is_number(x) -> bool:
    return isinstance(x, (int, float, complex, np.number, np.bool_)) or isinstance(x, numbers.Number)


def scalar(x):
    """A Python number from a number or a zero-dim tensor without history; raises TypeError otherwise."""
    t = type(x)
    if t is int or t is float or t is bool or t is complex:
        return x
    if isinstance(x, (np.number, np.bool_)):
        return x.item()
    if isinstance(x, Tensor) and x.dim() == 0 and not x.requires_grad:
        return x.item()
    if isinstance(x, (int, float, complex)):
        return x
    if is_number(x) or hasattr(x, "__float__") and not isinstance(x, (Tensor, str, np.ndarray)):
        return float(x)
    raise TypeError


def integer(x):
    t = type(x)
    if t is int:
        return x
    if t is bool:
        raise TypeError
    if isinstance(x, Tensor):
        if x.numel() != 1 or x.dtype.is_floating_point or x.dtype.is_complex:
            raise TypeError
        return int(x.item())
    if isinstance(x, (float, complex, np.floating)):
        raise TypeError
    return x.__index__()


def strict_integer(x):
    if type(x) is bool:
        raise TypeError
    return integer(x)


def integers(x, repeat=0):
    """A tuple of ints; a single int fills `repeat` places."""
    if isinstance(x, (tuple, list)):
        for i in x:
            if type(i) is not int:
                return tuple([strict_integer(i) for i in x])
        return tuple(x)
    if isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind in "iu":
        return tuple(x.tolist())
    if repeat:
        return (strict_integer(x),) * repeat
    if isinstance(x, Tensor) and x.dim() == 1 and not x.dtype.is_floating_point:
        return tuple(x.tolist())
    raise TypeError


def floats(x, repeat=0):
    if isinstance(x, (tuple, list)):
        return tuple([float(scalar(i)) for i in x])
    if repeat:
        return (float(scalar(x)),) * repeat
    raise TypeError


def tensor(x):
    if not isinstance(x, Tensor):
        raise TypeError
    return x


def tensors(x):
    if not isinstance(x, (tuple, list)):
        raise TypeError
    for t in x:
        if not isinstance(t, Tensor):
            raise TypeError
    return x


def optional_tensors(x):
    if not isinstance(x, (tuple, list)):
        raise TypeError
    for t in x:
        if t is not None and not isinstance(t, Tensor):
            raise TypeError
    return x


def tensor_or_scalar(x):
    return x if isinstance(x, Tensor) else scalar(x)


def boolean(x):
    """True or False and nothing that only acts like them: PyTorch takes no 0 or 1 here."""
    if type(x) is bool:
        return x
    raise TypeError


def real(x):
    if type(x) is float:
        return x
    value = scalar(x)
    if isinstance(value, complex):
        raise TypeError
    return value


def text(x):
    if not isinstance(x, str):
        raise TypeError
    return x


_PYTHON_DTYPES = {float: dtypes.float64, int: dtypes.int64, bool: dtypes.bool_, complex: dtypes.complex128}


def scalar_type(x):
    if isinstance(x, dtypes.dtype):
        return x
    if x in _PYTHON_DTYPES:
        return _PYTHON_DTYPES[x]
    raise TypeError


def device(x):
    if isinstance(x, Device):
        return x
    if isinstance(x, (str, int)):
        return Device(x)
    raise TypeError


def layout(x):
    if not isinstance(x, dtypes.layout):
        raise TypeError
    return x


def memory_format(x):
    if not isinstance(x, dtypes.memory_format):
        raise TypeError
    return x


def generator(x):
    if not isinstance(x, Generator):
        raise TypeError
    return x


def anything(x):
    return x


_KINDS = {
    "Tensor": tensor, "Tensor[]": tensors, "Scalar": scalar, "int": integer, "bool": boolean, "float": real,
    "str": text,
    "ScalarType": scalar_type, "Device": device, "Layout": layout, "MemoryFormat": memory_format,
    "Generator": generator,
    "any": anything, "Operand": tensor_or_scalar, "OptionalTensor[]": optional_tensors,
}

# How PyTorch calls each kind in its errors
NAMES = {"Operand": "Tensor", "Scalar": "Number", "int": "int", "ScalarType": "torch.dtype",
         "Tensor[]": "tuple of Tensors", "Generator": "torch.Generator",
         "MemoryFormat": "torch.memory_format", "Device": "torch.device", "Layout": "torch.layout"}


def converter(kind: str):
    """The function that checks and converts an argument of `kind`; it raises TypeError or AttributeError."""
    if kind in _KINDS:
        return _KINDS[kind]
    base, _, count = kind.partition("[")
    count = int(count.rstrip("]") or 0)
    if base == "int":
        return lambda x: integers(x, count)
    if base == "float":
        return lambda x: floats(x, count)
    if base == "bool":
        return lambda x: tuple([boolean(i) for i in x])
    raise ValueError(f"no such kind of parameter: {kind}")


def kind_name(kind: str) -> str:
    """The kind in PyTorch's words."""
    if kind in NAMES:
        return NAMES[kind]
    return f"tuple of {kind.partition('[')[0]}s" if "[" in kind else kind
