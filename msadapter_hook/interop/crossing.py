"""Tensors across the border, both ways, without copying.

Where a gradient on our tape is under way over MindSpore's weights, a tensor with MindSpore's history brings it along.
"""

import mindspore
from mindspore._c_expression import run_backward

from msadapter_hook import backend, errors
from msadapter_hook.autograd.function import Function
from msadapter_hook.tape import Value
from msadapter_hook.tape.recording import state as tape_state
from msadapter_hook.tensor import Tensor

from . import modes, parameters
from .trees import tree_map

NativeTensor = mindspore.Tensor


def wrap(array):
    """Our tensor over the memory of a MindSpore tensor. A MindSpore Parameter gives the parameter that shares its memory.

    Inside a native gradient: `Crossed`, or RuntimeError where nobody could take our route instead.
    """
    if isinstance(array, mindspore.Parameter):
        return parameters.adapted(array)
    if modes.state.weights and array._requires_grad:
        return entry(array)
    modes.meet((array,))
    return made(array)


def made(array):
    """Our tensor over the memory of a MindSpore tensor; no questions asked."""
    numpy = backend.as_numpy(array)
    return Tensor._make(Value(tuple(array.shape), numpy.dtype, numpy, None))


def unwrap(tensor):
    """A MindSpore tensor object of its own over the memory of ours (MindSpore keeps history per object)."""
    return backend.from_numpy(tensor.value.numpy)


def cast_to_adapter_tensor(x):
    """MindSpore tensors in `x` (also in lists, tuples, dicts) as ours; ours as they are. Source: MindTorch."""
    return tree_map(wrap, x, NativeTensor)


def cast_to_ms_tensor(x):
    """Our tensors in `x` as MindSpore tensors over the same memory, without history. Source: MindTorch."""
    return tree_map(unwrap, x, Tensor)


def entry(array):
    """Our tensor for a MindSpore tensor that was computed from the weights of the gradient under way, history included."""
    weights = modes.state.weights
    return _Entry.apply(array, weights, *[parameters.adapted(w) for w in weights])


class _Entry(Function):
    """Where MindSpore's history joins our tape. Inputs: the partners of the MindSpore Parameters it may lead to."""

    @staticmethod
    def forward(ctx, array, weights, *partners):
        ctx.array, ctx.weights = array, weights
        return made(array)

    @staticmethod
    def backward(ctx, grad):
        if tape_state.enabled:
            raise errors.unsupported("a MindSpore operation", "its gradient cannot be differentiated again (create_graph=True)")
        # several entries may share one native history: it goes away with the tensors that hold it
        found = run_backward((ctx.array,), (backend.from_numpy(grad.value.numpy),), True, False, tuple(ctx.weights), True,
                             accumulate_grad=False)
        return (None, None, *[None if g is None else made(g) for g in found])
