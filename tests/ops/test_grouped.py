"""Products by groups; sums recorded from PyTorch 2.13."""

import pytest
import torch
from torch.nn import functional as F


def offsets(*ends):
    return torch.tensor(ends, dtype=torch.int32)


@pytest.fixture
def operands():
    torch.manual_seed(0)
    return torch.randn(6, 8, requires_grad=True), torch.randn(3, 8, 4, requires_grad=True)


def test_rows_by_groups(operands):
    a, b = operands
    made = F.grouped_mm(a, b, offs=offsets(2, 2, 6))
    assert made.sum().item() == pytest.approx(9.395, abs=1e-3) and type(made.grad_fn).__name__ == "GroupedMmBackward0"
    made.square().sum().backward()
    assert a.grad.sum().item() == pytest.approx(24.8344, abs=1e-3)
    assert b.grad.sum((1, 2)).tolist() == pytest.approx([-4.9172, 0, -6.2559], abs=1e-3)


def test_columns_and_summed_dimensions_by_groups():
    torch.manual_seed(1)
    a, b = torch.randn(2, 5, 8), torch.randn(8, 12)
    assert torch.allclose(F.grouped_mm(a, b, offs=offsets(4, 12)), torch.cat([a[0] @ b[:, :4], a[1] @ b[:, 4:]], 1), atol=1e-5)
    c, d = torch.randn(5, 16), torch.randn(16, 4)
    assert torch.allclose(F.grouped_mm(c, d, offs=offsets(4, 16)), torch.stack([c[:, :4] @ d[:4], c[:, 4:] @ d[4:]]), atol=1e-5)
    assert torch.equal(F.grouped_mm(a, a.mT.contiguous()), a @ a.mT)


def test_beyond_the_last_group_is_zero(operands):
    a, b = operands
    assert (F.grouped_mm(a, b, offs=offsets(1, 2, 4))[4:] == 0).all()


@pytest.mark.parametrize("change, text", [
    ({"offs": None}, "Have to provide offsets"),
    ({"offs": torch.tensor([2, 2, 6])}, "Offsets have to be int32"),
    ({"offs": offsets(2, 4)}, "matrix batch sizes have to match"),
    ({"offs": offsets(2, 4, 9)}, "end within 6"),
    ({"bias": torch.ones(3, 4)}, "Bias not supported yet"),
    ({"out_dtype": torch.bfloat16}, "output dtype must match"),
])
def test_what_does_not_fit(operands, change, text):
    with pytest.raises(RuntimeError, match=text):
        F.grouped_mm(*operands, **({"offs": offsets(2, 2, 6)} | change))
