"""torch.backends.mkldnn: oneDNN is used by MindSpore itself, not through PyTorch's switch."""

import contextlib as _contextlib

enabled = True
deterministic = False
allow_tf32 = True


def is_available():
    return False


def set_flags(_enabled=None, _deterministic=None, _allow_tf32=None):
    """Set the flags given; gives what they were. Source: PyTorch, torch.backends.mkldnn.set_flags."""
    state = globals()
    names = ("enabled", "deterministic", "allow_tf32")
    before = tuple([state[n] for n in names])
    state.update({n: v for n, v in zip(names, (_enabled, _deterministic, _allow_tf32)) if v is not None})
    return before


@_contextlib.contextmanager
def flags(enabled=False, deterministic=False, allow_tf32=True):
    """The flags as given, within the context. Source: PyTorch, torch.backends.mkldnn.flags."""
    before = set_flags(enabled, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)
