"""The only importers of mindspore: runtime settings, primitives, arrays in and out, gradients of pure functions."""

from .arrays import as_numpy, from_numpy
from .compiled import compile_gradient
from .gradient import Gradient
from .moving import in_place
from .primitives import by_either, finite, moving, primitive
from .runtime import in_reach, lock, mindspore, prepare

__all__ = ["Gradient", "as_numpy", "by_either", "compile_gradient", "finite", "from_numpy", "in_place", "in_reach", "lock", "mindspore",
           "moving", "prepare", "primitive"]
