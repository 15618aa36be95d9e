# How a module's parameters and buffers are moved and converted: changed in place, swapped, or made anew.
from ... import __future__ as _future
from ... import no_grad
from ..parameter import Parameter


def convert(module, fn):
    """Replace what the module itself holds by what `fn` makes of it. A parameter keeps its identity where it can (optimizers hold
    it): its data are exchanged, or all of it is swapped (torch.__future__); to or from "meta" it cannot."""
    for name, param in module._parameters.items():
        if param is None:
            continue
        with no_grad():
            applied = fn(param)
        if _future.get_swap_module_params_on_conversion():
            _swap(param, applied, fn)
            continue
        places = (param.device.type, applied.device.type)
        in_place = not _future.get_overwrite_module_params_on_conversion() and (places[0] == places[1] or "meta" not in places)
        grad = param.grad
        if in_place:
            param.data = applied
            target = param
        else:
            target = module._parameters[name] = Parameter(applied, param.requires_grad)
        if grad is not None:
            with no_grad():
                grad_applied = fn(grad)
            if in_place:
                target.grad.data = grad_applied
            else:
                target.grad = grad_applied.requires_grad_(grad.requires_grad)
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = fn(buffer)


def _swap(param, applied, fn):
    from ...utils import swap_tensors

    grad, param.grad = param.grad, None
    swap_tensors(param, Parameter(applied, requires_grad=param.requires_grad))
    if grad is not None:
        with no_grad():
            made = fn(grad)
        param.grad = made.requires_grad_(grad.requires_grad)


def load(param, value, assign):
    """Swap a parameter or buffer with what its `module_load` makes of the loaded tensor."""
    from ...utils import swap_tensors

    loaded = param.module_load(value, assign=assign)
    if loaded is value or loaded is param:
        raise RuntimeError("module_load returned one of self or other, please .detach() the result if returning one of the inputs in "
                           "module_load")
    if isinstance(param, Parameter):
        if not isinstance(loaded, Parameter):
            loaded = Parameter(loaded, requires_grad=param.requires_grad)
        else:
            loaded.requires_grad_(param.requires_grad)
    swap_tensors(param, loaded)
