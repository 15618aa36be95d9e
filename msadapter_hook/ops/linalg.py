"""torch.linalg: inverse, solutions of linear systems, determinants, powers and functions of matrices."""

import math

import numpy as np

from msadapter_hook import prims
from msadapter_hook.prims.linalg import cholesky_arrays, getrf
from msadapter_hook.tape import value_of
from msadapter_hook.tensor.geometry import broadcast_shapes, columns_stride

from . import linalg_checks as checks
from ._contract import expanded, product, shaped, tied
from .linalg_checks import LinAlgError
from .promotion import dtype_of
from .registry import composite, operator
from .tables import call

LINALG = {"namespace": "linalg", "forms": "function out"}
COLUMNS = {"layout": "columns"}


def info_of(a):
    return value_of(np.zeros(a.shape[:-2], np.int32))


# ------------------------------------------------------------------------------------------------ inverse
def _singular(k):
    return (f"The diagonal element {k} is zero, the inversion could not be completed because the input matrix is "
            "singular.")


def _inverse(a, name, check=True):
    checks.is_solvable(a, name)
    made = prims.inverse(a)
    info = np.zeros(a.shape[:-2], np.int32)
    if not np.isfinite(made.numpy).all():
        info = getrf(a.numpy)[2]
        if check:
            checks.raise_first(info, name, _singular)
    return made, value_of(info)


@operator("inv(Tensor A) -> Tensor", saves="result", grad_name="LinalgInvExBackward0", aliases=("inverse",), **LINALG, **COLUMNS)
def inv(A):
    """The inverse of square matrices. LinAlgError where one is singular. Source: PyTorch, torch.linalg.inv."""
    return _inverse(A, "linalg.inv")[0]


@operator("inverse(Tensor self) -> Tensor", forms="method", grad_name="LinalgInvExBackward0", **COLUMNS)
def inverse_method(self):
    """The inverse of square matrices. Source: PyTorch, Tensor.inverse."""
    return _inverse(self, "linalg.inv")[0]


@operator("inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)", saves="", **LINALG, **COLUMNS)
def inv_ex(A, check_errors=False):
    """The inverse, and for each matrix the first zero on the diagonal of its factor.

    Source: PyTorch, torch.linalg.inv_ex.
    """
    return _inverse(A, "linalg.inv_ex", check_errors)


# ------------------------------------------------------------------------------------------------ solutions
def vector_case(a, b):
    """Whether b is a vector, or a batch of vectors, for the batch of matrices a."""
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])


def from_left(place):
    """The layout of solutions: column by column where `left`, the argument at `place`, is true, row by row elsewhere."""
    return lambda value, bound: columns_stride(value.shape) if value.ndim > 1 and bound[place] else None


def _solve(a, b, left, name, check):
    checks.is_square(a, name)
    checks.is_computable(a, name)
    checks.same_dtype(a, b, name)
    vector = vector_case(a, b)
    right = shaped(b, b.shape + (1,)) if vector else b
    checks.is_matrix(right, name, "B")
    if vector and not left:
        raise RuntimeError(f"{name}: Vector broadcasting of the left hand side is not supported for left=False. In "
                           "this case linalg.solve "
                           "is equivalent to B / A.squeeze(-1)")
    checks.fits(a, right, left, name)
    lead = broadcast_shapes(a.shape[:-2], right.shape[:-2])
    right = expanded(right, lead + right.shape[-2:])
    if left:
        made = prims.solve(a, right)
    else:
        made = prims.swapped(prims.solve(prims.swapped(a), prims.swapped(right)))
    info = np.zeros(a.shape[:-2], np.int32)
    if not np.isfinite(made.numpy).all():
        info = getrf(a.numpy)[2]
        if check and (info > 0).any():
            at = f"(Batch element {int(np.flatnonzero(info.reshape(-1) > 0)[0])}): " if info.ndim else ""
            raise LinAlgError(f"torch.linalg.solve: {at}The solver failed because the input matrix is singular.")
    if vector:
        made = shaped(made, made.shape[:-1])
    return made, value_of(info)


@operator("solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", saves="A result", grad_name="LinalgSolveExBackward0",
          layout=from_left(2), **LINALG)
def solve(A, B, left=True):
    """X with A X = B, or X A = B. LinAlgError where A is singular. Source: PyTorch, torch.linalg.solve."""
    return _solve(A, B, left, "linalg.solve", True)[0]


@operator("solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
          layout=from_left(2), **LINALG)
def solve_ex(A, B, left=True, check_errors=False):
    """As solve, with LAPACK's info instead of an error. Source: PyTorch, torch.linalg.solve_ex."""
    return _solve(A, B, left, "linalg.solve", check_errors)


