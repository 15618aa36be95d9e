# Several modules on several inputs; on one device, one after another.
from ... import Tensor

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj):
    """A tensor found in `obj` (tensor, list, tuple, dictionary), or None."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, (list, tuple)):
        return next((found for found in map(get_a_var, obj) if isinstance(found, Tensor)), None)
    if isinstance(obj, dict):
        return get_a_var(list(obj.items()))
    return None


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """Outputs of `modules`, each on its inputs (a tuple or one value) and keyword arguments.

    Source: PyTorch, torch.nn.parallel.parallel_apply.
    """
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    kwargs_tup = kwargs_tup if kwargs_tup is not None else ({},) * len(modules)
    if len(modules) != len(kwargs_tup):
        raise AssertionError("The number of modules is not equal to the number of keyword arguments")
    return [
        module(*(value if isinstance(value, (list, tuple)) else (value,)), **kwargs)
        for module, value, kwargs in zip(modules, inputs, kwargs_tup)
    ]
