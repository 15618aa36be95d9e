"""Whether a function uses something of ours: served modules, tensors, optimizers, or torch itself, by name or by closure."""

import functools
import sys
import types
from pathlib import Path

from mindspore import nn

from msadapter_hook.tensor import Tensor

_SERVED = str(Path(__file__).resolve().parent.parent / "torch")
_DEPTH = 6


@functools.lru_cache(maxsize=4096)
def served_class(cls):
    for base in cls.__mro__:
        module = sys.modules.get(base.__module__)
        if module is not None and (getattr(module, "__file__", None) or "").startswith(_SERVED):
            return True
    return False


def is_module(x):
    """Whether `x` is a module of the served tree."""
    return hasattr(type(x), "_load_from_state_dict") and served_class(type(x))


class Holder(nn.Cell):
    """A Cell around a served module."""


def is_mixed(cell):
    """True for a Cell in whose tree a served module does some of the work."""
    if "_adapter_mixed" in cell.__dict__:
        return True
    found = any(isinstance(inner, Holder) for _, inner in cell.cells_and_names())
    if found:
        cell.__dict__["_adapter_mixed"] = True
    return found


def refers(fn):
    """True where `fn` (a function, method, Cell or other callable) refers to something of ours, directly or through the
    user's functions that it calls. What it builds at run time cannot be seen from here."""
    return _refers(fn, _DEPTH, set())


def _refers(x, depth, seen):
    if isinstance(x, Tensor) or served_class(type(x)):
        return True
    if isinstance(x, nn.Cell):
        if is_mixed(x):
            return True
    if isinstance(x, types.ModuleType):
        return (getattr(x, "__file__", None) or "").startswith(_SERVED)
    if isinstance(x, type):
        return served_class(x)
    if id(x) in seen or depth == 0:
        return False
    seen.add(id(x))
    if isinstance(x, (list, tuple)):
        return len(x) < 1000 and any(_refers(item, depth - 1, seen) for item in x)
    if isinstance(x, dict):
        return len(x) < 1000 and any(_refers(item, depth - 1, seen) for item in x.values())
    if isinstance(x, functools.partial):
        return _refers((x.func, x.args, x.keywords), depth, seen)
    if isinstance(x, types.MethodType):
        return _refers(x.__self__, depth - 1, seen) or _refers(x.__func__, depth, seen)
    module = getattr(type(x), "__module__", "")
    if isinstance(x, types.FunctionType):
        if (x.__module__ or "").partition(".")[0] in ("mindspore", "numpy", "builtins") or x.__globals__.get("__package__") == __package__:
            # what MindSpore, or this package, wraps around a user's function lies in the closure
            return any(_refers(c, depth - 1, seen) for c in _cells(x))
        return any(_refers(found, depth - 1, seen) for found in _names(x))
    wrapped = getattr(x, "__wrapped__", None)
    if wrapped is not None:
        return _refers(wrapped, depth, seen)
    if module.partition(".")[0] in ("builtins", "numpy"):
        return False
    attributes = getattr(x, "__dict__", None)
    if attributes and (callable(x) or not module.startswith("mindspore")):
        if _refers(dict(attributes), depth - 1, seen):
            return True
        return module.partition(".")[0] != "mindspore" and any(
            _refers(getattr(type(x), name, None), depth - 1, seen) for name in ("construct", "__call__", "forward"))
    return False


def _cells(function):
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def _names(function):
    """The objects behind the global names and free variables of a function, those of its inner functions included."""
    yield from _cells(function)
    names, stack = set(), [function.__code__]
    while stack:
        code = stack.pop()
        names.update(code.co_names)
        stack.extend([c for c in code.co_consts if isinstance(c, types.CodeType)])
    for name in names:
        if name in function.__globals__:
            yield function.__globals__[name]
