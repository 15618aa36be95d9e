"""torch.masked: reductions and normalizations that leave out what a boolean mask hides, and tensors with a mask."""

from . import _ops
from ._ops import *
from ._ops import (
    _canonical_dim,
    _input_mask,
    _output_mask,
    _reduction_identity,
)
from ._sparse import where as _where
from .maskedtensor.core import MaskedTensor, is_masked_tensor
from .maskedtensor.creation import as_masked_tensor, masked_tensor

__all__ = [*_ops.__all__, "MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]
