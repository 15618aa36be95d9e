"""Sparse and nested tensors in checkpoint files, and files that lie about them."""

import copy
import io

import pytest
import torch
from torch import _utils


def through_a_file(x):
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file)


S = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))


@pytest.mark.parametrize("x", [S, S.coalesce(), S.to_sparse_csr(), S.to_sparse_csc(), torch.eye(4).to_sparse_bsr((2, 2)),
                               torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(1, 3)])], ids=lambda x: str(x.layout))
def test_layout_goes_through_a_file(x):
    found = through_a_file({"x": x})["x"]
    assert repr(found) == repr(x) and type(found) is type(x)
    if x.is_sparse:
        assert found.is_coalesced() == x.is_coalesced()


def test_state_dict_with_a_sparse_buffer():
    net = torch.nn.Module()
    net.register_buffer("adjacency", S)
    other = torch.nn.Module()
    other.register_buffer("adjacency", torch.sparse_coo_tensor((2, 3)))
    other.load_state_dict(through_a_file(net.state_dict()))
    assert torch.equal(other.adjacency.to_dense(), S.to_dense())
    assert repr(copy.deepcopy(net).adjacency) == repr(S)


def test_indices_of_a_file_are_checked():
    with pytest.raises(RuntimeError, match="found index 7"):
        _utils._rebuild_sparse_tensor(torch.sparse_coo, (torch.tensor([[7]]), torch.ones(1), torch.Size([3]), False))
    with pytest.raises(RuntimeError, match="not satisfied"):
        _utils._rebuild_sparse_tensor(torch.sparse_csr, (torch.tensor([0, 1]), torch.tensor([9]), torch.ones(1), torch.Size([1, 3])))
    with pytest.raises(RuntimeError, match="does not fit"):
        _utils._rebuild_nested_tensor(torch.ones(3), torch.tensor([[2, 3]]), torch.tensor([[3, 1]]), torch.tensor([0]))
