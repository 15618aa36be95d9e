"""torch.cpu.amp: the old spelling of torch.amp for the CPU."""

import warnings as _warnings

from .. import bfloat16 as _bfloat16
from ..amp import GradScaler as _GradScaler
from ..amp import autocast as _autocast


class autocast(_autocast):
    """torch.amp.autocast("cpu", …). Source: PyTorch, torch.cpu.amp.autocast."""

    def __init__(self, enabled=True, dtype=_bfloat16, cache_enabled=True):
        _warnings.warn("torch.cpu.amp.autocast is deprecated: write torch.amp.autocast('cpu', ...)", FutureWarning, stacklevel=2)
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    """torch.amp.GradScaler("cpu", …). Source: PyTorch, torch.cpu.amp.GradScaler."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        _warnings.warn("torch.cpu.amp.GradScaler is deprecated: write torch.amp.GradScaler('cpu', ...)", FutureWarning,
                       stacklevel=2)
        super().__init__("cpu", init_scale=init_scale, growth_factor=growth_factor, backoff_factor=backoff_factor,
                         growth_interval=growth_interval, enabled=enabled)
