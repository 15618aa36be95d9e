# Functionals that are compositions of other operators: attention over several heads, Gumbel softmax, linear cross
# entropy. `nn.functional` takes its names from here; the operators come from `nn.functional` and the root, late.
import math
import warnings

from .. import Tensor, baddbmm, bmm, cat, empty_like, zeros, zeros_like
from .. import bool as _bool

__all__ = [
    "_canonical_mask", "_in_projection", "_in_projection_packed", "_none_or_dtype", "gumbel_softmax",
    "linear_cross_entropy", "multi_head_attention_forward",
]  # fmt: skip


def _functional():
    # nn.functional imports this module while it is being loaded.
    from . import functional

    return functional


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A mask as one that is added to the scores: True becomes -inf. AssertionError for an integer mask."""
    if mask is None:
        return None
    if mask.dtype != _bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=4,
        )
    if mask.is_floating_point():
        return mask
    return zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _none_or_dtype(mask):
    if mask is None:
        return None
    if isinstance(mask, Tensor):
        return mask.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether query, key and value have a batch dimension; AssertionError when they do not fit each other."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    batched = query.dim() == 3
    word, dims = ("batched (3-D)", 3) if batched else ("unbatched (2-D)", 2)
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"For {word} `query`, expected `key` and `value` to be {dims}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != dims - 1:
        raise AssertionError(
            f"For {word} `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.dim() not in (2, 3):
        raise AssertionError(
            f"For {word} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor "
            "instead"
        )
    if not batched and attn_mask is not None and attn_mask.dim() == 3:
        expected = (num_heads, query.shape[0], key.shape[0])
        if tuple(attn_mask.shape) != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return batched


def _in_projection_packed(q, k, v, w, b=None):
    """Projections of q, k, v by the three thirds of one weight (3E, E); one product where they are the same tensor."""
    F = _functional()
    width = q.size(-1)
    if k is v:
        if q is k:
            projected = F.linear(q, w, b)
            return tuple(projected.narrow(-1, i * width, width) for i in range(3))
        w_q, w_kv = w.split([width, width * 2])
        b_q, b_kv = (None, None) if b is None else b.split([width, width * 2])
        kv = F.linear(k, w_kv, b_kv)
        return F.linear(q, w_q, b_q), kv.narrow(-1, 0, width), kv.narrow(-1, width, width)
    weights = w.chunk(3)
    biases = (None, None, None) if b is None else b.chunk(3)
    return tuple(F.linear(x, weight, bias) for x, weight, bias in zip((q, k, v), weights, biases))


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    """Projections of q (*, Eq), k (*, Ek), v (*, Ev) by weights (Eq, Eq), (Eq, Ek), (Eq, Ev)."""
    F = _functional()
    width = q.size(-1)
    for name, weight, x in (("query", w_q, q), ("key", w_k, k), ("value", w_v, v)):
        expected = (width, x.size(-1))
        if tuple(weight.shape) != expected:
            raise AssertionError(f"expecting {name} weights shape of {expected}, but got {weight.shape}")
    return F.linear(q, w_q, b_q), F.linear(k, w_k, b_k), F.linear(v, w_v, b_v)


def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """Attention over several heads: query (L, N, E) or (L, E), key and value (S, N, ·) or (S, ·).

    Gives (output like query, weights (N, L, S) or (N, num_heads, L, S) or None). Masks are boolean (True: not seen)
    or added to the scores. Source: PyTorch, torch.nn.functional.multi_head_attention_forward.
    """
    F = _functional()
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        # The same tensor stays the same, so that the packed projection still sees it.
        one = {id(t): t.unsqueeze(1) for t in (query, key, value)}
        query, key, value = one[id(query)], one[id(key)], one[id(value)]
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)

    target_len, batch, embed_dim = query.shape
    source_len = key.shape[0]
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        # The causal hint replaces the mask where nothing else masks.
        attn_mask = None
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        if key_padding_mask is not None:
            is_causal = False

    if embed_dim != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}")
    head_dim = embed_dim // num_heads
    if head_dim * num_heads != embed_dim:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")

    if use_separate_proj_weight:
        for name, weight in (("q", q_proj_weight), ("k", k_proj_weight), ("v", v_proj_weight)):
            if weight is None:
                raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
        biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = _in_projection(query, key, value, q_proj_weight, k_proj_weight, v_proj_weight, *biases)
    else:
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)

    if attn_mask is not None:
        if attn_mask.dim() == 2:
            expected = (target_len, source_len)
            if tuple(attn_mask.shape) != expected:
                raise RuntimeError(f"The shape of the 2D attn_mask is {attn_mask.shape}, but should be {expected}.")
            attn_mask = attn_mask.unsqueeze(0)
        else:
            expected = (batch * num_heads, target_len, source_len)
            if tuple(attn_mask.shape) != expected:
                raise RuntimeError(f"The shape of the 3D attn_mask is {attn_mask.shape}, but should be {expected}.")

    if (bias_k is None) != (bias_v is None):
        raise AssertionError("bias_k and bias_v must be given together")
    if bias_k is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k = cat([k, bias_k.repeat(1, batch, 1)])
        v = cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask = None if attn_mask is None else F.pad(attn_mask, (0, 1))
        key_padding_mask = None if key_padding_mask is None else F.pad(key_padding_mask, (0, 1))

    def heads(x):
        return x.contiguous().view(x.shape[0], batch * num_heads, head_dim).transpose(0, 1)

    def static(x, name):
        if x.size(0) != batch * num_heads:
            raise AssertionError(f"expecting {name}.size(0) of {batch * num_heads}, but got {x.size(0)}")
        if x.size(2) != head_dim:
            raise AssertionError(f"expecting {name}.size(2) of {head_dim}, but got {x.size(2)}")
        return x

    q = heads(q)
    k = heads(k) if static_k is None else static(static_k, "static_k")
    v = heads(v) if static_v is None else static(static_v, "static_v")
    if add_zero_attn:
        zero = zeros((batch * num_heads, 1, head_dim), dtype=k.dtype, device=k.device)
        k = cat([k, zero], dim=1)
        v = cat([v, zero], dim=1)
        attn_mask = None if attn_mask is None else F.pad(attn_mask, (0, 1))
        key_padding_mask = None if key_padding_mask is None else F.pad(key_padding_mask, (0, 1))
    source_len = k.size(1)

    if key_padding_mask is not None:
        for dim, size in enumerate((batch, source_len)):
            if key_padding_mask.shape[dim] != size:
                raise AssertionError(
                    f"Expected key_padded_mask.shape[{dim}] to be {size}, but got {key_padding_mask.shape[dim]}"
                )
        padding = key_padding_mask.view(batch, 1, 1, source_len).expand(-1, num_heads, -1, -1)
        padding = padding.reshape(batch * num_heads, 1, source_len)
        attn_mask = padding if attn_mask is None else attn_mask + padding

    dropout_p = dropout_p if training else 0.0
    if need_weights:
        scaled = q * math.sqrt(1.0 / float(head_dim))
        transposed = k.transpose(-2, -1)
        scores = bmm(scaled, transposed) if attn_mask is None else baddbmm(attn_mask, scaled, transposed)
        weights = F.softmax(scores, dim=-1)
        if dropout_p > 0.0:
            weights = F.dropout(weights, p=dropout_p)
        output = bmm(weights, v).transpose(0, 1).contiguous().view(target_len * batch, embed_dim)
        output = F.linear(output, out_proj_weight, out_proj_bias)
        output = output.view(target_len, batch, output.size(1))
        weights = weights.view(batch, num_heads, target_len, source_len)
        if average_attn_weights:
            weights = weights.mean(dim=1)
        if not batched:
            output, weights = output.squeeze(1), weights.squeeze(0)
        return output, weights

    if attn_mask is not None:
        if attn_mask.size(0) == 1 and attn_mask.dim() == 3:
            attn_mask = attn_mask.unsqueeze(0)
        else:
            attn_mask = attn_mask.view(batch, num_heads, -1, source_len)
    q, k, v = (x.view(batch, num_heads, -1, head_dim) for x in (q, k, v))
    output = F.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
    output = output.permute(2, 0, 1, 3).contiguous().view(batch * target_len, embed_dim)
    output = F.linear(output, out_proj_weight, out_proj_bias).view(target_len, batch, -1)
    return (output if batched else output.squeeze(1)), None


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """Sample from the Gumbel-softmax distribution of `logits`, shape as the input.

    `hard`: one-hot, with the gradient of the soft sample. Source: PyTorch, torch.nn.functional.gumbel_softmax.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    gumbels = -empty_like(logits).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = zeros_like(logits).scatter_(dim, index, 1.0)
    # The value is one-hot; the history is that of the soft sample.
    return one_hot - soft.detach() + soft


def linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction="mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
):
    """Cross entropy of `input` (in_features) or (N, in_features) under logits `linear_weight` (C, *d, in_features).

    `options` speak of memory only; the logits are computed as a whole. Source: PyTorch,
    torch.nn.functional.linear_cross_entropy.
    """
    F = _functional()
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    classes, *extra, features = linear_weight.shape
    if input.shape[-1] != features:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {features}, respectively"
        )
    if extra and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = F.linear(input, linear_weight.reshape(-1, features), bias)
    logits = logits.reshape((*input.shape[:-1], classes, *extra))
    if ignore_index is None:
        ignore_index = -100
    return F.cross_entropy(
        logits,
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
