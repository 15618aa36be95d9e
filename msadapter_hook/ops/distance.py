"""Norms of vectors, distances and similarities."""

import numpy as np
from scipy.spatial import distance as scipy_distance

from msadapter_hook import prims
from msadapter_hook.tape import constant, value_of
from msadapter_hook.tensor import dtypes
from msadapter_hook.tensor.geometry import broadcast_shapes, wrap_dim

from ._contract import expanded, shaped, tied
from .promotion import dtype_of, is_integral, promote, to
from .reduction import axes_of
from .registry import operator


# ------------------------------------------------------------------------------------------------ norm
def _norm_host(a, *, order, axes, keepdims):
    size = np.abs(a.astype(np.float32) if a.dtype.itemsize < 4 else a)
    real = np.zeros((), a.dtype).real.dtype
    if order == 2:
        made = np.sqrt(np.add.reduce(size * size, axis=axes, keepdims=keepdims))
        if not np.isfinite(made).all() or size.size and not made.all():  # squares overflow or vanish where values do not
            top = np.maximum.reduce(size, axis=axes, keepdims=True, initial=0)
            top = np.where((top == 0) | ~np.isfinite(top), 1, top)
            part = size / top
            made = np.sqrt(np.add.reduce(part * part, axis=axes, keepdims=keepdims)) * top.reshape(np.shape(made))
    elif order == 1:
        made = np.add.reduce(size, axis=axes, keepdims=keepdims)
    elif order == 0:
        made = np.add.reduce(size != 0, axis=axes, keepdims=keepdims, dtype=size.dtype)
    elif order == np.inf:
        made = np.maximum.reduce(size, axis=axes, keepdims=keepdims) if not size.size == 0 else np.maximum.reduce(
            size, axis=axes, keepdims=keepdims, initial=0)
    elif order == -np.inf:
        made = np.minimum.reduce(size, axis=axes, keepdims=keepdims)
    else:
        made = np.add.reduce(size ** size.dtype.type(order), axis=axes, keepdims=keepdims) ** size.dtype.type(1 / order)
    return made.astype(real, copy=False)


def _spread(v, a, axes, keepdims):
    if not keepdims:
        v = shaped(v, [1 if i in axes else n for i, n in enumerate(a.shape)])
    return expanded(v, a.shape)


def _zero_where(mask, v):
    """v, with 0 (and no gradient) where a mask array holds."""
    return prims.where(value_of(~mask), v, value_of(np.zeros(v.shape, v.dtype))) if mask.any() else v


def _norm_vjp(g, out, a, *, order, axes, keepdims):
    if order == 0:
        return None
    full_g, full = _spread(g, a, axes, keepdims), _spread(out, a, axes, keepdims)

    def typed(v):
        return prims.cast(v, dtype=a.dtype) if v.dtype != a.dtype else v

    if order == 1:
        return prims.sgn(a) * typed(full_g)
    if order == 2 and full.abstract:  # without data: the same by primitives
        zero = constant(0, full.dtype)
        none = prims.equal(full, zero)
        share = prims.where(none, zero, full_g / prims.where(none, constant(1, full.dtype), full))
        return a * typed(share)
    empty = full.numpy == 0
    if order == 2:
        return _zero_where(empty, a * typed(full_g / _safe(full, empty)))
    size = prims.absolute(a)
    if abs(order) == np.inf:
        with np.errstate(all="ignore"):
            hit = (size.numpy == full.numpy) | (np.isnan(size.numpy) & np.isnan(full.numpy))
        count = np.add.reduce(hit, axis=axes, keepdims=True)
        share = value_of((hit / np.maximum(count, 1)).astype(full_g.dtype))
        return prims.sgn(a) * typed(full_g * share)
    nothing = size.numpy == 0
    exponent = constant(order - 1, size.dtype)
    slope = _zero_where(nothing, prims.sgn(a) * typed(prims.pow(_safe(size, nothing), exponent)))
    scale = _zero_where(empty, full_g / prims.pow(_safe(full, empty), exponent))
    return slope * typed(scale)


def _safe(v, mask):
    """v, with 1 where a mask array holds, so that a quotient or power there is finite."""
    return prims.where(value_of(~mask), v, value_of(np.ones(v.shape, v.dtype))) if mask.any() else v


