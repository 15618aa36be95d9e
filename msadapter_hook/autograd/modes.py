"""Grad modes as contexts and decorators: no_grad, enable_grad, set_grad_enabled, inference_mode."""

import functools
import inspect

from msadapter_hook.tape.recording import state


class _Mode:
    """A context that sets the grad mode; as a decorator it does so around each call (and each step of a generator)."""

    def __call__(self, function):
        if inspect.isclass(function):
            raise TypeError(f"Decorating classes is not supported: {function.__name__}; decorate its methods")
        if inspect.isgeneratorfunction(function):
            return self._generator(function)

        @functools.wraps(function)
        def decorated(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return decorated

    def _generator(self, function):
        @functools.wraps(function)
        def decorated(*args, **kwargs):
            inner = function(*args, **kwargs)
            try:
                with self.clone():
                    response = inner.send(None)
                while True:
                    try:
                        request = yield response
                    except GeneratorExit:
                        with self.clone():
                            inner.close()
                        raise
                    except BaseException as error:
                        with self.clone():
                            response = inner.throw(error)
                    else:
                        with self.clone():
                            response = inner.send(request)
            except StopIteration as stop:
                return stop.value

        return decorated

    def __enter__(self):
        self._before = state.enabled, state.inference
        self._set()

    def __exit__(self, *exc):
        state.enabled, state.inference = self._before

    def clone(self):
        return type(self)()


class _PlainMode(_Mode):
    """A mode without arguments: `@no_grad` works as well as `@no_grad()`."""

    def __new__(cls, function=None):
        self = object.__new__(cls)
        return self if function is None else self(function)


class no_grad(_PlainMode):
    """Nothing is recorded. Source: PyTorch, torch.no_grad."""

    __module__ = "torch.autograd.grad_mode"

    def _set(self):
        state.enabled = False


class enable_grad(_PlainMode):
    """Operations are recorded. Source: PyTorch, torch.enable_grad."""

    __module__ = "torch.autograd.grad_mode"

    def _set(self):
        state.enabled = not state.inference  # in inference mode nothing is ever recorded


class set_grad_enabled(_Mode):
    """Recording on or off, at once; as a context the mode before comes back. Source: PyTorch, torch.set_grad_enabled."""

    __module__ = "torch.autograd.grad_mode"

    def __init__(self, mode):
        self.mode = bool(mode)
        self._before = state.enabled, state.inference
        state.enabled = self.mode

    def __call__(self, function):
        state.enabled = self._before[0]
        return super().__call__(function)

    def __enter__(self):
        state.enabled = self.mode

    def clone(self):
        return set_grad_enabled(self.mode)

    def __repr__(self):
        return f"set_grad_enabled(mode={self.mode})"


class inference_mode(_Mode):
    """Nothing is recorded, and what is made is never part of a graph. Source: PyTorch, torch.inference_mode."""

    __module__ = "torch.autograd.grad_mode"

    def __new__(cls, mode=True):
        self = object.__new__(cls)
        self.mode = True if callable(mode) else mode
        return self(mode) if callable(mode) else self

    def _set(self):
        state.enabled = not self.mode
        state.inference = bool(self.mode)

    def clone(self):
        return inference_mode(self.mode)


def is_grad_enabled() -> bool:
    """Whether operations are recorded in this thread. Source: PyTorch, torch.is_grad_enabled."""
    return state.enabled


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on in this thread. Source: PyTorch, torch.is_inference_mode_enabled."""
    return state.inference
