# MultiheadAttention (public in `modules.activation`, where its pickles look for it).
from ... import _native_multi_head_attention, empty, is_grad_enabled
from .. import functional as F
from .._functional_composites import _canonical_mask, _none_or_dtype
from ..init import constant_, xavier_normal_, xavier_uniform_
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module


class MultiheadAttention(Module):
    """Attention over several heads with learned projections. Source: PyTorch, torch.nn.MultiheadAttention.

    forward: query (L, N, E), key and value (S, N, ·) (batch first: N leads; without batch: no N) →
    (output like query, weights (N, L, S) or None).
    """

    __constants__ = ["batch_first"]

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        kind = {"device": device, "dtype": dtype}
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        # One packed weight where all three inputs have the same width, else three; the others are there as None.
        if self._qkv_same_embed_dim:
            self.in_proj_weight = Parameter(empty((3 * embed_dim, embed_dim), **kind))
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = Parameter(empty((embed_dim, embed_dim), **kind))
            self.k_proj_weight = Parameter(empty((embed_dim, self.kdim), **kind))
            self.v_proj_weight = Parameter(empty((embed_dim, self.vdim), **kind))
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = Parameter(empty(3 * embed_dim, **kind))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **kind)
        if add_bias_kv:
            self.bias_k = Parameter(empty((1, 1, embed_dim), **kind))
            self.bias_v = Parameter(empty((1, 1, embed_dim), **kind))
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self):
        for name in (
            ("in_proj_weight",)
            if self._qkv_same_embed_dim
            else (
                "q_proj_weight",
                "k_proj_weight",
                "v_proj_weight",
            )
        ):
            xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            constant_(self.in_proj_bias, 0.0)
            constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            xavier_normal_(self.bias_v)

    def __setstate__(self, state):
        # Before there were separate projections every module had the packed one.
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        if query.is_nested or key.is_nested or value.is_nested:
            return self._nested_forward(query, key, value, key_padding_mask, attn_mask, need_weights, average_attn_weights)
        key_padding_mask = _canonical_mask(
            key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
        )
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        batched = query.dim() == 3
        if self.batch_first and batched:
            # The same tensor stays the same, so that one product projects all three.
            turned = {id(t): t.transpose(1, 0) for t in (query, key, value)}
            query, key, value = turned[id(query)], turned[id(key)], turned[id(value)]
        separate = not self._qkv_same_embed_dim
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=separate,
            q_proj_weight=self.q_proj_weight if separate else None,
            k_proj_weight=self.k_proj_weight if separate else None,
            v_proj_weight=self.v_proj_weight if separate else None,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        if self.batch_first and batched:
            output = output.transpose(1, 0)
        return output, weights

    def _nested_forward(self, query, key, value, key_padding_mask, attn_mask, need_weights, average_attn_weights):
        """Attention within each tensor of a nested one, in evaluation only. AssertionError in PyTorch's words elsewhere."""
        weights = (query, self.in_proj_weight, self.in_proj_bias, self.out_proj.weight, self.out_proj.bias)
        for hinders, why in (
            (query.dim() != 3, f"input not batched; expected query.dim() of 3 but got {query.dim()}"),
            (query is not key or key is not value,
             "non-self attention was used (query, key, and value are not the same Tensor)"),
            (self.training, "training is enabled"),
            (self.num_heads % 2 != 0, "self.num_heads is not even"),
            (not self.batch_first, "batch_first was not True"),
            (self.bias_k is not None, "self.bias_k was not None"),
            (self.bias_v is not None, "self.bias_v was not None"),
            (self.add_zero_attn, "add_zero_attn was enabled"),
            (not self._qkv_same_embed_dim, "_qkv_same_embed_dim was not True"),
            (self.in_proj_bias is None, "in_proj_bias was None"),
            (key_padding_mask is not None or attn_mask is not None,
             "supplying both src_key_padding_mask and src_mask at the same time is not supported with NestedTensor input"),
            (is_grad_enabled() and any(t is not None and t.requires_grad for t in weights),
             "grad is enabled and at least one of query or the input/output projection weights or biases requires_grad"),
        ):
            if hinders:
                raise AssertionError(
                    f"MultiheadAttention does not support NestedTensor outside of its fast path. The fast path was not hit because {why}"
                )
        return _native_multi_head_attention(
            query, key, value, self.embed_dim, self.num_heads, *weights[1:], None, need_weights, average_attn_weights
        )

    def merge_masks(self, attn_mask, key_padding_mask, query):
        """(mask, kind) of both masks together: kind 1 padding alone, 2 both as (N, heads, L, S), None neither."""
        if key_padding_mask is None and attn_mask is None:
            return None, None
        if attn_mask is None:
            return key_padding_mask, 1
        batch, length = query.shape[:2]
        kind = 2
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return merged, kind


# Pickles and prints name the class by the module that shows it.
MultiheadAttention.__module__ = __package__ + ".activation"
