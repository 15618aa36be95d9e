"""torch.masked: reductions and normalizations that leave out what a boolean mask hides."""

from ._ops import *
from ._ops import (
    __all__,
    _canonical_dim,
    _input_mask,
    _output_mask,
)