vector_norm_values = prims.host_call("vector_norm", _norm_host, vjp=[_norm_vjp])


def norm_dtype(x, dtype, name):
    """The input of a norm in the dtype asked for."""
    if not (dtype_of(x).is_floating_point or dtype_of(x).is_complex):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got "
                           f"{dtype_of(x).scalar_name}")
    if dtype is None:
        return x
    if dtype_of(x).is_complex and not dtype.is_complex or not (dtype.is_floating_point or dtype.is_complex):
        kind = "complex" if dtype_of(x).is_complex else "real"
        raise RuntimeError(f"{name}: dtype should be {'complex' if kind == 'complex' else 'floating point'} for "
                           f"{kind} inputs, but got "
                           f"{dtype.scalar_name}" if kind == "complex" or dtype.is_complex else
                           f"{name}: dtype should be floating point or complex, but got {dtype.scalar_name}")
    if not dtypes.can_cast(dtype_of(x), dtype) or dtype.itemsize < dtype_of(x).itemsize:
        raise RuntimeError(f"{name}: the dtype of the input ({dtype_of(x).scalar_name}) should be convertible without "
                           "narrowing to the "
                           f"specified dtype ({dtype.scalar_name})")
    return to(x, dtype)


@operator("vector_norm(Tensor x, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
          "Tensor",
          namespace="linalg", forms="function out", saves="x result", grad_name="LinalgVectorNormBackward0")
def vector_norm(x, ord=2, dim=None, keepdim=False, dtype=None):
    """The `ord`-norm of vectors along `dim`, by default of all elements. Source: PyTorch, torch.linalg.vector_norm."""
    value = norm_dtype(x, dtype, "linalg.vector_norm")
    axes = axes_of(value, dim)
    if value.size == 0 and (ord < 0 or ord == float("inf")) and any(value.shape[i] == 0 for i in axes):
        if dim is None:
            raise RuntimeError(f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the "
                               "operation does not have "
                               "an identity")
        at = next(i for i in axes if value.shape[i] == 0)
        raise RuntimeError(f"linalg.vector_norm cannot compute the {ord} norm on the dimension {at} because this "
                           "dimension is empty and "
                           "the operation does not have an identity")
    return vector_norm_values(value, order=float(ord), axes=axes, keepdims=keepdim)


# ------------------------------------------------------------------------------------------------ pairs
@operator("pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=False) -> Tensor",
          namespace="nn.functional", forms="function", aliases=("pairwise_distance",))
def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """p-norm of x1 - x2 + eps over the last dimension. Source: PyTorch, torch.nn.functional.pairwise_distance."""
    a, b = promote(x1, x2)
    broadcast_shapes(a.shape, b.shape)
    n = max(a.ndim, b.ndim)
    if is_integral(a):
        a, b = to(a, dtypes.get_default_dtype()), to(b, dtypes.get_default_dtype())
    return vector_norm_values(a - b + eps, order=float(p), axes=(n - 1,), keepdims=keepdim)


@operator("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", namespace="nn.functional",
          forms="function", aliases=("cosine_similarity",))
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """x1 · x2 / (|x1| |x2|) along `dim`, norms at least eps. Source: PyTorch, torch.nn.functional.cosine_similarity."""
    a, b = promote(x1, x2)
    if not dtype_of(a).is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {dtype_of(a).scalar_name}")
    shape = broadcast_shapes(a.shape, b.shape)
    a, b = expanded(a, shape), expanded(b, shape)
    axes = (wrap_dim(dim, len(shape)),) if shape else ()

    def unit(v):
        size = vector_norm_values(v, order=2.0, axes=axes, keepdims=True)
        low = np.maximum(size.numpy, size.dtype.type(eps))
        if size.requires_grad and (low != size.numpy).any():
            size = prims.graft(size, value_of(low))  # the bound changes the value, not the gradient
        elif (low != size.numpy).any():
            size = value_of(low)
        return v / size

    return prims.sum(unit(a) * unit(b), axes=axes, keepdims=False)


