"""torch.backends: what programs look at or set; the flags are kept, and none of these libraries is in use."""

from . import cuda, cudnn, mkldnn, mps, opt_einsum  # noqa: F401
