"""Copies of tensors whose memory NumPy shares have memory of their own, whatever the grad mode."""

import pytest
import torch


@pytest.mark.parametrize("recording", [True, False])
@pytest.mark.parametrize("leaf", [True, False])
@pytest.mark.parametrize("copy", [lambda a: torch.zeros(3).copy_(a), lambda a: a.clone(), lambda a: torch.zeros(3).add_(a)])
def test_a_copy_is_not_the_exported_memory(recording, leaf, copy):
    source = torch.ones(3, requires_grad=leaf)
    memory = source.detach().numpy()
    with torch.set_grad_enabled(recording):
        made = copy(source)
    memory[:] = 5
    assert source.tolist() == [5, 5, 5] and made.tolist() == [1, 1, 1]
