"""Matrices: inverse, solutions, factorizations and their gradients, by LAPACK on the host; leading axes are batches."""

import math

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from msadapter_hook.tape import Value, constant

from .host import host_call
from .linear import matmul
from .movement import broadcast_to, cast, concat, reshape, strided_slice, sum_to, transpose, zeros_like
from .pointwise import conj_of, imag, make_complex, real, where
from .reduction import sum as reduce_sum

__all__ = ["adjoint", "cholesky", "determinant", "diagonal", "diagonal_matrix", "eigen", "eigen_hermitian", "identity", "inverse",
           "log_determinant", "lower", "lu_packed", "matrix_exponential", "pseudo_inverse", "qr", "singular_values", "solve",
           "solve_triangular", "swapped", "upper"]


# ------------------------------------------------------------------------------------------------ small parts
def swapped(v):
    """The last two axes exchanged."""
    n = v.ndim
    return transpose(v, axes=tuple(range(n - 2)) + (n - 1, n - 2))


def adjoint(v):
    """The conjugate transpose of the last two axes."""
    return conj_of(swapped(v))


def _constant(array):
    return Value(array.shape, array.dtype, array)


def identity(n, dtype, m=None):
    """The unit matrix (n, m) as a Value."""
    return _constant(np.eye(n, m, dtype=dtype))


def _masked(v, mask):
    full = np.broadcast_to(mask, v.shape)
    return where(_constant(np.ascontiguousarray(full)), v, constant(0, v.dtype))


def lower(v, k=0):
    """The part on and below diagonal k."""
    return _masked(v, np.tri(*v.shape[-2:], k=k, dtype=bool))


def upper(v, k=0):
    """The part on and above diagonal k."""
    return _masked(v, ~np.tri(*v.shape[-2:], k=k - 1, dtype=bool))


def diagonal(v):
    """The main diagonal of the last two axes."""
    n, m = v.shape[-2:]
    return _first(reduce_sum(_masked(v, np.eye(n, m, dtype=bool)), axes=(v.ndim - 1,), keepdims=False), min(n, m))


def _first(v, n):
    """The first n elements of the last axis."""
    if v.shape[-1] == n:
        return v
    return strided_slice(v, start=(0,) * v.ndim, stop=v.shape[:-1] + (n,), step=(1,) * v.ndim)


def _block(v, rows, columns):
    """The upper left block of the last two axes."""
    stop = v.shape[:-2] + (rows, columns)
    return v if stop == v.shape else strided_slice(v, start=(0,) * v.ndim, stop=stop, step=(1,) * v.ndim)


def _columns(v, start, stop):
    return strided_slice(v, start=(0,) * (v.ndim - 1) + (start,), stop=v.shape[:-1] + (stop,), step=(1,) * v.ndim)


def _rows(v, start, stop):
    return strided_slice(v, start=(0,) * (v.ndim - 2) + (start, 0), stop=v.shape[:-2] + (stop, v.shape[-1]), step=(1,) * v.ndim)


def diagonal_matrix(d):
    """A vector as the diagonal of a matrix."""
    n = d.shape[-1]
    return _masked(broadcast_to(reshape(d, shape=d.shape + (1,)), shape=d.shape + (n,)), np.eye(n, dtype=bool))


def _row_scaled(v, d):
    """diag(d) @ v."""
    return v * reshape(d, shape=d.shape + (1,))


def _column_scaled(v, d):
    """v @ diag(d)."""
    return v * reshape(d, shape=d.shape[:-1] + (1, d.shape[-1]))


def _as(v, dtype):
    return v if v.dtype == dtype else cast(v, dtype=dtype)


def each(a):
    """Indices of the matrices of a batch."""
    return np.ndindex(*a.shape[:-2])


def getrf(a):
    """Packed LU factors, row exchanges (from 0) and LAPACK's info of each matrix of a batch."""
    lead, (m, n) = a.shape[:-2], a.shape[-2:]
    packed = np.array(a, order="C")
    pivots, info = np.zeros(lead + (min(m, n),), np.int32), np.zeros(lead, np.int32)
    if packed.size:
        run, = lapack.get_lapack_funcs(("getrf",), (a,))
        for at in each(a):
            packed[at], pivots[at], info[at] = run(a[at])
    return packed, pivots, info


# ------------------------------------------------------------------------------------------------ inverse and solutions
def _inverse_host(a):
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        out = np.zeros_like(a)
        for at in each(a):
            try:
                out[at] = np.linalg.inv(a[at])
            except np.linalg.LinAlgError:
                out[at] = np.inf
        return out


