"""torch.compile: a module or function that asks for compiled replay of what it records."""

import functools

from msadapter_hook.tape.replay import policy as _policy

from .nn import Module

__all__ = ["OptimizedModule", "compile"]


class OptimizedModule(Module):
    """A module under torch.compile; parameters and attributes are the original's. Source: PyTorch, torch.compile."""

    def __init__(self, mod):
        super().__init__()
        self._orig_mod = mod
        self.training = mod.training

    def forward(self, *args, **kwargs):
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._orig_mod, name)


def compile(model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, disable=False, name=None):
    """A callable that behaves as `model`; what it records is replayed compiled. Source: PyTorch, torch.compile."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if model is None:
        return lambda fn: compile(fn, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options,
                                  disable=disable)
    if not callable(model):
        raise RuntimeError("torch.compile expects a callable")
    if disable:
        return model
    _policy.wanted += 1  # replays are compiled from their third run on
    if isinstance(model, Module):
        return OptimizedModule(model)

    @functools.wraps(model)
    def compiled(*args, **kwargs):
        return model(*args, **kwargs)

    compiled._torchdynamo_orig_callable = model
    return compiled
