"""torch.linalg: norms of matrices, condition numbers and ranks."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import value_of
from msadapter_hook.tensor.geometry import wrap_dim

from . import linalg_checks as checks
from ._contract import permuted, shaped
from .decomposition import finite_svd
from .distance import norm_dtype, vector_norm_values
from .linalg import tolerances
from .reduction import axes_of
from .registry import operator

LINALG = {"namespace": "linalg", "forms": "function out"}
_SPECTRAL = (2, -2, "nuc")


def _pair(dim, n):
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    first, second = wrap_dim(dim[0], n), wrap_dim(dim[1], n)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    return first, second


def _restored(v, shape, axes, keepdim):
    """A reduction over `axes`, with them as length 1 where they are kept."""
    return shaped(v, [1 if i in axes else n for i, n in enumerate(shape)]) if keepdim else v


def matrix_norm_values(a, ord, dim, keepdim):
    """The matrix norm `ord` over two dimensions."""
    axes = _pair(dim, a.ndim)
    if ord == "fro":
        return vector_norm_values(a, order=2.0, axes=tuple(sorted(axes)), keepdims=keepdim)
    if isinstance(ord, str) and ord != "nuc" or not isinstance(ord, str) and abs(ord) not in (1, 2, float("inf")):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord:g} not supported." if not isinstance(ord, str) else
                           f"linalg.matrix_norm: Order {ord} not supported.")
    if ord in _SPECTRAL:
        order = [i for i in range(a.ndim) if i not in axes] + list(axes)
        s = finite_svd(permuted(a, order), False, "linalg.svd")[1]
        last = (s.ndim - 1,)
        if ord == "nuc":
            made = prims.sum(s, axes=last, keepdims=False)
        else:
            _not_empty(s.shape[-1], ord)
            made = (prims.amax if ord > 0 else prims.amin)(s, axes=last, keepdims=False)
        return _restored(made, a.shape, axes, keepdim)
    summed, chosen = axes if abs(ord) == 1 else axes[::-1]
    sums = vector_norm_values(a, order=1.0, axes=(summed,), keepdims=True)
    _not_empty(sums.shape[chosen], ord)
    made = (prims.amax if ord > 0 else prims.amin)(sums, axes=(chosen,), keepdims=True)
    return made if keepdim else shaped(made, [n for i, n in enumerate(a.shape) if i not in axes])


def _not_empty(n, ord):
    if n == 0:
        raise RuntimeError(f"linalg.matrix_norm: The {ord} norm of an empty matrix is not defined")


def _matrix_norm(A, ord, dim, keepdim, dtype):
    checks.is_matrix(A, "linalg.matrix_norm")
    return matrix_norm_values(norm_dtype(A, dtype, "linalg.matrix_norm"), ord, dim, keepdim)


@operator("matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> "
          "Tensor", **LINALG)
@operator("matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? "
          "dtype=None) -> "
          "Tensor", **LINALG)
def matrix_norm(self, ord="fro", dim=(-2, -1), keepdim=False, dtype=None):
    """Norms of matrices: fro, nuc, ±1, ±2, ±inf. Source: PyTorch, torch.linalg.matrix_norm."""
    return _matrix_norm(self, ord, dim, keepdim, dtype)


def _norm(self, ord, dim, keepdim, dtype):
    if dim is not None and len(dim) not in (1, 2) and ord is not None:
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if dim is None and ord is not None and self.ndim not in (1, 2):
        raise RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
                           f"{self.ndim}D.")
    if ord is not None and (dim is not None and len(dim) == 2 or dim is None and self.ndim == 2):
        return _matrix_norm(self, ord, (0, 1) if dim is None else dim, keepdim, dtype)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: Order {ord} not supported for vectors." if ord not in ("fro", "nuc") else
                           "linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    from .distance import vector_norm

    return vector_norm(self, 2 if ord is None else ord, dim, keepdim, dtype)


@operator("norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
          "Tensor", **LINALG)
@operator("norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
          "Tensor", **LINALG)
def norm(self, ord=None, dim=None, keepdim=False, dtype=None):
    """A vector or matrix norm, as the dimensions decide. Source: PyTorch, torch.linalg.norm."""
    return _norm(self, ord, dim, keepdim, dtype)


@operator("nuclear_norm(Tensor self, int[2]? dim=None, bool keepdim=False) -> Tensor", forms="function out")
def nuclear_norm(self, dim=None, keepdim=False):
    """The sum of singular values. Source: PyTorch, torch.nuclear_norm."""
    return matrix_norm_values(self, "nuc", (-2, -1) if dim is None or dim == () else dim, keepdim)


@operator("frobenius_norm(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor", forms="function out")
def frobenius_norm(self, dim=None, keepdim=False):
    """The root of the sum of squares. Source: PyTorch, torch.frobenius_norm."""
    return vector_norm_values(self, order=2.0, axes=axes_of(self, dim), keepdims=keepdim)


def _check_order(p):
    if p is not None and p not in (2, -2, 1, -1, float("inf"), -float("inf"), "fro", "nuc"):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p:g}" if not isinstance(p, str) else
                           f"linalg.cond got an invalid norm type: {p}")


@operator("cond(Tensor self, Scalar? p=None) -> Tensor", **LINALG)
@operator("cond.p_str(Tensor self, str p) -> Tensor", **LINALG)
def cond(self, p=None):
    """Condition numbers in a norm; infinite for singular matrices. Source: PyTorch, torch.linalg.cond."""
    checks.is_matrix(self, "linalg.cond")
    _check_order(p)
    if p is None or p in (2, -2):
        s = finite_svd(self, False, "linalg.svd")[1]
        n = s.shape[-1]
        if n == 0:
            return value_of(np.zeros(s.shape[:-1], s.dtype))
        high = prims.amax(s, axes=(s.ndim - 1,), keepdims=False)
        low = prims.amin(s, axes=(s.ndim - 1,), keepdims=False)
        return low / high if p == -2 else high / low
    if self.shape[-1] != self.shape[-2]:
        raise RuntimeError(f"linalg.cond(ord={p if isinstance(p, str) else format(p, 'g')}): A must be batches of "
                           "square matrices, but they "
                           f"are {self.shape[-2]} by {self.shape[-1]} matrices")
    if self.size == 0:
        return value_of(np.zeros(self.shape[:-2], checks.real_of(self).numpy))
    inverse = prims.inverse(self)
    bad = ~np.isfinite(inverse.numpy).all((-2, -1))
    singular = bool(bad.any()) and bool(np.isfinite(self.numpy).all())
    if singular:  # infinite, whatever the norm of the matrix itself; what has no inverse must not spoil the gradient
        eye = value_of(np.broadcast_to(np.eye(self.shape[-1], dtype=self.dtype), self.shape).copy())
        inverse = prims.where(value_of(np.broadcast_to(bad[..., None, None], self.shape).copy()), eye, inverse)
    size = matrix_norm_values(self, p, (-2, -1), False)
    made = size * matrix_norm_values(inverse, p, (-2, -1), False)
    if singular and p == "nuc":  # a product in PyTorch: not a number where the matrix is zero
        bad = bad & (size.numpy != 0)
        made = prims.where(value_of(size.numpy == 0), value_of(np.full(made.shape, np.nan, made.dtype)), made)
    return prims.where(value_of(bad), value_of(np.full(made.shape, np.inf, made.dtype)), made) if singular else made


def _rank(a, atol, rtol, hermitian):
    if a.ndim < 2:
        raise RuntimeError("torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.")
    checks.is_computable(a, "linalg.matrix_rank")
    atol, rtol = tolerances(a, atol, rtol)
    if a.size == 0:
        return value_of(np.zeros(a.shape[:-2], np.int64))
    x = a.numpy
    s = np.abs(np.linalg.eigvalsh(x)) if hermitian else np.linalg.svd(x, compute_uv=False)
    level = np.maximum(atol, rtol * s.max(-1))
    return value_of(np.asarray((s > level[..., None]).sum(-1), np.int64))


@operator("matrix_rank(Tensor input, *, Operand? atol=None, Operand? rtol=None, bool hermitian=False) -> Tensor", **LINALG)
@operator("matrix_rank.tol(Tensor input, Operand tol, bool hermitian=False) -> Tensor", **LINALG)
def matrix_rank(input, *tolerance, atol=None, rtol=None, hermitian=False):
    """How many singular values exceed the tolerance. Source: PyTorch, torch.linalg.matrix_rank."""
    if len(tolerance) == 3:
        atol, rtol, hermitian = tolerance
    elif tolerance:
        atol, rtol, hermitian = tolerance[0], 0.0, tolerance[1] if len(tolerance) > 1 else hermitian
    return _rank(input, atol, rtol, hermitian)


