"""What works, but with a notice that PyTorch gives once: sequences as indices, masks of uint8, experimental reductions."""

import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def m():
    return torch.arange(12.0).reshape(3, 4)


def test_list_of_lists_counts_as_tuple(m):
    assert m[[[0, 1], [1, 2]]].tolist() == [1.0, 6.0]


def test_list_with_slices_counts_as_tuple(m):
    assert m[[slice(0, 1), slice(0, 2)]].tolist() == [[0.0, 1.0]]
    assert m[[None, 0]].shape == (1, 4)


def test_list_of_numbers_is_an_index(m):
    assert m[[1, 0]].shape == (2, 4)


def test_uint8_index_is_a_mask(m):
    assert m[torch.tensor([1, 0, 1], dtype=torch.uint8)].tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]]
    assert m[torch.tensor(1, dtype=torch.uint8)].shape == (1, 3, 4)


def test_index_reduce_shares_the_gradient_among_largest():
    x = torch.tensor([[3.0, -1.0], [0.5, 0.5]], requires_grad=True)
    source = torch.tensor([[3.0, 4.0], [1.0, 4.0]], requires_grad=True)
    found = x.index_reduce(0, torch.tensor([0, 0]), source, "amax")
    assert found.tolist() == [[3.0, 4.0], [0.5, 0.5]]
    found.sum().backward()
    assert x.grad.tolist() == [[0.5, 0.0], [1.0, 1.0]]
    assert source.grad.tolist() == [[0.5, 0.5], [0.0, 0.5]]


def test_index_reduce_without_self():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    found = x.index_reduce(0, torch.tensor([1, 1]), torch.tensor([5.0, 7.0]), "mean", include_self=False)
    assert found.tolist() == [1.0, 6.0, 3.0]
    found.sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 1.0]


def test_scatter_with_reduce_has_no_derivative(m):
    x = m.clone().requires_grad_()
    found = x.scatter(0, torch.tensor([[0, 0]]), torch.ones(1, 2), reduce="add")
    assert found[0].tolist() == [1.0, 2.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match="derivative for aten::scatter is not implemented"):
        found.sum().backward()


def test_new_tensor_of_a_tensor_takes_the_dtype_of_the_receiver(m):
    assert m.new_tensor(torch.tensor([1, 2])).dtype is torch.float32
