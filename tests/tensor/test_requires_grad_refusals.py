"""Which tensors cannot require grad: PyTorch's words differ with the way it is asked for."""

import pytest
import torch


def set_it(x):
    x.requires_grad = True


@pytest.mark.parametrize("dtype", [torch.int32, torch.bool])
def test_only_floating_point_and_complex(dtype):
    x = torch.ones(1, dtype=dtype)
    with pytest.raises(RuntimeError, match="^only Tensors of floating point dtype can require gradients"):
        x.requires_grad_()
    with pytest.raises(RuntimeError, match="^only Tensors of floating point and complex dtype can require gradients"):
        set_it(x)
    with pytest.raises(RuntimeError, match="^Only Tensors of floating point and complex dtype can require gradients"):
        torch.ones(1, dtype=dtype, requires_grad=True)
    assert not x.requires_grad_(False).requires_grad
    x.requires_grad = False


def test_the_dtype_is_asked_before_inference_mode():
    with torch.inference_mode():
        x, y = torch.ones(1, dtype=torch.int32), torch.ones(1)
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype"):
        x.requires_grad_()
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."):
        y.requires_grad_()
