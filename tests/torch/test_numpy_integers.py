"""NumPy's integers where sizes are spelled out."""

import numpy as np
import pytest
import torch

n = np.int64(2)


@pytest.mark.parametrize("make", [torch.empty, torch.zeros, torch.ones, torch.rand, torch.randn, torch.ones(1).new_zeros,
                                  torch.empty(2).resize_])
def test_a_size_given_alone(make):
    assert make(n).shape == (2,)
    assert make(np.int32(2)).shape == (2,)


def test_sizes_of_several():
    assert torch.zeros(n, 3).shape == (2, 3) and torch.ones(4).view(n, n).shape == (2, 2)
    assert torch.empty(np.array(2)).shape == (2,) and torch.ones(3).expand(n, 3).shape == (2, 3)
    assert tuple(torch.nn.Linear(n, n).bias.shape) == (2,)


@pytest.mark.parametrize("size", [np.float64(2), True])
def test_what_is_no_size(size):
    with pytest.raises(TypeError, match="must be tuple of ints"):
        torch.zeros(size)
