# Hooks that apply to every Module: their tables, and the functions that register them (public in `modules.module`).
import types
from collections import OrderedDict

from ...utils.hooks import RemovableHandle

_global_buffer_registration_hooks = OrderedDict()
_global_module_registration_hooks = OrderedDict()
_global_parameter_registration_hooks = OrderedDict()
_global_forward_pre_hooks = OrderedDict()
_global_forward_hooks = OrderedDict()
_global_forward_hooks_with_kwargs = OrderedDict()
_global_forward_hooks_always_called = OrderedDict()
_global_backward_pre_hooks = OrderedDict()
_global_backward_hooks = OrderedDict()


class _Kind:
    # Global backward hooks are all of the old kind (False) or all full (True); None while there is none.
    full = None


def _has_any_global_hook():
    return bool(
        _global_forward_pre_hooks
        or _global_forward_hooks
        or _global_backward_pre_hooks
        or _global_backward_hooks
        or _global_forward_hooks_with_kwargs
        or _global_forward_hooks_always_called
    )


def _register(table, hook, extra=()):
    handle = RemovableHandle(table, extra_dict=list(extra)) if extra else RemovableHandle(table)
    table[handle.id] = hook
    return handle


def register_module_buffer_registration_hook(hook):
    """Call `hook(module, name, buffer)` whenever a buffer is registered; a returned value replaces the buffer."""
    return _register(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook):
    """Call `hook(module, name, submodule)` whenever a submodule is registered; a returned value replaces it."""
    return _register(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook):
    """Call `hook(module, name, param)` whenever a parameter is registered; a returned value replaces it."""
    return _register(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook):
    """Call `hook(module, args)` before the forward of every module; a returned value replaces the arguments."""
    return _register(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Call `hook(module, args, output)` (`with_kwargs`: `(module, args, kwargs, output)`) after every forward."""
    handle = _register(
        _global_forward_hooks, hook, [_global_forward_hooks_with_kwargs, _global_forward_hooks_always_called]
    )
    if with_kwargs:
        _global_forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        _global_forward_hooks_always_called[handle.id] = True
    return handle


def register_module_backward_hook(hook):
    """Call `hook(module, grad_input, grad_output)` in backward (old kind). RuntimeError when mixed with full hooks."""
    if _Kind.full is True:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
            "Please use only one of them."
        )
    _Kind.full = False
    return _register(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook):
    """Call `hook(module, grad_output)` before the backward of every module; a returned value replaces it."""
    return _register(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook):
    """Call `hook(module, grad_input, grad_output)` in every module's backward; it may replace grad_input."""
    if _Kind.full is False:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
            "Please use only one of them."
        )
    _Kind.full = True
    return _register(_global_backward_hooks, hook)


class _SharedTables(types.ModuleType):
    # A module in which assigning one of the tables above assigns it wherever it is used.

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "_global_is_full_backward_hook":
            _Kind.full = value
        elif name.startswith("_global_"):
            for namespace in self._sharing:
                namespace[name] = value


def share_tables(module, *others):
    """Programs and libraries reset the tables by assigning to `torch.nn.modules.module`: make that reach all users."""
    module.__dict__["_sharing"] = (globals(), *[o.__dict__ for o in others])
    module.__class__ = _SharedTables
