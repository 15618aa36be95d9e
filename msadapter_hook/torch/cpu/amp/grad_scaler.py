"""torch.cpu.amp.grad_scaler: GradScaler by its old name."""

from ...amp import GradScaler as _GradScaler
from ...amp._old_names import old_name

__all__ = ["GradScaler"]


class GradScaler(_GradScaler):
    """`torch.amp.GradScaler("cpu", …)`. Source: PyTorch, torch.cpu.amp.GradScaler."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        old_name("cpu", "GradScaler")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
