# Helpers of distributions: broadcasting of parameters, probabilities and logits, lazily computed properties.
from functools import update_wrapper
from numbers import Number

from .. import (
    arange,
    broadcast_tensors,
    enable_grad,
    finfo,
    get_default_dtype,
    is_tensor,
    log,
    log1p,
    normal,
    ones,
    sigmoid,
    tensor,
    zeros,
)
from ..nn.functional import softmax

euler_constant = 0.57721566490153286060

__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]


def broadcast_all(*values):
    """Tensors of one shape; numbers take dtype and device of the first floating tensor.

    ValueError for anything that is neither a number nor a tensor."""
    if not all(is_tensor(v) or isinstance(v, Number) for v in values):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing "
                         "__torch_function__.")  # fmt: skip
    if not all(is_tensor(v) for v in values):
        options = {"dtype": get_default_dtype()}
        for value in values:
            if is_tensor(value):
                options = {"dtype": value.dtype, "device": value.device}
                break
        values = [v if is_tensor(v) else tensor(v, **options) for v in values]
    return broadcast_tensors(*values)


def _standard_normal(shape, dtype, device):
    return normal(zeros(shape, dtype=dtype, device=device), ones(shape, dtype=dtype, device=device))


def _sum_rightmost(value, dim):
    """Sums out the `dim` rightmost dimensions."""
    if dim == 0:
        return value
    return value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def logits_to_probs(logits, is_binary=False):
    """Probabilities of logits: sigmoid when binary, else softmax over the last dimension."""
    return sigmoid(logits) if is_binary else softmax(logits, dim=-1)


def clamp_probs(probs):
    """Probabilities kept away from 0 and 1 by the dtype's epsilon."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary=False):
    """Logits of probabilities; the inverse of logits_to_probs up to clamping."""
    clamped = clamp_probs(probs)
    return log(clamped) - log1p(-clamped) if is_binary else log(clamped)


class lazy_property:
    """A property computed once and then kept in the instance; on the class it is a plain property."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        update_wrapper(self, wrapped)

    def __get__(self, instance, obj_type=None):
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """What a lazy property is when looked up on the class."""

    def __init__(self, wrapped):
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat, diag=0):
    """The lower triangles of (..., n, n) matrices as vectors, row by row."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows = arange(n, device=mat.device)
    mask = rows < rows.view(-1, 1) + (diag + 1)
    return mat[..., mask]


def vec_to_tril_matrix(vec, diag=0):
    """The inverse of tril_matrix_to_vec."""
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    eps = finfo(vec.dtype).eps
    if round(n) - n > eps:
        raise ValueError(f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower "
                         "triangular part of a square D x D matrix.")  # fmt: skip
    n = round(n)
    mat = zeros(vec.shape[:-1] + (n, n), dtype=vec.dtype, device=vec.device)
    rows = arange(n, device=vec.device)
    mask = rows < rows.view(-1, 1) + (diag + 1)
    mat[..., mask] = vec
    return mat
