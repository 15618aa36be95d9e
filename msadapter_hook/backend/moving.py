"""Operations that only move elements, by NumPy.

In dynamic mode MindSpore's Transpose and Split give views, and every kernel that wants dense memory copies such a view element by
element: 0.4 ms for (4, 64, 4, 32), where NumPy takes 0.01 ms; its Concat of 100,000 numbers takes 0.4 ms.
"""

import numpy as np
from mindspore.common._grad_function import _Function

from .arrays import from_numpy, strided

__all__ = ["dense", "moved"]


def _tensors(made):
    """Copies of one array, or of several, as MindSpore tensors."""
    if type(made) is np.ndarray:
        return from_numpy(np.array(made, order="C"))
    return tuple([from_numpy(np.array(a, order="C")) for a in made])


def moved(forward, backward):
    """The function of MindSpore tensors that `forward(*arrays)` is, an array or a sequence of them, with the gradients
    `backward(shapes of the arrays, *cotangents)`."""

    class Moved(_Function):
        @staticmethod
        def forward(ctx, *tensors):
            ctx.shapes = [t.shape for t in tensors]
            return _tensors(forward(*map(strided, tensors)))

        @staticmethod
        def backward(ctx, *cotangents):
            return _tensors(backward(ctx.shapes, *map(strided, cotangents)))

    return Moved.apply


_dense = moved(lambda a: a, lambda shapes, g: g)


def dense(tensor):
    """The tensor itself where it lies in dense memory, or NumPy cannot read it; else a copy that does."""
    return tensor if tensor.is_contiguous() or strided(tensor) is None else _dense(tensor)
