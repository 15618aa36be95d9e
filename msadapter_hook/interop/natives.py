"""MindSpore's tensors beside ours: one in the other's operators, indices and methods, and made from the other.

An operator over both is ours, with PyTorch's rules of promotion; a method of MindSpore's tensor is MindSpore's, recorded on our
tape; what writes into MindSpore's tensor takes data only.
"""

import operator

import numpy as np

from msadapter_hook import backend
from msadapter_hook.tape import grad_enabled
from msadapter_hook.tensor import Tensor

from . import crossing, operations
from .trees import tree_map

#: methods behind Python's operators that make something new -> the operator
OPERATORS = {
    f"__{name}__": getattr(operator, f"{name}_" if name in ("and", "or") else name)
    for name in "add sub mul truediv floordiv mod pow matmul and or xor eq ne lt le gt ge getitem".split()
} | {"__contains__": operator.contains}
#: methods that write into the tensor and do not say so by an underscore at the end
WRITES = frozenset(["__setitem__", "assign_value", "assign_value_cpp", "itemset", "inplace_update"])


def method(name, native, args, kwargs):
    """`native.name(*args, **kwargs)` with our tensors among the arguments."""
    if name in OPERATORS:
        return OPERATORS[name](crossing.wrap(native), *args)
    if name in WRITES or name.startswith("__i") or name.endswith("_"):
        args, kwargs = tree_map(_without_history, (args, kwargs), Tensor)
        return getattr(native, name)(*args, **kwargs)
    return operations.call(_Method(name), (native, *args), kwargs)


class _Method:
    """A method of MindSpore's tensors as a function of the tensor."""

    def __init__(self, name):
        self.__name__, self.__module__ = name, "mindspore.Tensor"

    def __call__(self, tensor, *args, **kwargs):
        return getattr(tensor, self.__name__)(*args, **kwargs)


def _without_history(tensor):
    """A MindSpore tensor with the data of ours. RuntimeError where a gradient would be lost."""
    if tensor.requires_grad and grad_enabled():
        raise RuntimeError("a tensor that requires grad is written into a MindSpore tensor, which keeps no history of it: "
                           "write tensor.detach(), or into a torch tensor")
    return data_of(tensor)


def data_of(x):
    """`x` (lists, tuples and dicts too) with each of our tensors as a MindSpore tensor of its own: a copy, without history.

    In lists, as NumPy arrays, which MindSpore can stack.
    """
    if isinstance(x, Tensor):
        return backend.from_numpy(np.array(x.detach().value.numpy, order="C", copy=True))
    if type(x) is dict:
        return {key: data_of(item) for key, item in x.items()}
    return arrays_of(x)


def arrays_of(x):
    """`x` (lists, tuples and dicts too) with our tensors as NumPy arrays over the same memory."""
    return tree_map(lambda t: t.detach().value.numpy, x, Tensor)