inverse = host_call("inverse", _inverse_host, vjp=[lambda g, out, a: -matmul(adjoint(out), matmul(g, adjoint(out)))])


def _solve_host(a, b):
    if a.size == 0 or b.size == 0:
        return np.zeros(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:], b.dtype)
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return np.full(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:], np.nan, b.dtype)


def _solve_vjp(grads, outs, needs, a, b):
    back = solve(adjoint(a), grads[0])
    return [sum_to(-matmul(back, adjoint(outs[0])), shape=a.shape) if needs[0] else None,
            sum_to(back, shape=b.shape) if needs[1] else None]


solve = host_call("solve", _solve_host, joint_vjp=_solve_vjp)  # a @ x = b


def _triangular_host(a, b, *, above, unit):
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = np.broadcast_to(a, lead + a.shape[-2:]), np.broadcast_to(b, lead + b.shape[-2:])
    out = np.zeros(b.shape, b.dtype)
    if out.size:
        run, = lapack.get_lapack_funcs(("trtrs",), (a, b))
        for at in np.ndindex(*lead):
            x, info = run(a[at], b[at], lower=not above, unitdiag=unit)
            if info > 0:  # LAPACK stops at a zero on the diagonal; PyTorch divides by it
                blas, = scipy.linalg.get_blas_funcs(("trsm",), (a, b))
                x = blas(1.0, a[at], b[at], lower=not above, diag=unit)
            out[at] = x
    return out


def _triangular_vjp(grads, outs, needs, a, b, *, above, unit):
    back = solve_triangular(adjoint(a), grads[0], above=not above, unit=unit)
    da = None
    if needs[0]:
        full = -matmul(back, adjoint(outs[0]))
        k = int(unit)
        da = sum_to(upper(full, k) if above else lower(full, -k), shape=a.shape)
    return [da, sum_to(back, shape=b.shape) if needs[1] else None]


solve_triangular = host_call("solve_triangular", _triangular_host, joint_vjp=_triangular_vjp)  # a @ x = b, one triangle of a


# ------------------------------------------------------------------------------------------------ Cholesky
def cholesky_arrays(a):
    """Lower factors of a batch and, for each, the order of the first leading minor that is not positive (0: none)."""
    out, info = np.zeros_like(a), np.zeros(a.shape[:-2], np.int32)
    if a.size:
        run, = lapack.get_lapack_funcs(("potrf",), (a,))
        for at in each(a):
            out[at], info[at] = run(a[at], lower=True, clean=True)
    return out, info


def _cholesky_vjp(g, out, a):
    phi = lower(matmul(adjoint(out), g))
    phi = (phi + adjoint(lower(phi, -1))) * 0.5
    if phi.dtype.kind == "c":  # the diagonal of the factor is real
        middle = np.broadcast_to(np.eye(phi.shape[-1], dtype=bool), phi.shape).copy()
        phi = where(_constant(middle), cast(real(phi), dtype=phi.dtype), phi)
    right = solve_triangular(adjoint(out), phi, above=True, unit=False)
    return adjoint(solve_triangular(adjoint(out), adjoint(right), above=True, unit=False))


cholesky = host_call("cholesky", lambda a: cholesky_arrays(a)[0], vjp=[_cholesky_vjp])


# ------------------------------------------------------------------------------------------------ determinants
def _determinant_vjp(g, out, a):
    empty = out.numpy == 0  # the gradient of a singular matrix is taken as 0
    lead = a.shape[:-2]
    if empty.any():
        mask = np.broadcast_to(empty[..., None, None], a.shape).copy()
        a = where(_constant(mask), broadcast_to(identity(a.shape[-1], a.dtype), shape=a.shape), a)
    return adjoint(inverse(a)) * reshape(g * conj_of(out), shape=lead + (1, 1))


determinant = host_call("determinant", np.linalg.det, vjp=[_determinant_vjp])


def _log_determinant_host(a):
    return list(np.linalg.slogdet(a))


def _log_determinant_vjp(grads, outs, needs, a):
    g_sign, g_log = grads
    lead = a.shape[:-2]
    if a.dtype.kind != "c":
        if g_log is None:
            return [zeros_like(a)]
        return [adjoint(inverse(a)) * reshape(g_log, shape=lead + (1, 1))]
    total = cast(g_log, dtype=a.dtype) if g_log is not None else zeros_like(outs[0])
    if g_sign is not None:  # the sign turns by i times the imaginary part of d log det
        turn = imag(conj_of(outs[0]) * g_sign)
        total = total + make_complex(zeros_like(turn), turn)
    return [adjoint(inverse(a)) * reshape(total, shape=lead + (1, 1))]


