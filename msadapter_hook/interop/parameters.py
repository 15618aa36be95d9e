"""Parameters that both sides own: a MindSpore Parameter and ours over the same memory.

In-place updates by either side are seen by the other. Where one side replaces its memory (`set_data`, `load_param_into_net`;
`.data = `, `module.half()`), the next crossing brings the other side along: see `refresh`.
"""

import itertools
import weakref
from collections.abc import Iterator

import mindspore
import numpy as np

from msadapter_hook import backend, errors
from msadapter_hook.tensor import Tensor, dtypes, share_array

from .trees import tree_map

_numbers = itertools.count()  # of parameters that MindSpore has to call something
_links = weakref.WeakValueDictionary()  # id of either side -> Link


class Link:
    """A pair. `native` owns the link (a MindSpore Parameter takes attributes), so it lives as long as either side."""

    def __init__(self, native, ours, memory):
        self.native = weakref.ref(native)
        self.ours = weakref.ref(ours)
        self.memory = memory  # the NumPy array that both sides read and write
        _links[id(native)] = _links[id(ours)] = self


def _memory_of(tensor):
    """The memory of one of our tensors as a NumPy array that stays in place; None where it does not lie in one piece."""
    if not tensor.is_contiguous():
        return None
    if tensor.dtype is not dtypes.bfloat16:
        if tensor.dtype.numpy.kind == "V":
            raise errors.unsupported(f"a parameter of {tensor.dtype} in MindSpore", "convert it to float32 or bfloat16 first")
        return tensor.detach().numpy()
    tensor._history.storage.lent = True
    return tensor._strided_numpy()


def _parameter_class():
    import sys

    for name in ("torch.nn.parameter", "mindtorch.torch.nn.parameter"):
        module = sys.modules.get(name)
        if module is not None:
            return module.Parameter
    return None


def _linked(x):
    link = _links.get(id(x))
    return link if link is not None and (link.native() is x or link.ours() is x) else None


def adapted(native):
    """Our parameter for a MindSpore Parameter, the same one each time; requires grad where the other does."""
    link = _linked(native)
    if link is not None and link.ours() is not None:
        refresh(link)
        return link.ours()
    memory = backend.as_numpy(native)
    if not memory.flags.writeable or not memory.flags.c_contiguous:
        memory = np.array(memory, order="C")
        native.set_data(backend.from_numpy(memory))
    data = share_array(memory)
    wanted = bool(native.requires_grad) and (data.dtype.is_floating_point or data.dtype.is_complex)
    made = _parameter_class()
    ours = made(data, wanted) if made is not None else data.requires_grad_(wanted)
    _tie(native, ours, memory)
    return ours


def native_parameter(ours, name):
    """The MindSpore Parameter for one of ours, the same one each time; `name` is used when it is made."""
    link = _linked(ours)
    if link is not None and link.native() is not None:
        refresh(link)
        return link.native()
    memory = _memory_of(ours)
    if memory is None:
        raise NotImplementedError(f"parameter {name}: MindSpore shares contiguous memory only; call .contiguous() first")
    native = mindspore.Parameter(backend.from_numpy(memory), name=name, requires_grad=ours.requires_grad)
    native.set_data(backend.from_numpy(memory))  # the constructor copies, this shares
    _tie(native, ours, memory)
    return native


def _tie(native, ours, memory):
    link = Link(native, ours, memory)
    # each side keeps the link and the other side alive: a cycle, which the collector knows
    native.__dict__["_adapter_link"] = (link, ours)
    ours._extra_state()["native_link"] = (link, native)


def refresh(link):
    """Bring the side along whose partner has new memory; ours is asked first."""
    native, ours = link.native(), link.ours()
    if native is None or ours is None:
        return
    mine = _memory_of(ours)
    if mine is not None and mine.ctypes.data != link.memory.ctypes.data:
        if native.dtype != backend.from_numpy(mine).dtype:
            native.set_dtype(backend.from_numpy(mine).dtype)
        link.memory = mine
        native.set_data(backend.from_numpy(mine), slice_shape=mine.shape != tuple(native.shape))
        return
    theirs = backend.as_numpy(native)
    if theirs.ctypes.data != link.memory.ctypes.data and theirs.size:
        np.copyto(link.memory, theirs)
        ours._history.storage.generation += 1
        native.set_data(backend.from_numpy(link.memory))


def replaced(native):
    """A MindSpore Parameter got new data: our side takes it over at once."""
    link = _linked(native)
    if link is not None:
        refresh(link)


def is_linked(x):
    """True for either side of a pair."""
    return _linked(x) is not None


def native_tree(x):
    """`x` with our parameters in lists, tuples and dicts (and iterators) replaced by MindSpore's that share their memory."""
    x = tree_map(lambda generator: list(generator), x, Iterator)
    return tree_map(lambda t: native_parameter(t, f"parameter{next(_numbers)}"), x, Tensor)
