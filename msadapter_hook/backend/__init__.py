"""The only importers of mindspore: runtime settings, primitives, arrays in and out, gradients of pure functions."""

from .arrays import as_numpy, from_numpy
from .compiled import compile_gradient
from .gradient import Gradient
from .primitives import finite, moving, primitive
from .runtime import lock, mindspore, prepare

__all__ = ["Gradient", "compile_gradient", "as_numpy", "finite", "from_numpy", "lock", "mindspore", "moving", "prepare", "primitive"]
