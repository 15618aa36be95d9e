# torch.utils._mode_utils: small helpers around modes.
from msadapter_hook.ops import dispatch as _dispatch


def no_dispatch():
    """Context: neither dispatch modes nor subclasses see operators. Source: PyTorch, torch.utils._mode_utils.no_dispatch."""
    return _dispatch.disabled()


def all_same_mode(modes):
    """Whether the modes are one and the same object."""
    return all(mode is modes[0] for mode in modes)
