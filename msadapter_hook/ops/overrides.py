"""`__torch_function__`: how subclasses of Tensor take part in the choice of what an operator does."""

import threading

from msadapter_hook.tensor import Tensor


class _State(threading.local):
    disabled = 0  # contexts in which subclasses are plain tensors
    modes = ()  # function modes entered, outermost first
    skipped = False  # the next question whether anybody takes part is answered with no


state = _State()
entered = 0  # function modes entered in any thread: where it is 0, nobody looks for one


class DisableTorchFunctionSubclass:
    """Context: subclasses are treated as plain tensors. Source: PyTorch, torch._C.DisableTorchFunctionSubclass."""

    def __enter__(self):
        state.disabled += 1

    def __exit__(self, *exc):
        state.disabled -= 1


class unseen(DisableTorchFunctionSubclass):
    """Context: neither subclasses nor function modes are asked."""

    def __enter__(self):
        super().__enter__()
        self._modes, state.modes = state.modes, ()

    def __exit__(self, *exc):
        state.modes = self._modes
        super().__exit__(*exc)


def _disabled_torch_function(func, args, kwargs):
    with DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


def torch_function(cls, func, types, args=(), kwargs=None):
    """The default: run the operator, and give results the subclass's type."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return _convert(result, cls)


def _convert(result, cls):
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if type(result) in (tuple, list):
        return type(result)([_convert(r, cls) for r in result])
    return result


def call_override(function, tensors, args, kwargs):
    """Ask the subclasses among `tensors`, the most derived first. TypeError where all decline."""
    found = []
    for t in tensors:
        kind = type(t)
        if getattr(kind, "_asks", not isinstance(t, Tensor)) and all(type(f) is not kind for f in found):
            at = next((i for i, f in enumerate(found) if issubclass(kind, type(f))), len(found))
            found.insert(at, t)
    types = tuple([type(t) for t in found])
    for t in found:
        result = type(t).__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(f"no implementation found for 'torch.{function.__name__}' on types that implement __torch_function__: "
                    f"{[t.__name__ for t in types]}")


Tensor._disabled_torch_function = staticmethod(_disabled_torch_function)
Tensor.__torch_function__ = classmethod(torch_function)


# ------------------------------------------------------------------------------------------------ function modes
def push_mode(mode):
    """Enter a function mode: from here on it is asked first at every operator call of this thread."""
    global entered
    entered += 1
    state.modes = (*state.modes, mode)


def pop_mode():
    """Leave the innermost function mode and give it."""
    global entered
    entered -= 1
    mode, state.modes = state.modes[-1], state.modes[:-1]
    return mode


def call_mode(function, args, kwargs):
    """Ask the innermost function mode of this thread, which is not entered while it answers: what it calls meets the
    modes outside."""
    modes = state.modes
    tensors = [t for t in (*args, *kwargs.values()) if getattr(type(t), "_asks", False)]
    state.modes = modes[:-1]
    try:
        result = modes[-1].__torch_function__(function, tuple({type(t): 0 for t in tensors}), args, kwargs)
        if result is NotImplemented:
            return function(*args, **kwargs)
        return result
    finally:
        state.modes = modes
