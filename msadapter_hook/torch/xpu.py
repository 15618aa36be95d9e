"""torch.xpu: Intel's devices are not there."""

__all__ = ["device_count", "is_available"]


def is_available():
    return False


def device_count():
    return 0


def is_bf16_supported(including_emulation=True):
    return False


def empty_cache():
    """Nothing is cached."""


def manual_seed(seed):
    """No device to seed."""


def manual_seed_all(seed):
    """No device to seed."""
