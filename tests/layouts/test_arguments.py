"""Arguments that change the result are obeyed or refused, never passed over."""

import pytest
import torch
from torch.nn import functional as F


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_attention_shares_heads_where_asked(layout):
    torch.manual_seed(0)
    pieces = [[torch.randn(n, heads, 3) for n in (2, 4)] for heads in (4, 2, 2)]
    query, key, value = [torch.nested.nested_tensor(p, layout=layout).transpose(1, 2) for p in pieces]
    found = F.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    for i, piece in enumerate(found.unbind()):
        one = [p[i].transpose(0, 1) for p in pieces]
        assert torch.allclose(piece, F.scaled_dot_product_attention(*one, enable_gqa=True), atol=1e-6)


@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
def test_nested_softmax_stays_inside_a_piece(function):
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)])
    assert torch.equal(function(nested, -1).unbind()[0], function(torch.ones(2, 3), -1))
    with pytest.raises(RuntimeError, match="nested dimension 0"):
        function(nested, 0)


def test_sparse_norm_in_another_dtype():
    sparse = torch.tensor([[3.0, 0.0], [0.0, 4.0]]).to_sparse()
    assert torch.norm(sparse, dtype=torch.float64).dtype is torch.float64 and torch.norm(sparse).item() == 5


def test_the_gradient_of_to_dense_keeps_to_the_elements():
    sparse = torch.eye(2).to_sparse().requires_grad_()
    with pytest.raises(NotImplementedError, match="masked_grad=False"):
        sparse.to_dense(masked_grad=False)
    sparse.to_dense(masked_grad=True).sum().backward()
    assert torch.equal(sparse.grad.to_dense(), torch.eye(2))