log_determinant = host_call("log_determinant", _log_determinant_host, joint_vjp=_log_determinant_vjp, outputs=2)


# ------------------------------------------------------------------------------------------------ LU
def _lu_host(a):
    packed, pivots, info = getrf(a)
    return [packed, pivots + 1, info]


def permutation(pivots, m):
    """The order of rows that row exchanges (from 0) lead to, as index arrays (…, m)."""
    order = np.broadcast_to(np.arange(m), pivots.shape[:-1] + (m,)).copy()
    for at in np.ndindex(*pivots.shape[:-1]):
        for i, p in enumerate(pivots[at]):
            order[at][i], order[at][p] = order[at][p], order[at][i]
    return order


def permutation_matrix(pivots, m, dtype):
    """P with P @ L @ U = A, from row exchanges counted from 0."""
    order = permutation(pivots, m)
    out = np.zeros(order.shape[:-1] + (m, m), dtype)
    for at in np.ndindex(*order.shape[:-1]):
        out[at][order[at], np.arange(m)] = 1
    return out


def unpacked(packed):
    """L and U of packed factors."""
    m, n = packed.shape[-2:]
    k = min(m, n)
    left = lower(_block(packed, m, k), -1)
    return left + broadcast_to(identity(m, packed.dtype, k), shape=left.shape), upper(_block(packed, k, n))


def _lu_vjp(grads, outs, needs, a):
    packed, pivots = outs[0], outs[1]
    m, n = a.shape[-2:]
    k = min(m, n)
    left, right = unpacked(packed)
    g = grads[0]
    gl, gu = lower(_block(g, m, k), -1), upper(_block(g, k, n))
    tail = None
    if m < n:
        u2, gu2 = _columns(right, m, n), _columns(gu, m, n)
        tail = solve_triangular(adjoint(left), gu2, above=True, unit=True)
        gl = gl - matmul(tail, adjoint(u2))
        right, gu = _columns(right, 0, m), _columns(gu, 0, m)
    elif m > n:
        l2, gl2 = _rows(left, n, m), _rows(gl, n, m)
        tail = adjoint(solve_triangular(right, adjoint(gl2), above=True, unit=False))
        gu = gu - matmul(adjoint(l2), tail)
        left, gl = _rows(left, 0, n), _rows(gl, 0, n)
    phi = lower(matmul(adjoint(left), gl), -1) + upper(matmul(gu, adjoint(right)))
    made = solve_triangular(adjoint(left), phi, above=True, unit=True)
    made = adjoint(solve_triangular(right, adjoint(made), above=True, unit=False))
    if tail is not None:
        made = concat(made, tail, axis=a.ndim - (1 if m < n else 2))
    p = permutation_matrix(pivots.numpy - 1, m, a.dtype)
    return [matmul(_constant(p), made)]


lu_packed = host_call("lu_packed", _lu_host, joint_vjp=_lu_vjp, outputs=3)  # factors, row exchanges from 1, info


# ------------------------------------------------------------------------------------------------ QR
def _qr_host(a, *, mode):
    m, n = a.shape[-2:]
    if a.size == 0:
        k = m if mode == "complete" else min(m, n)
        q = np.broadcast_to(np.eye(m, k, dtype=a.dtype), a.shape[:-2] + (m, k)).copy()
        return [q, np.zeros(a.shape[:-2] + (k, n), a.dtype)]
    return list(np.linalg.qr(a, mode=mode))


def _copied_upper(x):
    """The upper triangle with its adjoint below; a real diagonal."""
    up = upper(x, 1)
    middle = diagonal(x)
    if x.dtype.kind == "c":
        middle = cast(real(middle), dtype=x.dtype)
    return up + adjoint(up) + diagonal_matrix(middle)


def _qr_vjp(grads, outs, needs, a, *, mode):
    gq, gr = grads
    q, r = outs
    m, n = a.shape[-2:]
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    gq = zeros_like(q) if gq is None else gq
    gr = zeros_like(r) if gr is None else gr
    tail = None
    if m < n:
        a2, gr2 = _columns(a, m, n), _columns(gr, m, n)
        tail = matmul(q, gr2)
        gq = gq + matmul(a2, adjoint(gr2))
        r, gr = _columns(r, 0, m), _columns(gr, 0, m)
    inner = matmul(gr, adjoint(r)) - matmul(adjoint(q), gq)
    made = gq + matmul(q, _copied_upper(inner))
    made = adjoint(solve_triangular(r, adjoint(made), above=True, unit=False))
    return [concat(made, tail, axis=a.ndim - 1) if tail is not None else made]


