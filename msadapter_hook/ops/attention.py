"""Scaled dot product attention."""

import math

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import value_of

from ._contract import expanded, product, shaped
from .promotion import dtype_of, to
from .refusals import c_name
from .registry import composite, operator
from .tables import call

_masks = {}


def causal_mask(rows, columns, dtype):
    """(rows, columns) of 0 on and below the diagonal and minus infinity above; kept."""
    key = (rows, columns, dtype)
    found = _masks.get(key)
    if found is None:
        if len(_masks) > 64:
            _masks.clear()
        made = np.zeros((rows, columns), dtype)
        made[np.triu_indices(rows, 1, columns)] = -np.inf
        found = _masks[key] = value_of(made)
    return found


def _check(query, key, value, attn_mask, is_causal):
    if query.ndim < 2 or key.ndim < 2 or value.ndim < 2:
        raise RuntimeError("Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
                           f"{query.ndim} key.dim: "
                           f"{key.ndim} and value.dim: {value.ndim} instead.")
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError("Expected query, key, and value to have the same dtype, but got query.dtype: "
                           f"{c_name(query)} key.dtype: "
                           f"{c_name(key)} and value.dtype: {c_name(value)} instead.")
    if attn_mask is not None:
        if attn_mask.dtype.kind != "b" and attn_mask.dtype != query.dtype and attn_mask.dtype != np.float32:
            kind = c_name(attn_mask)
            raise RuntimeError("Expected attn_mask dtype to be bool or float or to match query dtype, but got "
                               "attn_mask.dtype: "
                               f"{kind} and  query.dtype: {c_name(query)} instead.")
        if is_causal:
            raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when "
                               "is_causal=True")


def _repeated(query, v):
    """Heads of key or value repeated to as many as the query has."""
    if query.ndim < 3 or v.ndim < 3 or query.shape[-3] == v.shape[-3]:
        return v
    if v.shape[-3] == 0 or query.shape[-3] % v.shape[-3]:
        raise RuntimeError("Number of heads in key and value must divide the number of heads in ")
    n = query.shape[-3] // v.shape[-3]
    lead = v.shape[:-2]
    wide = expanded(shaped(v, lead + (1,) + v.shape[-2:]), lead + (n,) + v.shape[-2:])
    return shaped(wide, lead[:-1] + (lead[-1] * n,) + v.shape[-2:])


_FUSED = "ScaledDotProductFlashAttentionForCpuBackward0"


def _fused(query, attn_mask, dropout_p):
    """Whether PyTorch computes this in one step, and its graph has one node."""
    return query.ndim == 4 and dropout_p == 0.0 and (attn_mask is None or not attn_mask.requires_grad)


@operator("_attention_weights(Tensor query, Tensor key, Tensor? attn_mask, bool is_causal, float? scale, bool "
          "enable_gqa) -> Tensor",
          forms="function", grad_name="SafeSoftmaxBackward0")
def _attention_weights(query, key, attn_mask, is_causal, scale, enable_gqa):
    """softmax(query @ key.T * scale + mask); a row that sees nothing is 0."""
    if enable_gqa:
        key = _repeated(query, key)
    if query.shape[-1] != key.shape[-1]:
        n = math.prod(query.shape[:-2])
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{n}, {query.shape[-1]}] "
                           "but got: "
                           f"[{n}, {key.shape[-1]}].")
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None and query.shape[-1] else scale or 0.0
    scores = product(query * scale, key, transpose_b=True)
    blind = None
    if is_causal:
        scores = scores + causal_mask(scores.shape[-2], scores.shape[-1], scores.dtype)
    elif attn_mask is not None:
        if attn_mask.dtype.kind == "b":
            attn_mask = value_of(np.where(attn_mask.numpy, 0, -np.inf).astype(scores.dtype))
        hidden = np.isneginf(attn_mask.numpy.astype(np.float32)).all(-1, keepdims=True)
        if hidden.any():
            blind = hidden
            attn_mask = prims.where(value_of(hidden), value_of(np.zeros((), attn_mask.dtype)), attn_mask)
        scores = scores + to(attn_mask, dtype_of(scores))
    weights = prims.softmax(scores, axis=scores.ndim - 1)
    if blind is not None:
        weights = weights * value_of((~blind).astype(weights.dtype))
    return weights


