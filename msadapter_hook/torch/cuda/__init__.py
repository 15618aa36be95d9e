"""torch.cuda: not available; what programs ask before they decide is answered, the rest refuses."""

from . import amp

__all__ = ["current_device", "device", "device_count", "empty_cache", "is_available", "is_initialized", "manual_seed",
           "manual_seed_all", "synchronize"]

_REASON = "Torch not compiled with CUDA enabled"


def is_available():
    """False: there is no CUDA. Source: PyTorch, torch.cuda.is_available."""
    return False


def device_count():
    """0. Source: PyTorch, torch.cuda.device_count."""
    return 0


def is_initialized():
    return False


def is_bf16_supported(including_emulation=True):
    return False


def is_tf32_supported():
    return False


def init():
    raise AssertionError(_REASON)


def current_device():
    raise AssertionError(_REASON)


def get_device_name(device=None):
    raise AssertionError(_REASON)


def get_device_properties(device=None):
    raise AssertionError(_REASON)


def get_device_capability(device=None):
    raise AssertionError(_REASON)


def set_device(device):
    """Nothing to choose from: an index below zero is ignored, any other is an error. Source: PyTorch, torch.cuda.set_device."""
    index = device if isinstance(device, int) else getattr(device, "index", 0) or 0
    if index >= 0:
        raise AssertionError(_REASON)


def synchronize(device=None):
    raise AssertionError(_REASON)


def empty_cache():
    """Nothing is cached. Source: PyTorch, torch.cuda.empty_cache."""


def ipc_collect():
    """Nothing to collect."""


def manual_seed(seed):
    """Remembered for a device that is not there: no effect. Source: PyTorch, torch.cuda.manual_seed."""


def manual_seed_all(seed):
    """As manual_seed."""


def memory_allocated(device=None):
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def reset_peak_memory_stats(device=None):
    raise AssertionError(_REASON)


class device:
    """Context that selects a device; without CUDA only -1 and None do nothing. Source: PyTorch, torch.cuda.device."""

    def __init__(self, device):
        self.idx = device

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        return False
