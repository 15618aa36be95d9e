# Convolutions of inputs without channels: PyTorch gives outputs without channels.
import pytest
import torch
from torch.nn import functional as F


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("batch", [(2,), ()])
def test_of_no_channels_come_no_channels(n, batch):
    x = torch.zeros(*batch, 0, *[4] * n, requires_grad=True)
    weight = torch.zeros(3, 0, *[2] * n, requires_grad=True)
    bias = torch.ones(3, requires_grad=True)
    y = getattr(F, f"conv{n}d")(x, weight, bias)
    assert y.shape == (*batch, 0, *[3] * n)
    y.sum().backward()
    assert x.grad.shape == x.shape and weight.grad.shape == weight.shape
    assert bias.grad.tolist() == [0, 0, 0]
