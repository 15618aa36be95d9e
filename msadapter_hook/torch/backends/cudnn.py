"""torch.backends.cudnn: flags that programs set; cuDNN itself is not there."""

import contextlib as _contextlib

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True


def is_available():
    return False


def version():
    return None


def is_acceptable(tensor):
    """False: no tensor is for cuDNN here. Source: PyTorch, torch.backends.cudnn.is_acceptable."""
    return False


def set_flags(_enabled=None, _benchmark=None, _benchmark_limit=None, _deterministic=None, _allow_tf32=None):
    """Set the flags given; gives what they were. Source: PyTorch, torch.backends.cudnn.set_flags."""
    state = globals()
    names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")
    before = tuple([state[n] for n in names])
    given = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32)
    state.update({n: v for n, v in zip(names, given) if v is not None})
    return before


@_contextlib.contextmanager
def flags(enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True):
    """The flags as given, within the context. Source: PyTorch, torch.backends.cudnn.flags."""
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)
