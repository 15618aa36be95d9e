"""The fused forms of multi-head attention that PyTorch's own modules call in inference: compositions of plain operators."""

import math

from msadapter_hook.tensor import dtypes

from .registry import plain
from .tables import call


def _heads(x, num_heads):
    """(B, T, D) as (B, heads, T, D / heads)."""
    batch, steps, width = x.shape
    return call("transpose", x.reshape(batch, steps, num_heads, width // num_heads), 1, 2)


def _transform_bias_rescale_qkv(qkv, qkv_bias, num_heads):
    """Queries, keys and values (B, heads, T, D / heads) of a joint projection (B, T, 3D): bias added, queries divided by
    the square root of the width of a head. Source: PyTorch, torch._transform_bias_rescale_qkv."""
    if qkv.is_nested:  # each by itself, then padded with zeros
        parts = zip(*[_transform_bias_rescale_qkv(one.unsqueeze(0), qkv_bias, num_heads) for one in qkv.unbind()])
        longest = max(size[0] for size in qkv._sizes)
        return tuple([call("cat", [call("nn.functional.pad", x, (0, 0, 0, longest - x.shape[2])) for x in part]) for part in parts])
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
    if query.is_nested:
        return _nested_attention(query, key, value, mask, need_weights, average_attn_weights, embed_dim, num_head, qkv_weight, qkv_bias,
                                 proj_weight, proj_bias)
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


def _nested_attention(query, key, value, mask, need_weights, average, *weights):
    """Multi-head attention of nested tensors: each tensor by itself; the weights are padded with zeros."""
    if mask is not None:
        raise RuntimeError("NestedTensor with mask is not supported yet")
    outputs, seen = [], []
    for q, k, v in zip(query.unbind(), key.unbind(), value.unbind()):
        made, scores = _native_multi_head_attention(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), *weights, None, need_weights, average)
        outputs.append(made[0])
        seen.append(scores)
    output = type(query)._pack(outputs)
    if not need_weights:
        return output, None
    steps, source = max(s.shape[-2] for s in seen), max(s.shape[-1] for s in seen)
    padded = [call("nn.functional.pad", s, (0, source - s.shape[-1], 0, steps - s.shape[-2])) for s in seen]
    return output, call("cat", padded)


def _nested_tensor_from_mask(t, mask, mask_check=True):
    """The nested tensor of the elements of `t` (B, T, D) where `mask` (B, T) is True; in each row they stand in front.

    Source: PyTorch, torch._nested_tensor_from_mask. RuntimeError where they do not, unless not `mask_check`.
    """
    if mask.dtype is not dtypes.bool_ or mask.dim() != 2 or t.dim() != 3:
        raise RuntimeError("Expected t to be 3-D and mask to be a 2-D boolean tensor")
    if mask_check and not _nested_tensor_from_mask_left_aligned(t, mask):
        raise RuntimeError("Expected the mask to be left aligned without gaps")
    from .nested.strided import StridedNested

    return StridedNested._pack([row[:n] for row, n in zip(t, mask.sum(1).tolist())])


def _nested_tensor_from_mask_left_aligned(t, mask):
    """Whether True stands in front of False in each row. Source: PyTorch, torch._nested_tensor_from_mask_left_aligned."""
    return not bool((mask[:, 1:] & ~mask[:, :-1]).any())


for _f in (_transform_bias_rescale_qkv, _native_multi_head_attention, _nested_tensor_from_mask, _nested_tensor_from_mask_left_aligned):
    plain(_f)
