"""torch.accelerator: there is none; programs then take the CPU."""

__all__ = ["current_accelerator", "device_count", "is_available"]


def is_available():
    return False


def device_count():
    return 0


def current_accelerator(check_available=False):
    """None: there is no accelerator. Source: PyTorch, torch.accelerator.current_accelerator."""
    return None


def _none():
    raise RuntimeError("Cannot access accelerator device when none is available.")


def current_device_index():
    _none()


def set_device_index(device):
    _none()


def synchronize(device=None):
    _none()
