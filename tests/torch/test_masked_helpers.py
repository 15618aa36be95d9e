"""torch.masked: the masks of inputs and of results."""

import pytest
import torch

X = torch.arange(6.0).view(2, 3)
MASK = torch.tensor([[True, False, True], [False, False, False]])


def test_masks_of_results():
    found = torch.masked._output_mask
    assert found(torch.masked.sum, X, 1, mask=MASK).tolist() == [True, False]
    assert found(torch.masked.sum, X, 1, keepdim=True, mask=MASK).tolist() == [[True], [False]]
    assert found(torch.masked.norm, X, 2, 0, mask=MASK).tolist() == [True, False, True]
    assert found(torch.masked.argmax, X, mask=MASK).item() is True
    assert found(torch.masked.softmax, X, 1, mask=MASK).tolist() == MASK.tolist()
    with pytest.raises(ValueError, match="expected masked operation"):
        found(torch.add, X, mask=MASK)


def test_masks_of_inputs():
    assert torch.masked._input_mask(X, mask=torch.tensor([1, 0, 1])).tolist() == [[True, False, True]] * 2
    with pytest.raises(ValueError, match="explicit mask"):
        torch.masked._input_mask(X)
    assert torch.masked._canonical_dim(None, 2) == (0, 1) and torch.masked._canonical_dim([-1], 2) == (1,)
