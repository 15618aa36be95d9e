"""torch.linalg: factorizations (QR, SVD, eigenvalues, LU, LDL), least squares, and the older names at the root."""

import warnings

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from msadapter_hook import prims
from msadapter_hook.prims.linalg import each, permutation, permutation_matrix, unpacked
from msadapter_hook.tape import value_of
from msadapter_hook.tensor.geometry import broadcast_shapes

from . import linalg_checks as checks
from ._contract import expanded, shaped, tied
from .linalg import COLUMNS, cholesky_values, from_left, householder_values, tolerances, triangular_values
from .linalg_checks import LinAlgError
from .promotion import dtype_of
from .registry import composite, operator, plain
from .tables import call
from .writing import write_out

LINALG = {"namespace": "linalg", "forms": "function out"}
BOTH = "function method out"


# ------------------------------------------------------------------------------------------------ QR
def _qr_values(A, mode):
    if mode not in ("reduced", "r", "complete"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or "
                           "'complete'")
    checks.is_factorable(A, "linalg.qr")
    if mode == "r":
        if A.requires_grad:
            q, r = _r_only(A)
        else:
            q, r = prims.qr(A, mode="reduced")
        return value_of(np.zeros(0, A.dtype)), r
    return prims.qr(A, mode=mode)


def _refused(grads, outs, needs, a, *, mode):
    raise RuntimeError("The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
                       "linalg.qr(A, "
                       "mode='reduced') if you are going to require gradients.")


_r_primitive = prims.host_call("qr_r", lambda a, *, mode: list(np.linalg.qr(a)), joint_vjp=_refused, outputs=2)


def _r_only(a):
    return _r_primitive(a, mode="r")


@operator("qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", saves="A", grad_name="LinalgQrBackward0", **LINALG, **COLUMNS)
def qr(A, mode="reduced"):
    """A = Q R with orthonormal columns in Q and an upper triangle R. Source: PyTorch, torch.linalg.qr."""
    return _qr_values(A, mode)


@operator("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", forms=BOTH, grad_name="LinalgQrBackward0", **COLUMNS)
def torch_qr(self, some=True):
    """As linalg.qr, reduced or complete. Source: PyTorch, torch.qr."""
    return _qr_values(self, "reduced" if some else "complete")


def _geqrf_host(a):
    m, n = a.shape[-2:]
    k = min(m, n)
    out, tau = a.copy(), np.zeros(a.shape[:-2] + (k,), a.dtype)
    if a.size:
        run, = lapack.get_lapack_funcs(("geqrf",), (a,))
        for at in each(a):
            out[at], tau[at], _, _ = run(a[at])
    return [out, tau]


_geqrf = prims.host_call("geqrf", _geqrf_host, outputs=2, differentiable=False)


@operator("geqrf(Tensor self) -> (Tensor a, Tensor tau)", forms=BOTH, **COLUMNS)
def geqrf(self):
    """R above and reflectors below the diagonal, and their factors. Source: PyTorch, torch.geqrf."""
    if self.requires_grad:
        raise NotImplementedError("the derivative for 'geqrf' is not implemented.")
    checks.is_factorable(self, "torch.geqrf")
    return _geqrf(self)


@operator("ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor", forms=BOTH,
          saves="self input2 input3", **COLUMNS)
def ormqr(self, input2, input3, left=True, transpose=False):
    """Product of the whole orthogonal matrix of reflectors (self, input2) with input3. Source: PyTorch, torch.ormqr."""
    if input2.ndim and self.ndim > 1 and input3.ndim > 1:
        most = min(input3.shape[-2 if left else -1], self.shape[-1])
        if input2.shape[-1] > most:
            raise RuntimeError("torch.ormqr: tau.shape[-1] must be equal to min(other.shape[-2], input.shape[-1])")
    if self.ndim < 2 or input3.ndim < 2:
        raise RuntimeError("torch.ormqr: input must have at least 2 dimensions." if self.ndim < 2 else
                           "torch.ormqr: other must have at least 2 dimensions.")
    m = self.shape[-2]
    size = input3.shape[-2 if left else -1]
    if size < input2.shape[-1]:
        raise RuntimeError(f"torch.ormqr: other.shape[{-2 if left else -1}] must be greater than or equal to "
                           "tau.shape[-1]")
    if size != m:
        raise RuntimeError(f"torch.ormqr: other.shape[{-2 if left else -1}] must be equal to input.shape[-2]")
    n = self.shape[-1]
    if n < m:  # the whole of Q, not its first columns
        zero = value_of(np.zeros(self.shape[:-1] + (m - n,), self.dtype))
        self = prims.concat(self, zero, axis=self.ndim - 1)
    elif n > m:
        self = prims.strided_slice(self, start=(0,) * self.ndim, stop=self.shape[:-1] + (m,), step=(1,) * self.ndim)
    q = householder_values(self, input2)
    q = prims.adjoint(q) if transpose else q
    return prims.matmul(q, input3) if left else prims.matmul(input3, q)


