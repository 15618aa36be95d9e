"""Tensors in the hands of NumPy."""

import numpy as np
import pytest
import torch


def test_numpy_functions_of_tensors_give_tensors():
    t = torch.arange(4.0)
    assert torch.equal(np.add(1, t), t + 1) and np.add(t, 1).dtype == torch.float32
    assert np.sqrt(torch.arange(3)).dtype == torch.float64  # NumPy's promotion
    assert torch.equal(np.greater(t, 1), torch.tensor([0, 0, 1, 1], dtype=torch.uint8))
    assert np.abs(torch.tensor(-2.0)).shape == torch.Size([])
    assert [type(x) for x in np.modf(t)] == [torch.Tensor, torch.Tensor]
    assert torch.equal(np.transpose(torch.ones(2, 3)), torch.ones(3, 2))
    with pytest.raises(RuntimeError, match="requires grad"):
        np.exp(torch.ones(2, requires_grad=True))
