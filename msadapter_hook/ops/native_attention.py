"""The fused forms of multi-head attention that PyTorch's own modules call in inference: compositions of plain operators."""

import math

from msadapter_hook.tensor import dtypes

from .registry import call, plain


def _heads(x, num_heads):
    """(B, T, D) as (B, heads, T, D / heads)."""
    batch, steps, width = x.shape
    return call("transpose", x.reshape(batch, steps, num_heads, width // num_heads), 1, 2)


def _transform_bias_rescale_qkv(qkv, qkv_bias, num_heads):
    """Queries, keys and values (B, heads, T, D / heads) of a joint projection (B, T, 3D): bias added, queries divided by
    the square root of the width of a head. Source: PyTorch, torch._transform_bias_rescale_qkv."""
    width = qkv.shape[-1] // 3
    if width % num_heads:
        raise RuntimeError(f"the width {width} is not a multiple of the number of heads {num_heads}")
    q, k, v = [_heads(part, num_heads).contiguous() for part in call("split", qkv + qkv_bias, width, -1)]
    return q / math.sqrt(width // num_heads), k, v


def _mask_of_scores(mask, mask_type, query, key, num_heads):
    """`mask` (True: left out) in a shape that goes with scores (B, heads, T, S). RuntimeError in PyTorch's words."""
    batch, steps, source = query.shape[0], query.shape[1], key.shape[1]
    if mask_type is None:
        raise RuntimeError("Mask Type should be defined")
    expected = {0: (steps, source), 1: (batch, source), 2: (batch, num_heads, steps, source)}.get(mask_type)
    if expected is None:
        raise RuntimeError("Mask Type should be 0 (src_mask), 1 (src_key_padding_mask), or 2 (default_mask)")
    if tuple(mask.shape) != expected:
        names = {0: "(L, L)", 1: "(B, L)", 2: "input shape"}
        link = "match" if mask_type == 2 else "be"
        raise RuntimeError(f"For mask_type == {mask_type} mask shape should {link} {names[mask_type]}")
    return mask.reshape(batch, 1, 1, source) if mask_type == 1 else mask


def _native_multi_head_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask=None,
                                 need_weights=True, average_attn_weights=True, mask_type=None):
    """(output (B, T, D), weights or None) of multi-head attention of query (B, T, D), key and value (B, S, D).

    `mask` is True where a score is left out: mask_type 0 for (T, S), 1 for a padding of keys (B, S), 2 for (B, heads, T, S).
    Source: PyTorch, torch._native_multi_head_attention.
    """
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() != 3:
            raise RuntimeError(f"expected 3-D `{name}`, got {x.dim()}-D tensor")
    width = query.shape[2]
    if embed_dim != width:
        raise RuntimeError(f"passed-in embed_dim {embed_dim} didn't match last dim of query {width}")
    if qkv_weight.dim() != 2 or qkv_weight.shape[0] != 3 * width:
        raise RuntimeError("expected `qkv_weight` first dim to be 3x embed_dim")
    if qkv_bias.dim() != 1 or qkv_bias.shape[0] != 3 * width:
        raise RuntimeError("expected `qkv_bias` first dim and first dim of query to be equal")
    if width % num_head:
        raise RuntimeError("`embed_dim` must divide evenly by `num_heads`")
    weights, biases = call("split", qkv_weight, width, 0), call("split", qkv_bias, width, 0)
    q, k, v = [_heads(call("nn.functional.linear", x, w, b), num_head)
               for x, w, b in zip((query, key, value), weights, biases)]
    scores = call("matmul", q / math.sqrt(width // num_head), call("transpose", k, -2, -1))
    if mask is not None:
        if mask.dtype is not dtypes.bool_:
            mask = mask.bool()
        scores = call("masked_fill", scores, _mask_of_scores(mask, mask_type, query, key, num_head), -math.inf)
    attention = call("softmax", scores, -1)
    joined = call("transpose", call("matmul", attention, v), 1, 2).reshape(query.shape)
    out = call("nn.functional.linear", joined, proj_weight, proj_bias)
    if not need_weights:
        return out, None
    return out, attention.mean(1) if average_attn_weights else attention


for _f in (_transform_bias_rescale_qkv, _native_multi_head_attention):
    plain(_f)