# ------------------------------------------------------------------------------------------------ singular values
def finite_svd(A, full, name):
    """U, S and the adjoint of V; LinAlgError for non-finite input."""
    checks.is_factorable(A, name)
    if not np.isfinite(A.numpy).all():
        raise LinAlgError(f"{name}: The algorithm failed to converge because the input matrix contained non-finite "
                          "values.")
    return prims.singular_values(A, full=full)


@operator("svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
          grad_name="LinalgSvdBackward0", **LINALG, **COLUMNS)
def svd(A, full_matrices=True, driver=None):
    """A = U diag(S) Vh. LinAlgError for non-finite input. Source: PyTorch, torch.linalg.svd."""
    if driver is not None:
        raise RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
                           "cuSOLVER backend.")
    return finite_svd(A, full_matrices, "linalg.svd")


@operator("svdvals(Tensor A, *, str? driver=None) -> Tensor", grad_name="LinalgSvdBackward0", **LINALG)
def svdvals(A, driver=None):
    """The singular values. Source: PyTorch, torch.linalg.svdvals."""
    return finite_svd(A, False, "linalg.svd")[1]


@operator("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)", forms=BOTH,
          grad_name="LinalgSvdBackward0")
def torch_svd(self, some=True, compute_uv=True):
    """self = U diag(S) V*. Source: PyTorch, torch.svd."""
    if self.ndim < 2:
        raise RuntimeError(f"linalg.svd: input should have at least 2 dimensions, but has {self.ndim} dimensions instead")
    u, s, vh = finite_svd(self, not some and compute_uv, "linalg.svd")
    if not compute_uv:
        m, n = self.shape[-2:]
        lead = self.shape[:-2]
        return value_of(np.zeros(lead + (m, m), self.dtype)), s, value_of(np.zeros(lead + (n, n), self.dtype))
    return u, s, prims.adjoint(vh)


# ------------------------------------------------------------------------------------------------ eigenvalues
def _eigh(A, UPLO, name):
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    checks.is_solvable(A, name)
    return prims.eigen_hermitian(A, uplo=UPLO.upper())


@operator("eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
          grad_name="LinalgEighBackward0", **LINALG, **COLUMNS)
def eigh(self, UPLO="L"):
    """Eigenvalues, ascending, and eigenvectors of symmetric or Hermitian matrices.

    Source: PyTorch, torch.linalg.eigh.
    """
    return _eigh(self, UPLO, "linalg.eigh")


@operator("eigvalsh(Tensor self, str UPLO='L') -> Tensor", grad_name="LinalgEighBackward0", **LINALG)
def eigvalsh(self, UPLO="L"):
    """Eigenvalues of symmetric or Hermitian matrices, ascending. Source: PyTorch, torch.linalg.eigvalsh."""
    return _eigh(self, UPLO, "linalg.eigvalsh")[0]


def _eig(A, name):
    checks.is_solvable(A, name)
    if not np.isfinite(A.numpy).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    return prims.eigen(A)


@operator("eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", grad_name="LinalgEigBackward0", **LINALG, **COLUMNS)
def eig(self):
    """Complex eigenvalues and eigenvectors of square matrices. Source: PyTorch, torch.linalg.eig."""
    return _eig(self, "linalg.eig")


@operator("eigvals(Tensor self) -> Tensor", grad_name="LinalgEigBackward0", **LINALG)
def eigvals(self):
    """Complex eigenvalues of square matrices. Source: PyTorch, torch.linalg.eigvals."""
    return _eig(self, "linalg.eigvals")[0]


# ------------------------------------------------------------------------------------------------ LU
def _lu_factor(A, pivot, name):
    checks.is_factorable(A, name)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    return prims.lu_packed(A)


@operator("lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
          grad_name="LinalgLuFactorExBackward0", **LINALG, **COLUMNS)
