"""torch.backends.nnpack: not in use; the flag is kept."""

import contextlib as _contextlib

__all__ = ["flags", "is_available", "set_flags"]
_enabled = True


def is_available():
    """False. Source: PyTorch, torch.backends.nnpack.is_available."""
    return False


def set_flags(_enabled):
    """Gives the flags as they were, as a tuple. Source: PyTorch, torch.backends.nnpack.set_flags."""
    before = (globals()["_enabled"],)
    globals()["_enabled"] = _enabled
    return before


@_contextlib.contextmanager
def flags(enabled=False):
    before = set_flags(enabled)
    try:
        yield
    finally:
        set_flags(before[0])