@operator("_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool is_causal, float? scale) -> Tensor",
          forms="function",
          grad_name=lambda result, given: _FUSED if _fused(given("query"), given("attn_mask"), 0.0) else "UnsafeViewBackward0")
def _attention(query, key, value, attn_mask, is_causal, scale):
    """Attention without dropout in one step, for what `_in_one_step` lets through."""
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if is_causal:
        attn_mask = causal_mask(query.shape[-2], key.shape[-2], query.dtype)
    elif attn_mask is None:
        return prims.attention(query, key, value, scale=scale)
    elif attn_mask.dtype.kind == "b":
        attn_mask = value_of(np.where(attn_mask.numpy, 0, -np.inf).astype(query.dtype))
    return prims.attention(query, key, value, attn_mask, scale=scale)


def _in_one_step(query, key, value, attn_mask):
    """Whether the primitive takes this case: host kernels are preferred, only the mask broadcasts, every row sees something."""
    if not prims.PREFER_HOST or query.dtype.name not in ("float32", "float64") or query.ndim < 3:
        return False
    if query.shape[:-2] != key.shape[:-2] or key.shape[:-1] != value.shape[:-1] or query.shape[-1] != key.shape[-1]:
        return False
    if 0 in query.shape or 0 in key.shape:
        return False
    if attn_mask is None:
        return True
    if attn_mask.abstract:  # whether a row sees nothing is in the data
        return False
    scores = (*query.shape[:-1], key.shape[-2])
    if attn_mask.ndim > len(scores) or any(n not in (1, m) for n, m in zip(attn_mask.shape[::-1], scores[::-1])):
        return False
    if attn_mask.dtype.kind == "b":
        return bool(attn_mask.numpy.any(-1).all())
    return attn_mask.dtype == query.dtype and not np.isneginf(attn_mask.numpy).all(-1).any()


def _name_of_values(result, given):
    return _FUSED if given("fused") else "MmBackward0" if result.ndim == 2 else "UnsafeViewBackward0"


@operator("_attention_values(Tensor weights, Tensor query, Tensor value, bool enable_gqa, bool fused) -> Tensor", forms="function",
          grad_name=_name_of_values)
def _attention_values(weights, query, value, enable_gqa, fused):
    return product(weights, _repeated(query, value) if enable_gqa else value)


@composite("scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
           "dropout_p=0.0, "
           "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor", namespace="nn.functional",
           forms="function")
def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False):
    """softmax(query @ key.T * scale + mask) @ value, with dropout of the weights.

    Shapes (…, L, E), (…, S, E), (…, S, Ev) → (…, L, Ev); the mask is boolean (True takes part) or added.
    Source: PyTorch, torch.nn.functional.scaled_dot_product_attention.
    """
    _check(query.value, key.value, value.value, None if attn_mask is None else attn_mask.value, is_causal)
    if dropout_p == 0.0 and _in_one_step(query.value, key.value, value.value, None if attn_mask is None else attn_mask.value):
        return call("_attention", query, key, value, attn_mask, is_causal, scale)
    weights = call("_attention_weights", query, key, attn_mask, is_causal, scale, enable_gqa)
    fused = _fused(query, attn_mask, dropout_p)
    if dropout_p > 0.0:
        weights = call("nn.functional.dropout", weights, dropout_p, True)
    elif fused and weights.requires_grad:
        weights.value.node.operator = None  # a step inside of the one that users see
    return call("_attention_values", weights, query, value, enable_gqa, fused)