def lu_factor(A, pivot=True):
    """Packed LU factors and the row exchanges, from 1. RuntimeError for a singular matrix.

    Source: PyTorch, torch.linalg.lu_factor.
    """
    packed, pivots, info = _lu_factor(A, pivot, "linalg.lu_factor")
    flat = info.numpy.reshape(-1)
    bad = np.flatnonzero(flat > 0)
    if bad.size:
        at = f"(Batch element {int(bad[0])}): " if info.ndim else ""
        k = int(flat[bad[0]])
        raise RuntimeError(f"torch.linalg.lu_factor: {at}U[{k},{k}] is zero and using it on lu_solve would result in "
                           "a division by zero. "
                           "If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
                           "linalg.lu_factor_ex(A, pivot)")
    return packed, pivots


@operator("lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor "
          "info)",
          grad_name="LinalgLuFactorExBackward0", **LINALG, **COLUMNS)
def lu_factor_ex(A, pivot=True, check_errors=False):
    """As lu_factor, with LAPACK's info instead of an error. Source: PyTorch, torch.linalg.lu_factor_ex."""
    made = _lu_factor(A, pivot, "linalg.lu_factor_ex")
    if check_errors:
        checks.raise_first(made[2].numpy, "torch.linalg.lu_factor_ex", lambda k: f"U[{k},{k}] is zero and using it on "
                                                                                 "lu_solve would "
                           "result in a division by zero.")
    return made


@operator("lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", grad_name="LinalgLuBackward0", **LINALG)
def lu(A, pivot=True):
    """A = P L U. Source: PyTorch, torch.linalg.lu."""
    packed, pivots, _ = _lu_factor(A, pivot, "linalg.lu")
    left, right = unpacked(packed)
    return value_of(permutation_matrix(pivots.numpy - 1, A.shape[-2], A.dtype)), left, right


@operator("_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor "
          "info)",
          forms="function", grad_name="LinalgLuFactorExBackward0", **COLUMNS)
def lu_with_info(self, pivot=True, check_errors=True):
    """Packed LU factors, row exchanges and LAPACK's info. Source: PyTorch, torch._lu_with_info."""
    return _lu_factor(self, pivot, "linalg.lu_factor_ex")


def torch_lu(A, pivot=True, get_infos=False, out=None):
    """Packed LU factors and row exchanges, with LAPACK's info where asked for. Source: PyTorch, torch.lu."""
    made = call("_lu_with_info", A, pivot, not get_infos)
    if out is not None:
        for o, r in zip(out, made):
            write_out("lu", o, r)
        return out
    return made if get_infos else (made[0], made[1])


torch_lu.__name__ = torch_lu.__qualname__ = "lu"
plain(torch_lu, name="lu", method="lu")


@operator("lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> "
          "(Tensor P, Tensor L, Tensor U)", forms="function out", grad_name="LuUnpackBackward0")
def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    """P, L and U of packed factors. Source: PyTorch, torch.lu_unpack."""
    if unpack_pivots and LU_pivots.dtype != np.int32:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 "
                           "dtype.\nNote: this function "
                           "is intended to be used with the output produced by torch.linalg.lu_factor")
    nothing = value_of(np.zeros(0, LU_data.dtype))
    left, right = unpacked(LU_data) if unpack_data else (nothing, nothing)
    p = value_of(permutation_matrix(LU_pivots.numpy - 1, LU_data.shape[-2], LU_data.dtype)) if unpack_pivots else nothing
    return p, left, right


def _lu_solve(LU, pivots, B, left, adjoint, name):
    checks.is_square(LU, name, "LU")
    checks.same_dtype(LU, B, name)
    checks.is_matrix(B, name, "B")
    checks.fits(LU, B, left, name)
    if pivots.dtype != np.int32:
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32")
    n = LU.shape[-1]
    lower, upper = unpacked(LU)
    order = permutation(pivots.numpy - 1, n)
    p = np.zeros(order.shape[:-1] + (n, n), LU.dtype)
    for at in np.ndindex(*order.shape[:-1]):
        p[at][order[at], np.arange(n)] = 1
    p = value_of(p)
    if not left:  # X A = B is A* X* = B*
        B, adjoint = prims.adjoint(B), not adjoint
    lead = broadcast_shapes(LU.shape[:-2], B.shape[:-2])
    B = expanded(B, lead + B.shape[-2:])
    if not adjoint:
        made = triangular_values(upper, triangular_values(lower, prims.matmul(prims.swapped(p), B), False, unit=True), True)
    else:
        made = triangular_values(prims.adjoint(upper), B, False)
        made = prims.matmul(p, triangular_values(prims.adjoint(lower), made, True, unit=True))
    return made if left else prims.adjoint(made)


