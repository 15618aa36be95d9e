"""torch.overrides: what takes part in the choice of what an operator does, by `__torch_function__` of classes and of modes."""

import functools as _functools
import inspect as _inspect

from msadapter_hook.ops import overrides as _overrides
from msadapter_hook.ops import tables as _tables

from . import Tensor
from ._refusal import refused as _refused

__all__ = ["enable_reentrant_dispatch", "get_ignored_functions", "get_overridable_functions", "get_testing_overrides",
           "handle_torch_function", "has_torch_function", "is_tensor_like", "is_tensor_method_or_property", "redispatch_function",
           "resolve_name",
           "wrap_torch_function"]


class TorchFunctionMode:
    """A context in which every operator call of the thread asks `__torch_function__(func, types, args, kwargs)` of this object.

    While it answers it is not entered itself. Source: PyTorch, torch.overrides.TorchFunctionMode."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _overrides.push_mode(self)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        _overrides.pop_mode()

    @classmethod
    def push(cls, *args, **kwargs):
        """An object of the class, made by calling it. Source: PyTorch, TorchFunctionMode.push."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that does what would be done without it. Source: PyTorch, torch.overrides.BaseTorchFunctionMode."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def is_tensor_like(inp):
    """Whether `inp` is a Tensor or has `__torch_function__`. Source: PyTorch, torch.overrides.is_tensor_like."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def _takes_part(x):
    kind = type(x)
    if isinstance(x, Tensor):
        return kind._asks and not _overrides.state.disabled
    return hasattr(kind, "__torch_function__") and not isinstance(x, type)


def has_torch_function(relevant_args):
    """Whether one of the arguments decides for itself, or a function mode is entered. Source: PyTorch,
    torch.overrides.has_torch_function."""
    if _overrides.state.skipped:
        _overrides.state.skipped = False
        return False
    return bool(_overrides.state.modes) or any(_takes_part(a) for a in relevant_args)


def has_torch_function_unary(obj):
    """has_torch_function of one argument."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*args):
    """has_torch_function of the arguments given."""
    return has_torch_function(args)


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Ask the mode entered, then the arguments, the most derived class first. TypeError where all decline. Source: PyTorch,
    torch.overrides.handle_torch_function."""
    if _overrides.state.modes:
        return _overrides.call_mode(public_api, args, kwargs)
    return _overrides.call_override(public_api, [a for a in relevant_args if _takes_part(a)], args, kwargs)


def wrap_torch_function(dispatcher):
    """Decorator: the function asks those of its arguments that `dispatcher` gives. Source: PyTorch,
    torch.overrides.wrap_torch_function."""

    def decorate(func):
        @_functools.wraps(func)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorate


@_functools.cache
def _public():
    """(function, its dotted name) of everything that asks `__torch_function__`."""
    found = {}
    for name, entry in _tables.OPERATORS.items():
        if entry.overloads:
            found.setdefault(entry.function, "torch." + name)
    for name in dir(Tensor):
        method = _inspect.getattr_static(Tensor, name)
        if hasattr(method, "__operator__"):
            found.setdefault(method, "torch.Tensor." + name)
    return found


def get_overridable_functions():
    """{namespace: its functions that ask `__torch_function__`}. Source: PyTorch, torch.overrides.get_overridable_functions."""
    import sys

    from . import fft, linalg, nn, special

    spaces = {"torch": sys.modules[__name__.rpartition(".")[0]], "torch.Tensor": Tensor, "torch.nn.functional": nn.functional,
              "torch.linalg": linalg, "torch.fft": fft, "torch.special": special}
    made = {}
    for func, name in _public().items():
        made.setdefault(spaces.get(name.rpartition(".")[0]), []).append(func)
    made.pop(None, None)
    return made


def is_tensor_method_or_property(func):
    """Whether a function given to `__torch_function__` is a method or a property of Tensor. Source: PyTorch,
    torch.overrides.is_tensor_method_or_property."""
    return _public().get(func, "").startswith("torch.Tensor.") or getattr(func, "__name__", "") == "__get__"


def resolve_name(f):
    """The dotted name of a function given to `__torch_function__`, None where it is not known. Source: PyTorch,
    torch.overrides.resolve_name."""
    return _public().get(f)


def get_ignored_functions():
    """Functions that never ask `__torch_function__`: those registered without tensors to ask. Source: PyTorch,
    torch.overrides.get_ignored_functions."""
    return {entry.function for entry in _tables.OPERATORS.values() if not entry.overloads}


def redispatch_function(func, types, args, kwargs):
    """What `func` does with this handler left out; the calls inside it are seen again. Source: PyTorch,
    torch.overrides.redispatch_function."""
    kwargs = kwargs or {}
    if hasattr(func, "__operator__") or hasattr(func, "__guards__"):
        with _overrides.unseen():
            return func(*args, **kwargs)
    _overrides.state.skipped = True  # the function asks `has_torch_function` once
    try:
        return func(*args, **kwargs)
    finally:
        _overrides.state.skipped = False


def enable_reentrant_dispatch():
    """Context for a handler of `__torch_dispatch__`: what it calls is recorded again. Source: PyTorch,
    torch.overrides.enable_reentrant_dispatch."""
    from . import enable_grad

    return enable_grad()


get_testing_overrides = _refused("torch.overrides.get_testing_overrides", "write the overrides you need by hand")
