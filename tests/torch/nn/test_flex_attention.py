"""Attention with changed scores and block masks; the numbers of blocks are PyTorch's."""

import pytest
import torch
from torch.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    or_masks,
)


def causal(b, h, q, kv):
    return q >= kv


@pytest.fixture
def qkv():
    torch.manual_seed(0)
    return [torch.randn(2, 2, 16, 8, requires_grad=True) for _ in range(3)]


def test_without_changes_it_is_attention(qkv):
    expected = torch.nn.functional.scaled_dot_product_attention(*qkv)
    assert torch.allclose(flex_attention(*qkv), expected, atol=1e-6)


def test_a_block_mask_is_a_mask_in_value_and_gradient(qkv):
    mask = create_block_mask(causal, None, None, 16, 16, device="cpu", BLOCK_SIZE=4)
    got = flex_attention(*qkv, block_mask=mask)
    expected = torch.nn.functional.scaled_dot_product_attention(*qkv, is_causal=True)
    assert torch.allclose(got, expected, atol=1e-6)
    for a, b in zip(torch.autograd.grad(got.square().sum(), qkv), torch.autograd.grad(expected.square().sum(), qkv)):
        assert torch.allclose(a, b, atol=1e-5)


def test_scores_are_changed_one_by_one(qkv):
    bias = torch.tensor([0.5, -1.0], requires_grad=True)
    q, k, v = qkv
    got = flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + bias[h] * (i - j))
    distance = torch.arange(16)[:, None] - torch.arange(16)
    weights = (q @ k.mT / 8**0.5 + bias[:, None, None] * distance).softmax(-1)
    assert torch.allclose(got, weights @ v, atol=1e-5)
    got.sum().backward()
    assert bias.grad.abs().sum() > 0


def test_blocks_of_a_causal_mask():
    mask = create_block_mask(causal, None, None, 300, 300, device="cpu")
    assert mask.kv_num_blocks.tolist() == [[[1, 1, 3]]]
    assert mask.kv_indices.tolist() == [[[[0, 1, 2], [1, 0, 2], [0, 1, 2]]]]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1, 0]]]
    assert mask.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]]
    assert mask.shape == (1, 1, 300, 300) and mask.BLOCK_SIZE == (128, 128)
    assert f"{mask.sparsity():.2f}" == "-9.23"
    assert str(mask).splitlines()[1:5] == ["(0, 0)", "██    ", "████  ", "██████"]


def test_masks_join():
    document = torch.tensor([[0, 0, 1, 1]])

    def same(b, h, q, kv):
        return document[b, q] == document[b, kv]

    both = create_mask(and_masks(causal, same), 1, None, 4, 4)
    assert both[0, 0].int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]
    assert create_mask(or_masks(causal, same), 1, None, 4, 4)[0, 0].sum() == 12


def test_a_row_that_sees_nothing_is_zero(qkv):
    mask = create_block_mask(lambda b, h, q, kv: q > 3, None, None, 16, 16, BLOCK_SIZE=4)
    out, aux = flex_attention(*qkv, block_mask=mask, return_aux=AuxRequest(lse=True))
    assert (out[:, :, :4] == 0).all() and (aux.lse[:, :, :4] == -torch.inf).all() and aux.max_scores is None


def test_grouped_queries_and_refusals(qkv):
    q, k, v = qkv
    shared = k[:, :1], v[:, :1]
    assert torch.allclose(flex_attention(q, *shared, enable_gqa=True), flex_attention(q, *[t.expand_as(q) for t in shared]))
    with pytest.raises(ValueError, match="enable_gqa=True"):
        flex_attention(q, k[:, :1], v[:, :1])
    with pytest.raises(ValueError, match="same embedding dimension"):
        flex_attention(q, k[..., :4], v)
    assert isinstance(create_block_mask(causal, 2, 2, 16, 16, BLOCK_SIZE=8)[0], BlockMask)
