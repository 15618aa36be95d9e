"""Sizes that losses and paddings do not take: PyTorch's errors, not NumPy's. Right values: PyTorch 2.13."""

import pytest
import torch
import torch.nn.functional as F

two, three = torch.ones(2), torch.ones(3)
SIZES = "The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton dimension 0"


@pytest.mark.parametrize("call, kind, text", [
    (lambda: F.kl_div(two, three), RuntimeError, SIZES.format(3, 2)),
    (lambda: F.margin_ranking_loss(two, three, two), RuntimeError, SIZES.format(2, 3)),
    (lambda: F.margin_ranking_loss(two, two, three), RuntimeError, SIZES.format(3, 2)),
    (lambda: F.cosine_embedding_loss(torch.ones(2, 3), torch.ones(2, 3), three), RuntimeError, SIZES.format(3, 2)),
    *[(lambda f=f: f(three, two), RuntimeError, SIZES.format(3, 2)) for f in (
        torch.logical_and, torch.logical_or, torch.logical_xor, torch.polar, torch.complex)],
    (lambda: F.cross_entropy(three, torch.tensor([0, 1])), ValueError, "For 1D input, 1D target must have size 1, but got target size: 2"),
    (lambda: F.nll_loss(three, torch.tensor([0, 1])), ValueError, "For 1D input, 1D target must have size 1, but got target size: 2"),
    (lambda: F.pad(two, (1,) * 4), RuntimeError,
     "Padding length should be less than or equal to two times the input dimension but got padding length 4 and input of dimension 1"),
])
def test_errors(call, kind, text):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == text


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_paddings_of_sizes_that_modes_do_not_take(mode):
    with pytest.raises(NotImplementedError, match="Padding size 2 is not supported for 4D input tensor.\nSupported combinations"):
        F.pad(torch.ones(2, 3, 4, 4), (1, 1), mode=mode)
    with pytest.raises(RuntimeError, match="got padding length 6 and input of dimension 2"):
        F.pad(torch.ones(4, 4), (1,) * 6, mode=mode)
