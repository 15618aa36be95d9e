"""torch.ao.nn: modules of quantization."""

from . import quantized  # noqa: F401
