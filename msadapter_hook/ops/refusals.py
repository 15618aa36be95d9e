"""Errors that several families share, in PyTorch's words."""

from msadapter_hook.tape import Value

from .promotion import dtype_of


def not_implemented(kernel, value):
    """The error for a dtype that a kernel does not take."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{dtype_of(value).scalar_name}'")


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
