"""What the operators of linear algebra check in common, and the error they raise where a matrix has no answer."""

import numpy as np

from msadapter_hook.tensor import dtypes

from .promotion import dtype_of


class LinAlgError(RuntimeError):
    """A matrix is singular, not positive-definite, or an algorithm did not converge.

    Source: PyTorch, torch.linalg.LinAlgError.
    """


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"
LinAlgError.__module__ = "torch._C"

INT = np.dtype(np.int32)


def is_matrix(v, name, label="A"):
    """RuntimeError unless `v` has at least two dimensions."""
    if v.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {label} must have at least 2 dimensions.")


def is_square(v, name, label="A"):
    """RuntimeError unless `v` holds square matrices."""
    is_matrix(v, name, label)
    if v.shape[-1] != v.shape[-2]:
        raise RuntimeError(f"{name}: {label} must be batches of square matrices, but they are {v.shape[-2]} by "
                           f"{v.shape[-1]} "
                           "matrices")


def is_computable(v, name, low=False):
    """RuntimeError unless `v` is floating point or complex, and (unless `low`) at least single precision."""
    kind = dtype_of(v)
    if not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {kind.scalar_name}")
    if not low and kind.to_real().itemsize < 4:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {kind.scalar_name}")


def is_factorable(v, name):
    """The checks of most factorizations: matrices of single or double precision."""
    is_computable(v, name)
    is_matrix(v, name)


def is_solvable(v, name):
    """As `is_factorable`, for square matrices."""
    is_square(v, name)
    is_computable(v, name)


def fits(a, b, left, name):
    """RuntimeError unless the equation a x = b (or x a = b) has fitting shapes."""
    rows = b.shape[-2] if left else b.shape[-1]
    if a.shape[-1] != rows:
        kind = "AX = B" if left else "XA = B"
        raise RuntimeError(f"{name}: Incompatible shapes of A and B for the equation {kind} "
                           f"({a.shape[-2]}x{a.shape[-1]} and "
                           f"{b.shape[-2]}x{b.shape[-1]})")


def same_dtype(a, b, name):
    if a.dtype != b.dtype:
        raise RuntimeError(f"{name}: Expected A and B to have the same dtype, but found A of type "
                           f"{dtype_of(a).scalar_name} and B of type "
                           f"{dtype_of(b).scalar_name} instead")


def raise_first(info, name, singular):
    """LinAlgError for the first matrix whose info is positive; `singular(k)` gives the text."""
    flat = info.reshape(-1)
    bad = np.flatnonzero(flat > 0)
    if bad.size:
        at = f"(Batch element {int(bad[0])}): " if info.ndim else ""
        raise LinAlgError(f"{name}: {at}{singular(int(flat[bad[0]]))}")


def real_of(v):
    """Our dtype of the absolute values of `v`."""
    kind = dtype_of(v)
    return kind.to_real() if kind.is_complex else kind


def epsilon(v):
    return float(np.finfo(real_of(v).numpy).eps)


def default_dtype():
    return dtypes.get_default_dtype()
