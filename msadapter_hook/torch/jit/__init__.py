"""torch.jit: scripts and traces run as the Python they were made of; files of compiled programs are refused."""

import functools
import warnings

__all__ = ["Attribute", "Final", "ScriptFunction", "ScriptModule", "annotate", "export", "freeze", "fork", "ignore", "interface",
           "is_scripting", "is_tracing", "isinstance", "load", "optimize_for_inference", "save", "script", "script_if_tracing", "trace",
           "trace_module", "unused", "wait"]

from typing import Final

from ..nn import Module

_isinstance = isinstance


class ScriptModule(Module):
    """What script and trace give for a module: a module. Source: PyTorch, torch.jit.ScriptModule."""


class ScriptFunction:
    """What script and trace give for a function: a callable. Source: PyTorch, torch.jit.ScriptFunction."""

    def __init__(self, function):
        functools.update_wrapper(self, function)
        self._function = function

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def save(self, f, **kwargs):
        save(self, f)


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """The module or function itself, run as Python. Source: PyTorch, torch.jit.script."""
    if _isinstance(obj, (Module, type)):
        return obj
    return ScriptFunction(obj) if callable(obj) else obj


def trace(func, example_inputs=None, optimize=None, check_trace=True, check_inputs=None, check_tolerance=1e-5, strict=True,
          _force_outplace=False, _module_class=None, _compilation_unit=None, example_kwarg_inputs=None, _store_inputs=True):
    """The module or function itself, after one run with the example inputs. Source: PyTorch, torch.jit.trace."""
    from .. import no_grad

    if func is None or not callable(func):
        raise RuntimeError("trace expects a callable")
    with no_grad():
        if example_kwarg_inputs is not None:
            func(**example_kwarg_inputs)
        elif example_inputs is not None:
            func(*(example_inputs if _isinstance(example_inputs, (tuple, list)) else (example_inputs,)))
    return func if _isinstance(func, Module) else ScriptFunction(func)


def trace_module(mod, inputs, **options):
    """The module itself, after one run of each method named. Source: PyTorch, torch.jit.trace_module."""
    for name, example in inputs.items():
        getattr(mod, name)(*(example if _isinstance(example, tuple) else (example,)))
    return mod


def _refused(name):
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"torch.jit.{name}: there are no compiled programs to write or read; save the state_dict with "
                                  "torch.save and build the module from its class")

    refuse.__name__ = name
    return refuse


save, load = _refused("save"), _refused("load")


def ignore(drop=False, **kwargs):
    """Mark a function that a compiler leaves out: the function itself. Source: PyTorch, torch.jit.ignore."""
    return drop if callable(drop) else lambda fn: fn


def unused(fn):
    return fn


def export(fn):
    return fn


def interface(obj):
    return obj


def script_if_tracing(fn):
    return fn


_script_if_tracing = script_if_tracing


def _overload_method(fn):
    return fn


def _overload(fn):
    return fn


def is_scripting():
    """False: programs run as Python. Source: PyTorch, torch.jit.is_scripting."""
    return False


def is_tracing():
    """False: a trace is one run. Source: PyTorch, torch.jit.is_tracing."""
    return False


def annotate(the_type, the_value):
    return the_value


def isinstance(obj, target_type):
    return _isinstance(obj, target_type)


class Attribute:
    """A value with its type. Source: PyTorch, torch.jit.Attribute."""

    def __new__(cls, value, type):
        return value


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """The module itself, which must be in eval mode. Source: PyTorch, torch.jit.freeze."""
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before "
                           "freezing.")
    return mod


def optimize_for_inference(mod, other_methods=None):
    return mod


class Future:
    """The result of fork. Source: PyTorch, torch.jit.Future."""

    def __init__(self, value):
        self._value = value

    def wait(self):
        return self._value


def fork(func, *args, **kwargs):
    """Run now; `wait` gives the result. Source: PyTorch, torch.jit.fork."""
    return Future(func(*args, **kwargs))


def wait(future):
    return future.wait()


def enable_onednn_fusion(enabled):
    """There is no such fuser."""
    warnings.warn("torch.jit.enable_onednn_fusion has no effect here", stacklevel=2)