def triangular_values(a, b, upper, left=True, unit=False):
    """The solution of a triangular system; batches broadcast."""
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = expanded(a, lead + a.shape[-2:]), expanded(b, lead + b.shape[-2:])
    if left:
        return prims.solve_triangular(a, b, above=upper, unit=unit)
    made = prims.solve_triangular(prims.swapped(a), prims.swapped(b), above=not upper, unit=unit)
    return prims.swapped(made)


@operator("solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
          saves="self result", grad_name="LinalgSolveTriangularBackward0", **LINALG, **COLUMNS)
def solve_triangular(self, B, upper, left=True, unitriangular=False):
    """X with self X = B for a triangular matrix. Source: PyTorch, torch.linalg.solve_triangular."""
    name = "linalg.solve_triangular"
    checks.is_square(self, name)
    checks.is_matrix(B, name, "B")
    checks.same_dtype(self, B, name)
    checks.is_computable(self, name)
    checks.fits(self, B, left, name)
    return triangular_values(self, B, upper, left, unitriangular)


# ------------------------------------------------------------------------------------------------ Cholesky
def _not_positive(k):
    return ("The factorization could not be completed because the input is not positive-definite (the leading minor "
            f"of order {k} is "
            "not positive-definite).")


def cholesky_values(a, upper, name, check=True):
    """The factor of positive matrices, and LAPACK's info."""
    checks.is_solvable(a, name)
    info = cholesky_arrays(a.numpy)[1]
    if check:
        checks.raise_first(info, name, _not_positive)
    source = prims.adjoint(a) if upper else a
    made = prims.cholesky(source)
    return (prims.adjoint(made) if upper else made), value_of(info)


@operator("cholesky(Tensor A, *, bool upper=False) -> Tensor", saves="result", grad_name="LinalgCholeskyExBackward0", **LINALG, **COLUMNS)
def cholesky(A, upper=False):
    """The triangular factor of positive-definite matrices; LinAlgError otherwise.

    Source: PyTorch, torch.linalg.cholesky.
    """
    return cholesky_values(A, upper, "linalg.cholesky")[0]


@operator("cholesky_ex(Tensor A, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)", **LINALG, **COLUMNS)
def cholesky_ex(A, upper=False, check_errors=False):
    """As cholesky, with LAPACK's info instead of an error. Source: PyTorch, torch.linalg.cholesky_ex."""
    return cholesky_values(A, upper, "linalg.cholesky_ex", check_errors)


# ------------------------------------------------------------------------------------------------ determinants
@operator("det(Tensor A) -> Tensor", saves="A result", grad_name="LinalgDetBackward0", aliases=("det",), **LINALG)
def det(A):
    """Determinants of square matrices. Source: PyTorch, torch.linalg.det."""
    checks.is_solvable(A, "linalg.det")
    return prims.determinant(A)


@operator("det(Tensor self) -> Tensor", forms="method", grad_name="LinalgDetBackward0")
def det_method(self):
    """Determinants of square matrices. Source: PyTorch, Tensor.det."""
    checks.is_solvable(self, "linalg.det")
    return prims.determinant(self)


@operator("slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", saves="A", grad_name="LinalgSlogdetBackward0", **LINALG)
def slogdet(A):
    """Sign and logarithm of the absolute value of determinants. Source: PyTorch, torch.linalg.slogdet."""
    checks.is_solvable(A, "linalg.slogdet")
    return prims.log_determinant(A)


@operator("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", forms="function method", saves="self",
          grad_name="LinalgSlogdetBackward0")
def torch_slogdet(self):
    """Sign and logarithm of the absolute value of determinants. Source: PyTorch, torch.slogdet."""
    checks.is_solvable(self, "linalg.slogdet")
    return prims.log_determinant(self)


@operator("logdet(Tensor self) -> Tensor", forms="function method", saves="self")
def logdet(self):
    """Logarithm of determinants; NaN where one is negative. Source: PyTorch, torch.logdet."""
    checks.is_solvable(self, "linalg.slogdet")
    sign, size = prims.log_determinant(self)
    if self.dtype.kind == "c":
        return prims.log(sign) + prims.cast(size, dtype=sign.dtype)
    negative = sign.numpy == -1
    return size + value_of(np.where(negative, np.nan, 0).astype(size.dtype))


# ------------------------------------------------------------------------------------------------ functions
@operator("matrix_exp(Tensor self) -> Tensor", namespace="linalg", forms="function", saves="self",
          grad_name="LinalgMatrixExpBackward0", aliases=("matrix_exp",))