qr = host_call("qr", _qr_host, joint_vjp=_qr_vjp, outputs=2)


# ------------------------------------------------------------------------------------------------ singular values
def _svd_host(a, *, full):
    if a.size == 0:
        m, n = a.shape[-2:]
        k = min(m, n)
        lead = a.shape[:-2]
        real_type = np.zeros((), a.dtype).real.dtype
        u = np.broadcast_to(np.eye(m, m if full else k, dtype=a.dtype), lead + (m, m if full else k)).copy()
        v = np.broadcast_to(np.eye(n if full else k, n, dtype=a.dtype), lead + (n if full else k, n)).copy()
        return [u, np.zeros(lead + (k,), real_type), v]
    return list(np.linalg.svd(a, full_matrices=full))


def _svd_vjp(grads, outs, needs, a, *, full):
    gu, gs, gvh = grads
    u, s, vh = outs
    m, n = a.shape[-2:]
    k = min(m, n)
    if full:
        u, vh = _block(u, m, k), _block(vh, k, n)
        gu = None if gu is None else _block(gu, m, k)
        gvh = None if gvh is None else _block(gvh, k, n)
    wide = _as(s, a.dtype)
    if gu is None and gvh is None:
        return [zeros_like(a) if gs is None else matmul(_column_scaled(u, _as(gs, a.dtype)), vh)]
    square = wide * wide
    gap = reshape(square, shape=s.shape[:-1] + (1, k)) - reshape(square, shape=s.shape + (1,))
    gap = gap + broadcast_to(identity(k, a.dtype), shape=gap.shape)
    inner = diagonal_matrix(_as(gs, a.dtype)) if gs is not None else None
    if gu is not None:
        part = matmul(adjoint(u), gu)
        skew = part - adjoint(part)
        term = _column_scaled(skew / gap, wide)
        if a.dtype.kind == "c":
            turn = imag(diagonal(part))
            term = lower(term, -1) + upper(term, 1) + diagonal_matrix(make_complex(zeros_like(turn), turn) / wide)
        inner = term if inner is None else inner + term
    if gvh is not None:
        part = matmul(vh, adjoint(gvh))
        term = _row_scaled((part - adjoint(part)) / gap, wide)
        inner = term if inner is None else inner + term
    made = matmul(matmul(u, inner), vh)
    if gu is not None and m > k:
        rest = gu - matmul(u, matmul(adjoint(u), gu))
        made = made + matmul(_column_scaled(rest, 1 / wide), vh)
    if gvh is not None and n > k:
        rest = gvh - matmul(matmul(gvh, adjoint(vh)), vh)
        made = made + matmul(u, _row_scaled(rest, 1 / wide))
    return [made]


singular_values = host_call("svd", _svd_host, joint_vjp=_svd_vjp, outputs=3)  # U, S, V adjoint


# ------------------------------------------------------------------------------------------------ eigenvalues
def _eigh_host(a, *, uplo):
    if a.size == 0:
        return [np.zeros(a.shape[:-1], np.zeros((), a.dtype).real.dtype), np.zeros(a.shape, a.dtype)]
    try:
        return list(np.linalg.eigh(a, UPLO=uplo))
    except np.linalg.LinAlgError:
        return [np.full(a.shape[:-1], np.nan, np.zeros((), a.dtype).real.dtype), np.full(a.shape, np.nan, a.dtype)]


def _eigh_vjp(grads, outs, needs, a, *, uplo):
    gl, gv = grads
    values, v = outs
    n = a.shape[-1]
    if gv is None:
        return [matmul(_column_scaled(v, _as(gl, a.dtype)), adjoint(v)) if gl is not None else zeros_like(a)]
    wide = _as(values, a.dtype)
    gap = reshape(wide, shape=wide.shape[:-1] + (1, n)) - reshape(wide, shape=wide.shape + (1,))
    gap = gap + broadcast_to(identity(n, a.dtype), shape=gap.shape)
    part = matmul(adjoint(v), gv) / gap
    inner = lower(part, -1) + upper(part, 1)
    if gl is not None:
        inner = inner + diagonal_matrix(_as(gl, a.dtype))
    return [matmul(matmul(v, inner), adjoint(v))]


