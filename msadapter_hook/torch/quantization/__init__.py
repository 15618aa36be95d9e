"""torch.quantization: the old place of torch.ao.quantization."""

from ..ao.quantization import *  # noqa: F401,F403
from ..ao.quantization import __getattr__  # noqa: F401
