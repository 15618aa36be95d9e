"""The only importers of mindspore: runtime settings, primitives, arrays in and out, gradients of pure functions."""

from .arrays import as_numpy, from_numpy
from .compiled import compile_gradient
from .gradient import Gradient
from .moving import InPlace
from .primitives import finite, in_memory, moving, primitive
from .runtime import in_reach, lock, mindspore, prepare

__all__ = ["Gradient", "InPlace", "as_numpy", "compile_gradient", "finite", "from_numpy", "in_memory", "in_reach", "lock", "mindspore",
           "moving", "prepare", "primitive"]
