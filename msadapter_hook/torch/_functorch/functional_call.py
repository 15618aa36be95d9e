"""Calls of modules with tensors of the caller's, and ensembles of modules as stacked tensors."""

from .. import stack
from ..nn.utils.stateless import _functional_call

__all__ = ["functional_call", "stack_module_state"]


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """`module(*args, **kwargs)` with the given tensors for its parameters and buffers. Source: PyTorch,
    torch.func.functional_call."""
    given = parameter_and_buffer_dicts
    if isinstance(given, dict):
        merged = given
    elif isinstance(given, (list, tuple)):
        if not all(isinstance(d, dict) for d in given):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [name for d in given for name in d]
        repeated = list(dict.fromkeys(n for n in names if names.count(n) > 1))
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        merged = {k: v for d in given for k, v in d.items()}
    else:
        raise ValueError(f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(given)}")
    return _functional_call(module, merged, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models):
    """(parameters, buffers) of like models, each stacked along a new first dimension. Source: PyTorch,
    torch.func.stack_module_state."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = {k: _stacked(k, [dict(m.named_parameters())[k] for m in models]) for k, _ in models[0].named_parameters()}
    buffers = {k: _stacked(k, [dict(m.named_buffers())[k] for m in models]) for k, _ in models[0].named_buffers()}
    return parameters, buffers


def _stacked(name, tensors):
    needs = [t.requires_grad for t in tensors]
    if len(set(needs)) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    made = stack([t.detach() for t in tensors])
    return made.requires_grad_() if needs[0] else made


