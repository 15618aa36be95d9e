"""MindSpore's primitives, one instance per set of attributes (making one costs 20 µs)."""

import math
from functools import lru_cache, partial

import numpy as np
from mindspore import Tensor
from mindspore.ops import operations as _operations

from .arrays import as_numpy
from .moving import dense, moved
from .runtime import in_reach

_OF_VIEWS = frozenset(["Transpose", "Reshape", "Split", "StridedSlice", "ExpandDims", "Squeeze", "BroadcastTo"])  # give views


class Kernel:
    """A MindSpore primitive that can be overheard: a `Listing` writes down the calls made while it is active."""

    __slots__ = ("instance", "name", "_call", "_takes_views")
    listening = None

    def __init__(self, name, instance):
        self.name = name
        self.instance = instance
        self._takes_views = name in _OF_VIEWS
        call = type(instance).__call__
        # beneath the wrapper that looks for tensors of ours: there are none here
        self._call = partial(getattr(call, "__wrapped__", call), instance)

    def __call__(self, *args):
        if Kernel.listening is not None:
            result = self._call(*args)
            Kernel.listening.note(self, args, result)
            return result
        if not self._takes_views:
            for a in args:
                if type(a) is Tensor and not a.is_contiguous():
                    args = [dense(a) if type(a) is Tensor else a for a in args]
                    break
        return self._call(*args)


@lru_cache(maxsize=4096)
def primitive(name: str, *attributes, **named) -> Kernel:
    """The instance of the MindSpore primitive `name` with these attributes; callable on MindSpore tensors."""
    return Kernel(name, getattr(_operations, name)(*attributes, **named))


def in_memory(function, otherwise=None):
    """`function`, an InPlace, also in programs that are written down to be compiled; `otherwise`, kernels of MindSpore, where the memory
    of tensors is out of reach, or the program will run without us (None: there is nothing else)."""

    def run(*tensors):
        listening = Kernel.listening
        if not in_reach() or listening is not None and listening.alone:
            if otherwise is None:
                raise NotImplementedError(f"MindSpore has no kernel for {function.name} here")
            return otherwise(*tensors)
        result = function(*tensors)
        if listening is not None:
            listening.note_function(function, tensors, result)
        return result

    return run


def moving(kernel, forward, backward):
    """`kernel`, which only moves elements; NumPy does it wherever it can, unless the program is written down to be compiled:
    `forward(*arrays)`, and `backward(shapes, *cotangents)` gives the gradients."""
    function = moved(forward, backward)
    return lambda *tensors: (function if Kernel.listening is None and in_reach() else kernel)(*tensors)


def finite(tensor) -> bool:
    """Whether all elements of a float tensor are known to be numbers: neither infinite nor NaN, nor so large that it cannot be told.

    In a program that is being written down to be compiled it is taken to be so; whoever runs it looks (`Listing.assumed`).
    """
    if Kernel.listening is not None:
        Kernel.listening.assumed.append(tensor)
        return True
    return all_numbers(as_numpy(tensor))


def all_numbers(array) -> bool:
    """Whether the squares of a float array have a finite sum: no element is infinite or NaN then. The quickest look at all of them."""
    flat = array.reshape(-1)
    return math.isfinite(np.dot(flat, flat))
