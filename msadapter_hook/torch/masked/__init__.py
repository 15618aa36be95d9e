"""torch.masked: reductions and normalizations that leave out what a boolean mask hides."""

from ._ops import *  # noqa: F403
from ._ops import __all__  # noqa: F401
from ._ops import _canonical_dim, _input_mask, _output_mask  # noqa: F401