# ------------------------------------------------------------------------------------------------ all pairs
def _cdist_host(a, b, *, p):
    lead = a.shape[:-2]
    out = np.zeros(lead + (a.shape[-2], b.shape[-2]), a.dtype)
    if a.shape[-1] == 0 or out.size == 0:
        return out
    kind = {0: "hamming", 1: "cityblock", 2: "euclidean", np.inf: "chebyshev"}.get(p)
    for at in np.ndindex(*lead):
        if kind is None:
            out[at] = scipy_distance.cdist(a[at].astype(np.float64), b[at].astype(np.float64), "minkowski", p=p)
        else:
            out[at] = scipy_distance.cdist(a[at].astype(np.float64), b[at].astype(np.float64), kind)
            if p == 0:
                out[at] *= a.shape[-1]
    return out


def _chebyshev_vjp(g, out, a):
    """Each coordinate that is as far as the distance gets the whole gradient."""
    farthest = value_of((np.abs(a.numpy) == out.numpy[..., None]).astype(a.dtype))
    return prims.sgn(a) * shaped(g, g.shape + (1,)) * farthest


_chebyshev = prims.host_call("chebyshev", lambda a: np.abs(a).max(axis=-1, initial=0), vjp=[_chebyshev_vjp])


def _cdist_vjp(grads, outs, needs, a, b, *, p):
    g, out = grads[0], outs[0]
    if p == 0:
        return [prims.zeros_like(a), prims.zeros_like(b)]
    if p == 2:
        empty = out.numpy == 0
        w = _zero_where(empty, g / _safe(out, empty))
        last = w.ndim - 1
        da = a * prims.sum(w, axes=(last,), keepdims=True) - prims.matmul(w, b) if needs[0] else None
        if not needs[1]:
            return [da, None]
        turned = prims.transpose(w, axes=tuple(range(last - 1)) + (last, last - 1))
        return [da, b * prims.sum(turned, axes=(last,), keepdims=True) - prims.matmul(turned, a)]
    diff = shaped(a, a.shape[:-1] + (1, a.shape[-1])) - shaped(b, b.shape[:-2] + (1,) + b.shape[-2:])
    if p == np.inf:
        full = _chebyshev_vjp(g, out, diff)
    else:
        full = _norm_vjp(g, out, diff, order=p, axes=(diff.ndim - 1,), keepdims=False)
    return [prims.sum(full, axes=(full.ndim - 2,), keepdims=False) if needs[0] else None,
            prims.neg(prims.sum(full, axes=(full.ndim - 3,), keepdims=False)) if needs[1] else None]


_cdist = prims.host_call("cdist", _cdist_host, joint_vjp=_cdist_vjp)


@operator("cdist(Tensor x1, Tensor x2, float p=2.0, str? compute_mode='use_mm_for_euclid_dist_if_necessary') -> Tensor",
          forms="function", saves="x1 x2 result", grad_name="CdistBackward0")
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """p-norm distances of all pairs: (…, P, M), (…, R, M) → (…, P, R). Source: PyTorch, torch.cdist."""
    if compute_mode not in ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
                            "donot_use_mm_for_euclid_dist", None):
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for i, v in ((1, x1), (2, x2)):
        if not dtype_of(v).is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, X{i} got: {dtype_of(v).scalar_name}")
    for i, v in ((1, x1), (2, x2)):
        if v.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, X{i} got: {v.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    lead = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    a, b = promote(expanded(x1, lead + x1.shape[-2:]), expanded(x2, lead + x2.shape[-2:]))
    return _cdist(a, b, p=float(p))


@operator("pdist(Tensor input, float p=2.0) -> Tensor", namespace="nn.functional", forms="function", aliases=("pdist",),
          saves="input", grad_name="PdistBackward0")
def pdist(input, p=2.0):
    """p-norm distances of all pairs of rows, each pair once: (N, M) → (N(N-1)/2,).

    Source: PyTorch, torch.nn.functional.pdist.
    """
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not dtype_of(input).is_floating_point:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    if input.shape[0] < 2:
        return tied(value_of(np.zeros(0, input.dtype)), input)
    i, j = np.triu_indices(input.shape[0], 1)
    diff = prims.gather(input, value_of(i), axis=0) - prims.gather(input, value_of(j), axis=0)
    made = _chebyshev(diff) if p == np.inf else vector_norm_values(diff, order=float(p), axes=(1,), keepdims=False)
    return tied(made, input) if p == 0 else made
