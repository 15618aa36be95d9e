"""torch.cpu.amp.autocast_mode: autocast by its old name."""

from ... import bfloat16
from ...amp import autocast as _autocast
from ...amp._old_names import old_name

__all__ = ["autocast"]


class autocast(_autocast):
    """`torch.amp.autocast("cpu", …)`. Source: PyTorch, torch.cpu.amp.autocast."""

    def __init__(self, enabled=True, dtype=bfloat16, cache_enabled=True):
        old_name("cpu", "autocast")
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