eigen_hermitian = host_call("eigh", _eigh_host, joint_vjp=_eigh_vjp, outputs=2)


def _eig_host(a):
    wide = np.result_type(a.dtype, np.complex64)
    if a.size == 0:
        return [np.zeros(a.shape[:-1], wide), np.zeros(a.shape, wide)]
    values, vectors = np.linalg.eig(a)
    return [values.astype(wide), vectors.astype(wide)]


def _eig_vjp(grads, outs, needs, a):
    gl, gv = grads
    values, v = outs
    n = a.shape[-1]
    if gv is None:
        inner = diagonal_matrix(gl) if gl is not None else zeros_like(v)
    else:
        part = matmul(adjoint(v), gv)
        size = diagonal(part)  # vectors are of length 1: what changes it has no effect
        part = part - _column_scaled(matmul(adjoint(v), v), cast(real(size), dtype=v.dtype))
        gap = reshape(values, shape=values.shape[:-1] + (1, n)) - reshape(values, shape=values.shape + (1,))
        gap = conj_of(gap) + broadcast_to(identity(n, v.dtype), shape=gap.shape)
        part = part / gap
        inner = lower(part, -1) + upper(part, 1)
        if gl is not None:
            inner = inner + diagonal_matrix(gl)
    made = solve(adjoint(v), matmul(inner, adjoint(v)))
    return [real(made) if a.dtype.kind != "c" else made]


eigen = host_call("eig", _eig_host, joint_vjp=_eig_vjp, outputs=2)


# ------------------------------------------------------------------------------------------------ functions of matrices
def _pinv_host(a, atol, rtol, *, hermitian):
    m, n = a.shape[-2:]
    if a.size == 0:
        return np.zeros(a.shape[:-2] + (n, m), a.dtype)
    if hermitian:
        values, u = np.linalg.eigh(a)
        size = np.abs(values)
        top = size.max(-1, keepdims=True)
        keep = size > np.maximum(atol[..., None], rtol[..., None] * top)
        inverted = np.where(keep, 1 / np.where(keep, values, 1), 0)
        return np.matmul(u * inverted[..., None, :], np.conj(u.swapaxes(-1, -2))).astype(a.dtype)
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    keep = s > np.maximum(atol[..., None], rtol[..., None] * s.max(-1, keepdims=True))
    inverted = np.where(keep, 1 / np.where(keep, s, 1), 0).astype(s.dtype)
    return np.matmul(np.conj(vh.swapaxes(-1, -2)) * inverted[..., None, :], np.conj(u.swapaxes(-1, -2))).astype(a.dtype)


def _pinv_vjp(grads, outs, needs, a, atol, rtol, *, hermitian):
    p = outs[0]
    gh, ph = adjoint(grads[0]), adjoint(p)
    if a.shape[-2] <= a.shape[-1]:
        k = matmul(gh, p)
        kph = matmul(k, ph)
        made = (kph - adjoint(matmul(p, k)) - matmul(matmul(a, p), kph)
                + matmul(matmul(ph, p), gh - matmul(k, a)))
    else:
        k = matmul(p, gh)
        phk = matmul(ph, k)
        made = (matmul(matmul(gh - matmul(a, k), p), ph) - adjoint(matmul(k, p)) + phk - matmul(matmul(phk, p), a))
    return [made, None, None]


pseudo_inverse = host_call("pinv", _pinv_host, joint_vjp=_pinv_vjp)


def _expm_host(a):
    if a.size == 0:
        return a.copy()
    wide = np.result_type(a.dtype, np.float64)  # squaring loses digits that single precision does not have
    return np.asarray(scipy.linalg.expm(a.astype(wide))).astype(a.dtype)


def _expm_vjp(g, out, a):
    """The derivative of exp at the adjoint, in the direction g: a block of the exponential of a matrix twice the
    size.
    """
    n = a.shape[-1]
    left = adjoint(a)
    rows = a.ndim - 2
    top = concat(left, g, axis=rows + 1)
    bottom = concat(zeros_like(left), left, axis=rows + 1)
    full = matrix_exponential(concat(top, bottom, axis=rows))
    return _columns(_rows(full, 0, n), n, 2 * n)


matrix_exponential = host_call("matrix_exponential", _expm_host, vjp=[_expm_vjp], uses_output=False)


def batch_count(v):
    """How many matrices."""
    return math.prod(v.shape[:-2])
