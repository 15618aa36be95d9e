"""The one level in which dual tensors live (torch.autograd.forward_ad), per thread."""

import threading

from msadapter_hook.tape.recording import state
from msadapter_hook.tensor import Tensor

from . import forward


class _Current(threading.local):
    level = None


_current = _Current()


def enter():
    """Open the level; its number, 0. RuntimeError where it is open."""
    if _current.level is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _current.level = forward.Level()
    state.levels = (_current.level, *state.levels)
    return 0


def number():
    """The number of the open level, -1 where there is none."""
    return -1 if _current.level is None else 0


def leave(number=None):
    """Close the level."""
    if _current.level is None:
        raise RuntimeError("Dual level must be a positive number." if number is None else
                           "Trying to exit a forward AD level but no level exists, make sure to enter_dual_level() first.")
    if number not in (None, 0):
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not supported.")
    level, _current.level = _current.level, None
    state.levels = tuple([one for one in state.levels if one is not level])


def make(tensor, tangent, number=None):
    """`tensor` with a tangent. RuntimeError without a level, for another size, and for a tensor that has one already."""
    if (number is None or number < 0) and _current.level is None:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() "
                           "first.")
    for t, what in ((tensor, "primal"), (tangent, "tangent")):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {t.dtype}")
    if forward.tangent_of(_current.level, tensor) is not None:
        raise RuntimeError("Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
                           "supported.")
    return forward.dual(_current.level, tensor, tangent)


def unpack(tensor, number=None):
    """(primal, tangent or None)."""
    level = _current.level
    if level is None or not isinstance(tensor, Tensor):
        return tensor, None
    tangent = forward.tangent_of(level, tensor)
    if tangent is None:
        return level.primal(tensor), None
    return level.primal(tensor), tangent
