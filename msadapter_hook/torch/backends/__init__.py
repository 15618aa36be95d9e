"""torch.backends: what programs look at or set; the flags are kept, and none of these libraries is in use."""

from . import cpu, cuda, cudnn, mkl, mkldnn, mps, nnpack, openmp, opt_einsum, quantized
