"""MindSpore's own recording and its modes, around what runs of ours; and what is under way on either side.

Inside a native gradient a tensor with MindSpore's history must not become ours silently: its history would be lost.
"""

import contextlib
import threading

import mindspore
from mindspore import context
from mindspore.common.api import _pynative_executor


class Crossed(Exception):
    """A tensor with native history reached an operator of ours; whoever runs the native gradient takes our route instead."""


class _State(threading.local):
    watchers = 0  # native gradients under way that can be run again on our tape
    graphs = 0  # graphs of MindSpore's own under way in which our tape records
    weights = ()  # MindSpore Parameters that the gradient under way on our tape asks for
    opaque = 0  # calls of MindSpore's functions and Cells under way as one node of our tape


state = _State()


@contextlib.contextmanager
def watching():
    """Inside, a crossing with native history raises `Crossed`; MindSpore is left as if the attempt had not been."""
    state.watchers += 1
    try:
        with left_clean(Crossed):
            yield
    finally:
        state.watchers -= 1


@contextlib.contextmanager
def left_clean(always=()):
    """Inside a call of MindSpore's: an error closes the records that it opened (MindSpore leaves them open), those of an inner
    call with the outermost one, unless the error is one of `always`."""
    before = _pynative_executor.grad_flag()
    try:
        yield
    except BaseException as error:
        if not before or isinstance(error, always):
            _pynative_executor.clear_res()
            _pynative_executor.set_grad_flag(before)
        raise


@contextlib.contextmanager
def native_recording(on):
    """MindSpore's own recording on or off; what was before comes back."""
    before = _pynative_executor.grad_flag()
    _pynative_executor.set_grad_flag(on)
    try:
        yield
    finally:
        _pynative_executor.set_grad_flag(before)


@contextlib.contextmanager
def inside_native_gradient():
    """Our tape inside a gradient of MindSpore's own: its recording pauses, and its graphs are left alone."""
    state.graphs += 1
    try:
        with native_recording(False):
            yield
    finally:
        state.graphs -= 1


def in_native_graph(cell, function, args, kwargs):
    """`function(*args, **kwargs)`, the call of a Cell, inside a graph of MindSpore's own, which a Cell with `bprop` needs."""
    outermost = not state.graphs
    state.graphs += 1
    _pynative_executor.new_graph(cell, *args, **kwargs)
    try:
        output = function(*args, **kwargs)
        _pynative_executor.end_graph(cell, output, *args, **kwargs)
    finally:
        state.graphs -= 1
        if outermost:
            _pynative_executor.clear_res()  # it would keep every graph for a gradient that nobody asks for this way
            _pynative_executor.set_grad_flag(True)
    return output


@contextlib.contextmanager
def pynative():
    """MindSpore's dynamic mode, whatever mode the program chose: what runs on our tape runs call by call."""
    if context._get_mode() != context.GRAPH_MODE:
        yield
        return
    context.set_context(mode=context.PYNATIVE_MODE)
    try:
        yield
    finally:
        context.set_context(mode=context.GRAPH_MODE)


@contextlib.contextmanager
def one_node():
    """The run of a MindSpore function as one node of our tape: a tensor of ours that turns up inside is none of its inputs."""
    before, state.weights = state.weights, ()
    state.opaque += 1
    try:
        yield
    finally:
        state.opaque -= 1
        state.weights = before


def meet(arrays):
    """Our tensors and these of MindSpore's are about to meet, where their histories cannot be joined: `Crossed` if somebody can
    take our route instead, RuntimeError if a history would be lost."""
    if state.weights:
        return
    recording = _pynative_executor.grad_flag()
    if state.watchers and (recording or state.opaque):
        raise Crossed
    if recording and any(array._requires_grad and not isinstance(array, mindspore.Parameter) for array in arrays):
        raise RuntimeError(
            "a MindSpore tensor with a history of MindSpore's own reached a torch operator, and gradients would stop here; "
            "wrap the torch module with msadapter_hook.interop.as_cell, turn a constant into MindSpore's with "
            "msadapter_hook.interop.convert_tensor(t, 'ms'), or differentiate with mindspore.value_and_grad")
