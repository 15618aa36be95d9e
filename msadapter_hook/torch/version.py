"""torch.version: which PyTorch is served, and what it is not built with."""

from msadapter_hook.version import TORCH_VERSION as __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

debug = False
cuda = None
hip = None
xpu = None
git_version = "unknown"