@operator("lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
          grad_name="LinalgLuSolveBackward0", layout=from_left(3), **LINALG)
def lu_solve(LU, pivots, B, left=True, adjoint=False):
    """X with A X = B for a factored A. Source: PyTorch, torch.linalg.lu_solve."""
    return _lu_solve(LU, pivots, B, left, adjoint, "linalg.lu_solve")


@operator("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", forms=BOTH, grad_name="LinalgLuSolveBackward0", **COLUMNS)
def torch_lu_solve(self, LU_data, LU_pivots):
    """X with A X = self for a factored A. Source: PyTorch, torch.lu_solve."""
    return _lu_solve(LU_data, LU_pivots, self, True, False, "linalg.lu_solve")


# ------------------------------------------------------------------------------------------------ LDL
def _ldl_host(a, *, hermitian):
    out, pivots, info = a.copy(), np.zeros(a.shape[:-1], np.int32), np.zeros(a.shape[:-2], np.int32)
    if a.size:
        run, = lapack.get_lapack_funcs(("hetrf" if hermitian and a.dtype.kind == "c" else "sytrf",), (a,))
        for at in each(a):
            packed, pivots[at], info[at] = run(a[at], lower=True)
            out[at] = np.tril(packed)
    return [out, pivots, info]


_ldl = prims.host_call("ldl_factor", _ldl_host, outputs=3, differentiable=False)


@operator("ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, "
          "Tensor info)",
          **LINALG, **COLUMNS)
def ldl_factor_ex(self, hermitian=False, check_errors=False):
    """Packed factors of a symmetric or Hermitian matrix, with LAPACK's info.

    Source: PyTorch, torch.linalg.ldl_factor_ex.
    """
    checks.is_solvable(self, "linalg.ldl_factor_ex")
    return _ldl(self, hermitian=hermitian)


@operator("ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)", **LINALG, **COLUMNS)
def ldl_factor(self, hermitian=False):
    """Packed factors L D of a symmetric or Hermitian matrix. Source: PyTorch, torch.linalg.ldl_factor."""
    checks.is_solvable(self, "linalg.ldl_factor")
    packed, pivots, info = _ldl(self, hermitian=hermitian)
    checks.raise_first(info.numpy, "torch.linalg.ldl_factor", lambda k: f"D[{k},{k}] is zero.")
    return packed, pivots


def _ldl_solve_host(packed, pivots, b, *, hermitian):
    """Solve with the factors of sytrf or hetrf, lower: A = P1 L1 P2 L2 … D … L2* P2 L1* P1."""
    lead = np.broadcast_shapes(packed.shape[:-2], b.shape[:-2])
    packed = np.broadcast_to(packed, lead + packed.shape[-2:])
    pivots = np.broadcast_to(pivots, lead + pivots.shape[-1:])
    out = np.array(np.broadcast_to(b, lead + b.shape[-2:]))
    conj = np.conj if hermitian else np.asarray
    n = packed.shape[-1]
    for at in np.ndindex(*lead):
        f, p, x = packed[at], pivots[at], out[at]
        steps, k = [], 0
        while k < n:
            steps.append((k, 1 if p[k] > 0 else 2))
            k += steps[-1][1]
        for k, width in steps:
            row, other = k + width - 1, abs(int(p[k])) - 1
            if row != other:
                x[[row, other]] = x[[other, row]]
            x[k + width:] -= f[k + width:, k:k + width] @ x[k:k + width]
            if width == 1:
                x[k] /= f[k, k]
            else:
                d = np.array([[f[k, k], conj(f[k + 1, k])], [f[k + 1, k], f[k + 1, k + 1]]])
                x[k:k + 2] = np.linalg.solve(d, x[k:k + 2])
        for k, width in reversed(steps):
            x[k:k + width] -= conj(f[k + width:, k:k + width]).T @ x[k + width:]
            row, other = k + width - 1, abs(int(p[k])) - 1
            if row != other:
                x[[row, other]] = x[[other, row]]
    return out


_ldl_solve = prims.host_call("ldl_solve", _ldl_solve_host, differentiable=False)


