"""torch.masked: reductions and normalizations that leave out what a boolean mask hides."""

from ._ops import *  # noqa: F403
from ._ops import __all__  # noqa: F401
