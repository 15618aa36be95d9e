"""torch._refs.fft: the functions of torch.fft."""

from ..fft import *  # noqa: F403
