"""torch.autograd.forward_ad: tangents that travel forward with the values."""

from typing import NamedTuple

from msadapter_hook.autograd import dual as _dual

from .. import Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """A primal and its tangent, or None. Source: PyTorch, torch.autograd.forward_ad.UnpackedDualTensor."""

    primal: Tensor
    tangent: Tensor


def enter_dual_level():
    """Open the level in which dual tensors live and give its number. RuntimeError for a second one. Source: PyTorch,
    torch.autograd.forward_ad.enter_dual_level."""
    return _dual.enter()


def exit_dual_level(*, level=None):
    """Close the level; tangents made in it are gone. Source: PyTorch, torch.autograd.forward_ad.exit_dual_level."""
    _dual.leave(level)


def make_dual(tensor, tangent, *, level=None):
    """A tensor with the data of `tensor` whose tangent is `tangent`, of the same shape and dtype. Source: PyTorch,
    torch.autograd.forward_ad.make_dual."""
    return _dual.make(tensor, tangent, level)


def unpack_dual(tensor, *, level=None):
    """The primal and the tangent (None where there is none) of a tensor. Source: PyTorch,
    torch.autograd.forward_ad.unpack_dual."""
    return UnpackedDualTensor(*_dual.unpack(tensor, level))


class dual_level:
    """Context in which dual tensors live. Source: PyTorch, torch.autograd.forward_ad.dual_level."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *exc):
        exit_dual_level()


def __getattr__(name):
    if name == "_current_level":
        return _dual.number()
    raise AttributeError(f"module 'torch.autograd.forward_ad' has no attribute '{name}'")
