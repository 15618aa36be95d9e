"""torch.autograd.grad_mode: the grad modes."""

from msadapter_hook.autograd.modes import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]


class set_multithreading_enabled:
    """Backward runs in the calling thread in either case. Source: PyTorch,
    torch.autograd.grad_mode.set_multithreading_enabled."""

    def __init__(self, mode):
        self.mode = mode

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        return None