def matrix_exp(self):
    """The exponential of square matrices. Source: PyTorch, torch.linalg.matrix_exp."""
    checks.is_square(self, "linalg.matrix_exp")
    checks.is_computable(self, "linalg.matrix_exp", low=True)
    return prims.matrix_exponential(self)


@operator("matrix_exp(Tensor self) -> Tensor", forms="method", grad_name="LinalgMatrixExpBackward0")
def matrix_exp_method(self):
    """The exponential of square matrices. Source: PyTorch, Tensor.matrix_exp."""
    return matrix_exp(self)


def _matrix_power(self, n):
    checks.is_square(self, "linalg.matrix_power")
    if n == 0:
        unit = prims.identity(self.shape[-1], self.dtype)
        return tied(value_of(np.broadcast_to(unit.numpy, self.shape).copy()), self)
    if n < 0:
        self, n = _inverse(self, "linalg.inv")[0], -n
    result, square = None, self
    while n:
        if n & 1:
            result = square if result is None else prims.matmul(result, square)
        n >>= 1
        if n:
            square = prims.matmul(square, square)
    return prims.copy(result) if result is self else result


@operator("matrix_power(Tensor self, int n) -> Tensor", grad_name="MmBackward0", **LINALG)
def matrix_power(self, n):
    """Integer powers of square matrices. Source: PyTorch, torch.linalg.matrix_power."""
    return _matrix_power(self, n)


@operator("matrix_power(Tensor self, int n) -> Tensor", forms="function method out", grad_name="MmBackward0")
def torch_matrix_power(self, n):
    """Integer powers of square matrices. Source: PyTorch, torch.matrix_power."""
    return _matrix_power(self, n)


def tolerances(a, atol, rtol):
    """Absolute and relative tolerance of the rank, as arrays over the batch."""
    kind = checks.real_of(a).numpy

    def array(x):
        x = x.numpy if hasattr(x, "numpy") else np.asarray(x)
        return np.broadcast_to(x, a.shape[:-2]).astype(kind)

    given = atol is not None
    atol = 0.0 if atol is None else atol
    if rtol is None:
        default = checks.epsilon(a) * max(a.shape[-2:])
        rtol = np.where(np.broadcast_to(array(atol), a.shape[:-2]) > 0, 0.0, default) if given else default
    return array(atol), array(rtol)


def _pinv(a, atol, rtol, hermitian):
    atol, rtol = tolerances(a, atol, rtol)
    if hermitian:
        checks.is_square(a, "linalg.pinv")
    return prims.pseudo_inverse(a, value_of(atol), value_of(rtol), hermitian=hermitian)


def _check_pinv(a):
    kind = dtype_of(a)
    if a.ndim < 2 or not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError(f"linalg.pinv({kind.scalar_name}{{{list(a.shape)}}}): expected a tensor with 2 or more "
                           "dimensions of float, "
                           "double, cfloat or cdouble types")


@operator("pinv(Tensor self, *, Operand? atol=None, Operand? rtol=None, bool hermitian=False) -> Tensor", saves="self result",
          grad_name="LinalgPinvBackward0", **LINALG)
@operator("pinv.rcond(Tensor self, Operand rcond, bool hermitian=False) -> Tensor", saves="self result",
          grad_name="LinalgPinvBackward0", **LINALG)
def pinv(self, *tolerance, atol=None, rtol=None, hermitian=False):
    """The pseudo-inverse; singular values within the tolerance count as 0. Source: PyTorch, torch.linalg.pinv."""
    _check_pinv(self)
    if len(tolerance) == 3:
        atol, rtol, hermitian = tolerance
    elif tolerance:
        rtol, hermitian = tolerance[0], tolerance[1] if len(tolerance) > 1 else hermitian
        atol = 0.0
    return _pinv(self, atol, rtol, hermitian)


@operator("pinverse(Tensor self, float rcond=1e-15) -> Tensor", forms="function method", saves="self result",
          grad_name="LinalgPinvBackward0")
def pinverse(self, rcond=1e-15):
    """The pseudo-inverse with a relative tolerance. Source: PyTorch, torch.pinverse."""
    _check_pinv(self)
    return _pinv(self, 0.0, rcond, False)


