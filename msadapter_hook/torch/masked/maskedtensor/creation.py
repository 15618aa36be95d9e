"""How masked tensors are made."""

from .core import MaskedTensor

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data, mask, requires_grad=False):
    """A MaskedTensor with copies of `data` and `mask`, a leaf. Source: PyTorch, torch.masked.masked_tensor."""
    made = MaskedTensor(data, mask)
    made = MaskedTensor._of(data.detach().clone(), mask.clone())
    return made.requires_grad_() if requires_grad else made


def as_masked_tensor(data, mask):
    """A MaskedTensor over `data` itself, history included. Source: PyTorch, torch.masked.as_masked_tensor."""
    return MaskedTensor._from_values(data, mask)
