"""Tensors with a mask."""

from .core import MaskedTensor, is_masked_tensor
from .creation import as_masked_tensor, masked_tensor
