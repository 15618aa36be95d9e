"""torch.cuda.amp.autocast_mode: autocast and the decorators of Functions by its old names."""

from ... import float16
from ...amp import autocast as _autocast
from ...amp import custom_bwd as _custom_bwd
from ...amp import custom_fwd as _custom_fwd
from ...amp._old_names import old_name

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


class autocast(_autocast):
    """`torch.amp.autocast("cuda", …)`. Source: PyTorch, torch.cuda.amp.autocast."""

    def __init__(self, enabled=True, dtype=float16, cache_enabled=True):
        old_name("cuda", "autocast")
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """`torch.amp.custom_fwd(…, device_type="cuda")`. Source: PyTorch, torch.cuda.amp.custom_fwd."""
    old_name("cuda", "custom_fwd")
    return _custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd):
    """`torch.amp.custom_bwd(…, device_type="cuda")`. Source: PyTorch, torch.cuda.amp.custom_bwd."""
    old_name("cuda", "custom_bwd")
    return _custom_bwd(bwd, device_type="cuda")