# ------------------------------------------------------------------------------------------------ tensors as matrices
@operator("tensorinv(Tensor self, int ind=2) -> Tensor", grad_name="ViewBackward0", **LINALG)
def tensorinv(self, ind=2):
    """The inverse for tensordot over the first `ind` dimensions. Source: PyTorch, torch.linalg.tensorinv."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    rows, columns = math.prod(self.shape[:ind]), math.prod(self.shape[ind:])
    if rows != columns:
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[ind:]) == "
                           "prod(self.shape[:ind]), but got "
                           f"{columns} != {rows}")
    made = _inverse(shaped(self, (rows, columns)), "linalg.inv")[0]
    return shaped(made, self.shape[ind:] + self.shape[:ind])


@operator("tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", grad_name="ViewBackward0", **LINALG)
def tensorsolve(self, other, dims=None):
    """X with tensordot(self, X, X.ndim) = other. Source: PyTorch, torch.linalg.tensorsolve."""
    a = self
    if dims is not None:
        moved = [d % a.ndim for d in dims]
        a = prims.transpose(a, axes=tuple([i for i in range(a.ndim) if i not in moved] + moved))
    size = math.prod(other.shape)
    rest = a.shape[other.ndim:]
    if math.prod(rest) != size or math.prod(a.shape[:other.ndim]) != math.prod(rest):
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
                           "prod(self.shape[:other.ndim]), but "
                           f"got {math.prod(rest)} != {math.prod(a.shape[:other.ndim])}")
    made = _solve(shaped(a, (size, size)), shaped(other, (size, 1)), True, "linalg.solve", True)[0]
    return shaped(made, rest)


@operator("vander(Tensor x, *, int? N=None) -> Tensor", namespace="linalg", forms="function")
def vander(x, N=None):
    """Powers 0 … N-1 of each element along a new last dimension. Source: PyTorch, torch.linalg.vander."""
    n = N if N is not None else x.shape[-1] if x.ndim else 0
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    x = prims.cast(x, dtype=np.dtype(np.int64)) if x.dtype.kind == "b" else x
    one = value_of(np.ones(x.shape, np.int64 if x.dtype.kind in "iu" else x.dtype))
    x = prims.cast(x, dtype=one.dtype) if x.dtype != one.dtype else x
    columns = [one]
    for _ in range(n - 1):
        columns.append(columns[-1] * x)
    return prims.stack(*columns, axis=x.ndim)


@composite("diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", namespace="linalg", forms="function")
def diagonal(A, offset=0, dim1=-2, dim2=-1):
    """The diagonal of matrices, as a view. Source: PyTorch, torch.linalg.diagonal."""
    return call("diagonal", A, offset, dim1, dim2)


# ------------------------------------------------------------------------------------------------ reflectors
def householder_values(v, tau):
    """The first columns of the product of the reflectors I - tau v v*, whose vectors are the columns of `v`."""
    m, n = v.shape[-2:]
    k = tau.shape[-1]
    left = prims.lower(v, -1)
    unit = value_of(np.broadcast_to(np.eye(m, n, dtype=v.dtype), v.shape).copy())
    left = left + unit
    made = unit
    for i in range(k - 1, -1, -1):
        start = (0,) * (v.ndim - 1) + (i,)
        column = prims.strided_slice(left, start=start, stop=v.shape[:-1] + (i + 1,), step=(1,) * v.ndim)
        factor = prims.strided_slice(tau, start=(0,) * (tau.ndim - 1) + (i,), stop=tau.shape[:-1] + (i + 1,), step=(1,) * tau.ndim)
        inner = product(prims.adjoint(column), made)
        made = made - product(column * shaped(factor, factor.shape + (1,)), inner)
    return made


@operator("householder_product(Tensor input, Tensor tau) -> Tensor", saves="input tau", aliases=("orgqr",),
          grad_name="LinalgHouseholderProductBackward0", **LINALG, **COLUMNS)
def householder_product(input, tau):
    """The matrix with orthonormal columns that reflectors, as geqrf gives them, make up.

    Source: PyTorch, torch.linalg.householder_product.
    """
    name = "torch.linalg.householder_product"
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if input.shape[-2] < input.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if input.shape[-1] < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if input.ndim - tau.ndim != 1:
        raise RuntimeError(f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to "
                           f"{tau.ndim} and "
                           f"input.ndim is equal to {input.ndim}")
    if input.shape[:-2] != tau.shape[:-1]:
        raise RuntimeError(f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
                           f"{list(tau.shape[:-1])}")
    if input.dtype != tau.dtype:
        raise RuntimeError(f"{name}: tau dtype {dtype_of(tau).scalar_name} does not match input dtype "
                           f"{dtype_of(input).scalar_name}")
    return householder_values(input, tau)


@operator("orgqr(Tensor self, Tensor input2) -> Tensor", forms="method", grad_name="LinalgHouseholderProductBackward0", **COLUMNS)
def orgqr_method(self, input2):
    """As linalg.householder_product. Source: PyTorch, Tensor.orgqr."""
    return householder_product(self, input2)
