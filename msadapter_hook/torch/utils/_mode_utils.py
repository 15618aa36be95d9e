# torch.utils._mode_utils: small helpers around modes.
import contextlib


def no_dispatch():
    """There is no `__torch_dispatch__` to turn off: the empty context."""
    return contextlib.nullcontext()


def all_same_mode(modes):
    """Whether the modes are one and the same object."""
    return all(mode is modes[0] for mode in modes)
