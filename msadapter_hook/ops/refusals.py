"""Errors that several families share, in PyTorch's words."""

import sys

from msadapter_hook.tape import Value
from msadapter_hook.tape.recording import state

from .promotion import dtype_of


def not_implemented(kernel, value):
    """The error for a dtype that a kernel does not take."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{dtype_of(value).scalar_name}'")


def c_name(v):
    """The dtype of a Value (or another thing with a `dtype` of NumPy) as PyTorch's C++ code spells it in errors."""
    known = {"float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "long int",
             "int32": "int", "int16": "short", "int8": "signed char", "uint8": "unsigned char", "bool": "bool",
             "complex64": "c10::complex<float>", "complex128": "c10::complex<double>"}
    return known.get(v.dtype.name, v.dtype.name)


_OLD_TYPES = frozenset("Float Double Half Long Int Short Char Byte".split())


def type_text(dtype):
    """The type of a tensor as PyTorch's C++ code spells it in errors: the old names where there were any."""
    name = dtype.scalar_name
    return f"torch.{name}Tensor" if name in _OLD_TYPES else f"CPU{name}Type"


ITEM = ("vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please try to "
        "rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch internals, please file a bug "
        "report.")
CONTROL_FLOW = ("vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet, "
                "please file an issue at https://github.com/pytorch/pytorch/issues .")
MASK = ("vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with a boolean "
        "mask.")
NO_DATA = "Cannot access data pointer of Tensor that doesn't have storage"


def outside(frame):
    """Whether a frame belongs to the user's program."""
    return not frame.f_globals.get("__name__", "").startswith(("msadapter_hook.", "torch."))


def refuse_mapped(tensor, message, calls=1):
    """Raise where the user's program, `calls` calls above the caller, looks at the data of what depends on a sample of vmap."""
    if state.mapped is not None and state.mapped.depends(tensor):
        frame = sys._getframe(calls + 1)
        while frame.f_globals.get("__name__") == "msadapter_hook.ops.guards":
            frame = frame.f_back
        if outside(frame):
            raise RuntimeError(message)


def require_kinds(value, kinds, kernel):
    """Raise unless the dtype of `value` is of the kinds named: letters of f (floating), c, i (signed and unsigned), b."""
    kind = value.dtype.kind
    kind = "f" if kind == "V" else "i" if kind == "u" else kind
    if kind not in kinds:
        raise not_implemented(kernel, value)


def require_floating(value, kernel):
    """Raise unless `value` is floating point."""
    require_kinds(value, "f", kernel)


def same_dtype(a, b, message):
    """Raise RuntimeError with `message` where two Values differ in dtype."""
    if isinstance(a, Value) and isinstance(b, Value) and a.dtype != b.dtype:
        raise RuntimeError(message)
