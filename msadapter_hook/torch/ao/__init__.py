"""torch.ao: importable; quantization is refused where it would change a model."""

from . import nn, quantization
