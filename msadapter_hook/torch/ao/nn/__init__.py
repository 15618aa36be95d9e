"""torch.ao.nn: modules of quantization."""

from . import intrinsic, qat, quantizable, quantized
