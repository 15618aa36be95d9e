"""Fused attention and bags of embeddings at the root of torch, against their plain forms; global hook tables."""

from collections import OrderedDict

import pytest
import torch
from torch import nn


@pytest.fixture
def parts():
    torch.manual_seed(0)
    mha = nn.MultiheadAttention(8, 2, batch_first=True)
    nn.init.normal_(mha.in_proj_bias)
    return mha, torch.randn(3, 5, 8)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("padding", [True, False])
def test_native_multi_head_attention_equals_the_module(parts, average, padding):
    mha, x = parts
    mask = torch.zeros(3, 5, dtype=torch.bool)
    mask[0, -2:] = True
    mask = mask if padding else None
    want, weights = mha(x, x, x, key_padding_mask=mask, average_attn_weights=average)
    got, found = torch._native_multi_head_attention(
        x, x, x, 8, 2, mha.in_proj_weight, mha.in_proj_bias, mha.out_proj.weight, mha.out_proj.bias, mask,
        average_attn_weights=average, mask_type=1)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(found, weights)


def test_native_multi_head_attention_checks_its_arguments(parts):
    mha, x = parts
    rest = (mha.in_proj_weight, mha.in_proj_bias, mha.out_proj.weight, mha.out_proj.bias)
    assert torch._native_multi_head_attention(x, x, x, 8, 2, *rest, need_weights=False)[1] is None
    with pytest.raises(RuntimeError, match="expected 3-D `query`, got 2-D tensor"):
        torch._native_multi_head_attention(x[0], x, x, 8, 2, *rest)
    with pytest.raises(RuntimeError, match="must divide evenly"):
        torch._native_multi_head_attention(x, x, x, 8, 3, *rest)
    with pytest.raises(RuntimeError, match="Mask Type should be defined"):
        torch._native_multi_head_attention(x, x, x, 8, 2, *rest, torch.zeros(3, 5, dtype=torch.bool))
    with pytest.raises(RuntimeError, match=r"mask shape should be \(B, L\)"):
        torch._native_multi_head_attention(x, x, x, 8, 2, *rest, torch.zeros(5, 5, dtype=torch.bool), mask_type=1)


def test_transform_bias_rescale_qkv():
    joint, bias = torch.arange(24.0).view(1, 2, 12), torch.ones(12)
    q, k, v = torch._transform_bias_rescale_qkv(joint, bias, 2)
    assert q.shape == (1, 2, 2, 2)
    torch.testing.assert_close(q, ((joint + bias)[..., :4] / 2**0.5).view(1, 2, 2, 2).transpose(1, 2))
    torch.testing.assert_close(v, (joint + bias)[..., 8:].view(1, 2, 2, 2).transpose(1, 2))


def test_embedding_bag_of_the_root():
    w, i, o = torch.arange(12.0).view(4, 3), torch.tensor([0, 1, 3, 3, 2]), torch.tensor([0, 2, 2])
    out, bags, sizes, largest = torch.embedding_bag(w, i, o, False, 2)
    assert out.tolist() == [[3, 4, 5], [0, 0, 0], [9, 10, 11]]
    assert bags.tolist() == [0, 0, 2, 2, 2] and sizes.tolist() == [2, 0, 3]
    assert largest.tolist() == [[1, 1, 1], [0, 0, 0], [3, 3, 3]]
    out, bags, sizes, largest = torch.embedding_bag(w, i, o)
    assert out.tolist() == [[3, 5, 7], [0, 0, 0], [24, 27, 30]] and bags.tolist() == [] and sizes.tolist() == [0, 0, 0]


def test_embedding_bag_errors():
    w, bag = torch.ones(4, 3), torch.nn.functional.embedding_bag
    with pytest.raises(RuntimeError, match="Expected idx >= 0 && idx < num_embeddings but found idx to be 5"):
        bag(torch.tensor([[5]]), w, mode="max")
    with pytest.raises(RuntimeError, match="padding_idx must be within the number of embeddings, -4 through 3, but got 8"):
        bag(torch.tensor([[1]]), w, padding_idx=8)
    with pytest.raises(RuntimeError, match="to have the same type as tensor for argument #1 'per_sample_weights'"):
        bag(torch.tensor([[1]]), w, mode="sum", per_sample_weights=torch.ones(1, 1, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="offsets has to be a 1D Tensor"):
        torch.embedding_bag(w, torch.tensor([1]), torch.zeros(1, 1, dtype=torch.int64))


def test_largest_of_empty_bags_has_a_gradient():
    w = torch.ones(4, 3, requires_grad=True)
    torch.nn.functional.embedding_bag(torch.tensor([], dtype=torch.int64), w, torch.tensor([0, 0]), mode="max").sum().backward()
    assert w.grad.tolist() == [[0.0] * 3] * 4


def test_assigning_a_global_hook_table_forgets_the_hooks():
    seen = []
    nn.modules.module.register_module_forward_hook(lambda *args: seen.append(1))
    nn.modules.module.register_module_forward_pre_hook(lambda *args: seen.append(2))
    layer = nn.Linear(1, 1)
    layer(torch.ones(1))
    assert sorted(seen) == [1, 2]
    nn.modules.module._global_forward_hooks = OrderedDict()
    nn.modules.module._global_forward_pre_hooks = OrderedDict()
    layer(torch.ones(1))
    assert sorted(seen) == [1, 2]
    handle = nn.modules.module.register_module_forward_hook(lambda *args: seen.append(3))
    layer(torch.ones(1))
    handle.remove()
    layer(torch.ones(1))
    assert seen.count(3) == 1


def test_kernels_of_attention_are_kept_as_switches():
    cuda = torch.backends.cuda
    assert cuda.flash_sdp_enabled()
    with pytest.warns(FutureWarning), cuda.sdp_kernel(enable_flash=False):
        assert not cuda.flash_sdp_enabled() and cuda.math_sdp_enabled()
    cuda.enable_math_sdp(False)
    assert not cuda.math_sdp_enabled()
    cuda.enable_math_sdp(True)


def test_dense_of_a_dense_tensor_is_itself():
    x = torch.ones(2)
    assert x.to_dense() is x and x.to_dense(torch.float64).dtype is torch.float64
