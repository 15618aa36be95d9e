"""Graph mode: what uses served modules never reaches MindSpore's parser; it runs through recorded programs instead.

MindSpore's own functions and Cells are compiled as ever.
"""

import contextlib
import functools
import types

import wrapt
from mindspore import context

from msadapter_hook.tape.replay import policy

from . import modes
from .presence import adapter_class, takes_part
from .references import is_mixed, refers


def call_cell(cell, run, args, kwargs):
    """A Cell called with MindSpore tensors only: in graph mode one with served modules inside runs call by call."""
    if context._get_mode() == context.GRAPH_MODE:
        if is_mixed(cell):
            with asked_for(), modes.pynative(), modes.left_clean():
                return run(*args, **kwargs)
        return run(*args, **kwargs)
    with modes.left_clean():
        return run(*args, **kwargs)


@contextlib.contextmanager
def asked_for():
    """Inside, recorded programs are compiled as soon as they repeat: the program asked for graphs."""
    policy.wanted += 1
    try:
        yield
    finally:
        policy.wanted -= 1


def graphs_wanted():
    """`asked_for()` in graph mode, nothing in dynamic mode."""
    return asked_for() if context._get_mode() == context.GRAPH_MODE else contextlib.nullcontext()


def jit(native, args, kwargs):
    """mindspore.jit, as function and as decorator with options."""
    if args and callable(args[0]):
        return _dispatching(args[0], native(*args, **kwargs))
    if callable(kwargs.get("function")):
        return _dispatching(kwargs["function"], native(*args, **kwargs))
    decorator = native(*args, **kwargs)
    return functools.wraps(decorator)(lambda function: _dispatching(function, decorator(function)))


def _dispatching(function, compiled):
    """`compiled`, unless something of ours takes part: then `function` itself, whose gradients are recorded programs.

    What comes out is of the kind that MindSpore gives (its parser looks for functions and methods).
    """
    if isinstance(compiled, type):
        construct = vars(compiled).get("construct")
        if hasattr(construct, "__wrapped_by_jit__"):
            compiled.construct = _choosing(construct.__wrapped__, construct)
        return compiled
    if isinstance(compiled, types.MethodType):
        # of a Cell MindSpore compiles `construct`; we call the Cell
        return types.MethodType(_choosing(lambda owner, *args, **kwargs: function(*args, **kwargs), compiled.__func__),
                                compiled.__self__)
    if not isinstance(compiled, types.FunctionType):
        return compiled
    if (getattr(function, "__module__", None) or "").startswith("mindspore.") and not isinstance(function, wrapt.FunctionWrapper):
        return compiled  # MindSpore compiles a function of its own, as replay does
    return _choosing(function, compiled)


def _choosing(function, compiled):
    @functools.wraps(compiled)
    def choose(*args, **kwargs):
        ours = adapter_class()
        if ours is None:
            return compiled(*args, **kwargs)
        if takes_part(ours, args) or takes_part(ours, kwargs.values()) or refers(function) or refers((args, kwargs)):
            with asked_for(), modes.pynative():
                return function(*args, **kwargs)
        return compiled(*args, **kwargs)

    choose.__wrapped__ = getattr(compiled, "__wrapped__", function)  # one step to the function, as MindSpore's parser expects
    return choose
