"""The gradient of a pure function through MindSpore's own differentiation."""

import contextlib

from mindspore import context as _context
from mindspore.common.api import _pynative_executor
from mindspore.ops import composite as _composite

from . import runtime  # noqa: F401

__all__ = ["Gradient"]


@contextlib.contextmanager
def _as_recorded():
    """MindSpore in dynamic mode with gradients allowed, whatever the program chose for code of its own."""
    graph, allowed = _context.get_context("mode") == _context.GRAPH_MODE, _pynative_executor.enable_grad()
    if graph:
        _context.set_context(mode=_context.PYNATIVE_MODE)
    _pynative_executor.set_enable_grad(True)
    try:
        yield
    finally:
        _pynative_executor.set_enable_grad(allowed)
        if graph:
            _context.set_context(mode=_context.GRAPH_MODE)


def unrecorded(function, arguments):
    """`function(*arguments)` outside of any record of MindSpore's own: a gradient of its that failed leaves its record open, and
    the call would become part of it."""
    if not _pynative_executor.grad_flag():
        return function(*arguments)
    _pynative_executor.set_grad_flag(False)
    try:
        return function(*arguments)
    finally:
        _pynative_executor.set_grad_flag(True)


def _plain():
    """Whether MindSpore is in the state that replay needs; asked at each call."""
    return _context._get_mode() != _context.GRAPH_MODE and _pynative_executor.enable_grad()


class Gradient:
    """vector-Jacobian products of `function` (arrays in, tuple of arrays out) by `mindspore.grad`.

    `positions`: the inputs to differentiate. The call takes the inputs and one cotangent per output, and gives the outputs
    and one gradient per position. Source: MindSpore, `mindspore.value_and_grad` with `sens_param`.
    """

    __slots__ = ("_call",)

    def __init__(self, function, positions: tuple):
        operation = _composite.base._Grad(get_by_position=True, sens_param=True, get_value=True)
        with _as_recorded():
            self._call = operation(function, None, positions)

    def __call__(self, inputs: tuple, cotangents: tuple) -> tuple:
        if _plain():
            values, grads = unrecorded(self._call, (*inputs, cotangents))
        else:
            with _as_recorded():
                values, grads = unrecorded(self._call, (*inputs, cotangents))
        return values, grads if isinstance(grads, tuple) else (grads,)
