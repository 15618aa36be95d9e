"""torch.quantization: the old place of torch.ao.quantization."""

from ..ao.quantization import *
from ..ao.quantization import __getattr__