@operator("ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor", **LINALG, **COLUMNS)
def ldl_solve(LD, pivots, B, hermitian=False):
    """X with A X = B for a matrix factored by ldl_factor. Source: PyTorch, torch.linalg.ldl_solve."""
    name = "linalg.ldl_solve"
    checks.is_square(LD, name, "LD")
    checks.is_matrix(B, name, "B")
    checks.same_dtype(LD, B, name)
    checks.fits(LD, B, True, name)
    return _ldl_solve(LD, pivots, B, hermitian=hermitian and LD.dtype.kind == "c")


# ------------------------------------------------------------------------------------------------ least squares
_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@operator("lstsq(Tensor self, Tensor B, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor "
          "residuals, Tensor rank, "
          "Tensor singular_values)", grad_name="LinalgLstsqBackward0", **LINALG)
def lstsq(self, B, rcond=None, driver=None):
    """The X of least |A X - B|, of least norm where several are. Source: PyTorch, torch.linalg.lstsq."""
    name = "torch.linalg.lstsq"
    if self.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if B.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if not 0 <= self.ndim - B.ndim <= 1:
        raise RuntimeError(f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1")
    if self.dtype != B.dtype:
        raise RuntimeError(f"{name}: Expected input and other to have the same dtype, but got input's dtype "
                           f"{dtype_of(self).scalar_name} and other's dtype {dtype_of(B).scalar_name}")
    if driver is not None and driver not in _DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    driver = driver or "gelsy"
    vector = self.ndim > B.ndim
    right = shaped(B, B.shape + (1,)) if vector else B
    lead = broadcast_shapes(self.shape[:-2], right.shape[:-2])
    if self.shape[-2] != right.shape[-2]:
        raise RuntimeError(f"{name}: input.size({-2}) should match other.size({-1 if vector else -2})")
    if self.dtype.kind not in "fc":
        raise RuntimeError("This function doesn't handle types other than float and double")
    m, n = self.shape[-2:]
    a, b = expanded(self, lead + (m, n)), expanded(right, lead + right.shape[-2:])
    rcond = checks.epsilon(self) * max(m, n) if rcond is None else rcond
    atol, rtol = tolerances(a, 0.0, rcond)
    inverse = prims.pseudo_inverse(a, value_of(atol), value_of(rtol), hermitian=False)
    solution = prims.matmul(inverse, b)
    empty = value_of(np.zeros(0, checks.real_of(self).numpy))
    own = self.numpy  # rank and singular values are those of the matrices given, however often they are used
    s = np.linalg.svd(own, compute_uv=False) if own.size else np.zeros(own.shape[:-2] + (min(m, n),), empty.dtype)
    rank = (s > rcond * s.max(-1, keepdims=True, initial=0)).sum(-1).astype(np.int64)
    residuals = tied(empty, solution)
    if m > n and (driver == "gels" or (rank == n).all()) and driver != "gelsy":
        rest = prims.matmul(a, solution) - b
        residuals = prims.sum(prims.square(prims.absolute(rest)), axes=(rest.ndim - 2,), keepdims=False)
    singular = value_of(s) if driver in ("gelsd", "gelss") else empty
    ranks = value_of(rank) if driver != "gels" else value_of(np.zeros(0, np.int64))
    if vector:
        solution = shaped(solution, solution.shape[:-1])
    return solution, residuals, ranks, singular


# ------------------------------------------------------------------------------------------------ Cholesky, older names
@operator("cholesky(Tensor self, bool upper=False) -> Tensor", forms=BOTH, saves="result", grad_name="CholeskyBackward0", **COLUMNS)
def cholesky(self, upper=False):
    """The triangular factor of positive-definite matrices. Source: PyTorch, torch.cholesky."""
    return cholesky_values(self, upper, "cholesky")[0]


def _cholesky_solve_host(b, a, *, upper):
    out = np.zeros(b.shape, b.dtype)
    if out.size:
        for at in each(b):
            out[at] = scipy.linalg.cho_solve((a[at], not upper), b[at], check_finite=False)
    return out


def _cholesky_solve_vjp(grads, outs, needs, b, a, *, upper):
    """PyTorch takes the whole factor as variable, not its triangle."""
    back = _cholesky_solve(grads[0], a, upper=upper)
    if not needs[1]:
        return [back, None]
    common = prims.matmul(back, prims.adjoint(outs[0]))
    common = prims.neg(common + prims.adjoint(common))
    return [back if needs[0] else None, prims.matmul(a, common) if upper else prims.matmul(common, a)]


_cholesky_solve = prims.host_call("cholesky_solve", _cholesky_solve_host, joint_vjp=_cholesky_solve_vjp)


@operator("cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", forms=BOTH, saves="self input2 result", **COLUMNS)
def cholesky_solve(self, input2, upper=False):
    """X with A X = self for the factor `input2` of A. Source: PyTorch, torch.cholesky_solve."""
    for label, v in (("b", self), ("u", input2)):
        if v.ndim < 2:
            raise RuntimeError(f"{label} should have at least 2 dimensions, but has {v.ndim} dimensions instead")
    checks.is_square(input2, "cholesky_solve")
    checks.fits(input2, self, True, "cholesky_solve")
    lead = broadcast_shapes(self.shape[:-2], input2.shape[:-2])
    b, a = expanded(self, lead + self.shape[-2:]), expanded(input2, lead + input2.shape[-2:])
    return _cholesky_solve(b, a, upper=upper)


def _cholesky_inverse_host(a, *, upper):
    eye = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    return _cholesky_solve_host(eye, a, upper=upper)


def _cholesky_inverse_vjp(g, out, a, *, upper):
    common = prims.neg(prims.matmul(out, prims.matmul(g + prims.adjoint(g), out)))
    return prims.matmul(a, common) if upper else prims.matmul(common, a)


_cholesky_inverse = prims.host_call("cholesky_inverse", _cholesky_inverse_host, vjp=[_cholesky_inverse_vjp])


@operator("cholesky_inverse(Tensor self, bool upper=False) -> Tensor", forms=BOTH, saves="self result", **COLUMNS)
def cholesky_inverse(self, upper=False):
    """The inverse of A from its factor. Source: PyTorch, torch.cholesky_inverse."""
    checks.is_square(self, "cholesky_inverse")
    return _cholesky_inverse(self, upper=upper)


@operator("triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> "
          "(Tensor solution, Tensor cloned_coefficient)", forms=BOTH, saves="A", **COLUMNS)
def triangular_solve(self, A, upper=True, transpose=False, unitriangular=False):
    """X with A X = self for a triangular A, and a copy of A. Source: PyTorch, torch.triangular_solve."""
    warnings.warn("torch.triangular_solve is deprecated; torch.linalg.solve_triangular(A, B, upper=…) gives the solution.",
                  stacklevel=6)
    checks.is_square(A, "triangular_solve")
    checks.is_matrix(self, "triangular_solve", "B")
    checks.fits(A, self, True, "triangular_solve")
    lead = broadcast_shapes(A.shape[:-2], self.shape[:-2])
    a = expanded(A, lead + A.shape[-2:])
    return triangular_values(prims.swapped(a) if transpose else a, self, upper != transpose, unit=unitriangular), prims.copy(a)


# ------------------------------------------------------------------------------------------------ approximations
def _orthonormal(a, q, niter, m):
    """Columns that span nearly the range of A, by random projection and subspace iteration."""
    a = a if m is None else a - m
    r = call("randn", *a.shape[:-2], a.shape[-1], q, dtype=a.dtype, device=a.device)
    x = call("linalg.qr", call("matmul", a, r))[0]
    ah = a.mH
    for _ in range(niter):
        x = call("linalg.qr", call("matmul", ah, x))[0]
        x = call("linalg.qr", call("matmul", a, x))[0]
    return x


@composite("svd_lowrank(Tensor A, int? q=6, int? niter=2, Tensor? M=None) -> any", forms="function")
def svd_lowrank(A, q=6, niter=2, M=None):
    """U, S, V of an approximation of rank q of A - M. Source: PyTorch, torch.svd_lowrank."""
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    m, n = A.shape[-2:]
    if M is not None:
        M = M.expand(A.shape)
    if m < n:
        A, M = A.mH, None if M is None else M.mH
    basis = _orthonormal(A, q, niter, M)
    b = call("matmul", basis.mH, A if M is None else A - M)
    u, s, vh = call("linalg.svd", b, full_matrices=False)
    u, v = call("matmul", basis, u), vh.mH
    return (v, s, u) if m < n else (u, s, v)


@composite("pca_lowrank(Tensor A, int? q=None, bool center=True, int niter=2) -> any", forms="function")
def pca_lowrank(A, q=None, center=True, niter=2):
    """Principal components of rows, by svd_lowrank of the centred matrix. Source: PyTorch, torch.pca_lowrank."""
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return call("svd_lowrank", A - A.mean(-2, keepdim=True) if center else A, q, niter)


