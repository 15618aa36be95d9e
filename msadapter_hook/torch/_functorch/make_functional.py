"""Modules as functions of their parameters, the way functorch had it; torch.func.functional_call is the newer one."""

import copy

from .. import nn, stack
from .functional_call import functional_call

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "make_functional",
           "make_functional_with_buffers"]


class FunctionalModuleWithBuffers(nn.Module):
    """Called with (parameters, buffers, *inputs). Source: PyTorch, functorch.make_functional_with_buffers."""

    def __init__(self, stateless, parameters, buffers):
        super().__init__()
        self.stateless_model = stateless
        self.param_names, self.buffer_names = tuple(parameters), tuple(buffers)

    def forward(self, params, buffers, *args, **kwargs):
        state = {**dict(zip(self.param_names, params)), **dict(zip(self.buffer_names, buffers))}
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """Called with (parameters, *inputs). Source: PyTorch, functorch.make_functional."""

    def forward(self, params, *args, **kwargs):
        return super().forward(params, (), *args, **kwargs)


def _parts(model, detached):
    parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    values = [p.detach() if detached else p for p in parameters.values()]
    return copy.deepcopy(model), parameters, buffers, tuple(values)


def make_functional(model, disable_autograd_tracking=False):
    """(function, parameters) of a module without buffers. Source: PyTorch, functorch.make_functional."""
    stateless, parameters, buffers, values = _parts(model, disable_autograd_tracking)
    if buffers:
        raise RuntimeError("make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead.")
    return FunctionalModule(stateless, parameters, {}), values


def make_functional_with_buffers(model, disable_autograd_tracking=False):
    """(function, parameters, buffers). Source: PyTorch, functorch.make_functional_with_buffers."""
    stateless, parameters, buffers, values = _parts(model, disable_autograd_tracking)
    return FunctionalModuleWithBuffers(stateless, parameters, buffers), values, tuple(buffers.values())


def combine_state_for_ensemble(models):
    """(function, stacked parameters, stacked buffers) of models of one kind. Source: PyTorch,
    functorch.combine_state_for_ensemble."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    made = [make_functional_with_buffers(m) for m in models]
    parameters = tuple([stack(list(p)).detach().requires_grad_() for p in zip(*[m[1] for m in made])])
    return made[0][0], parameters, tuple([stack(list(b)) for b in zip(*[m[2] for m in made])])
