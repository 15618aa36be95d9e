"""embedding_bag where a last offset is less than the input is long, and embedding with max_norm. Right values: PyTorch 2.13."""

import pytest
import torch
import torch.nn.functional as F

INDICES, LAST = torch.tensor([0, 1, 2, 3]), torch.tensor([0, 2, 3])


@pytest.mark.parametrize("mode, dtype, padding, expected", [
    ("sum", torch.float32, None, [[3, 5, 7], [6, 7, 8]]), ("sum", torch.float32, 1, [[0, 1, 2], [15, 17, 19]]),
    ("sum", torch.float64, None, [[3, 5, 7], [15, 17, 19]]), ("mean", torch.float32, None, [[1.5, 2.5, 3.5], [3, 3.5, 4]]),
    ("mean", torch.float64, None, [[1.5, 2.5, 3.5], [7.5, 8.5, 9.5]]), ("mean", torch.float32, 1, [[0, 1, 2], [7.5, 8.5, 9.5]]),
    ("max", torch.float32, None, [[3, 4, 5], [9, 10, 11]]), ("sum", torch.bfloat16, None, [[3, 5, 7], [6, 7, 8]])])
def test_last_offset_less_than_the_length(mode, dtype, padding, expected):
    w = torch.arange(18.0).view(6, 3).to(dtype)
    made = F.embedding_bag(INDICES, w, LAST, mode=mode, padding_idx=padding, include_last_offset=True)
    assert torch.equal(made, torch.tensor(expected, dtype=dtype))


def test_gradients_with_a_last_offset_less_than_the_length():
    w = torch.arange(18.0).view(6, 3).requires_grad_()
    F.embedding_bag(INDICES, w, LAST, mode="mean", include_last_offset=True).sum().backward()
    assert w.grad[:, 0].tolist() == [0.5, 0.5, 0.5, 0.5, 0, 0]
    w.grad = None
    weights = torch.arange(4.0).requires_grad_()
    made = F.embedding_bag(INDICES, w, LAST, mode="sum", include_last_offset=True, per_sample_weights=weights)
    assert made.tolist() == [[3, 4, 5], [12, 14, 16]]
    made.sum().backward()
    assert w.grad[:, 0].tolist() == [0, 1, 2, 0, 0, 0] and weights.grad[:3].tolist() == [3, 12, 21]


def test_empty_bags_of_the_largest_are_positive_zero():
    w = torch.full((2, 2), -1.0).requires_grad_()
    made = F.embedding_bag(torch.tensor([0]), w, torch.tensor([0, 1]), mode="max")
    assert not torch.signbit(made[1]).any()


def test_refusals_of_bags():
    w = torch.zeros(6, 3)
    with pytest.raises(RuntimeError, match=r"Index 1 of input takes value 7 which is not in the valid range \[0, 6\)"):
        F.embedding_bag(torch.tensor([0, 7]), w, torch.tensor([0]))
    with pytest.raises(RuntimeError, match="Expected idx >= 0 && idx < num_embeddings but found idx to be 7"):
        F.embedding_bag(torch.tensor([0, 7]), w.double(), torch.tensor([0]))
    with pytest.raises(RuntimeError):
        F.embedding_bag(torch.tensor([0, 1, 2, 3]), w, torch.tensor([0, 3, 2]))


def test_max_norm_leaves_the_tangent():
    w = torch.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
    value, tangent = torch.func.jvp(lambda x: F.embedding(torch.tensor([0, 1, 1]), x, max_norm=1.0), (w,), (torch.ones(3, 2),))
    torch.testing.assert_close(value, torch.tensor([[0.6, 0.8], [0.3, 0.4], [0.3, 0.4]]))
    assert torch.equal(tangent, torch.ones(3, 2)) and w[2].tolist() == [6, 8]
