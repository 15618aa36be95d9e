# Splitting inputs over devices and collecting outputs: with one device, moving.
from ... import Tensor, cat, stack

__all__ = ["scatter", "scatter_kwargs", "gather"]


def _is_namedtuple(obj):
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")


def is_namedtuple(obj):
    """Whether `obj` is a named tuple."""
    return _is_namedtuple(obj)


def scatter(inputs, target_gpus, dim=0):
    """[inputs on the device]; NotImplementedError for several devices. Source: PyTorch, torch.nn.parallel.scatter."""
    if len(target_gpus) > 1:
        raise NotImplementedError(
            "torch.nn.parallel.scatter: several devices in one process are not available; start one process a device."
        )

    def move(obj):
        if isinstance(obj, Tensor):
            return obj.to(target_gpus[0])
        if _is_namedtuple(obj):
            return type(obj)(*map(move, obj))
        if isinstance(obj, (list, tuple)):
            return type(obj)(map(move, obj))
        if isinstance(obj, dict):
            return type(obj)((key, move(value)) for key, value in obj.items())
        return obj

    return [move(inputs) for _ in target_gpus]


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """(tuple of positional, tuple of keyword arguments), one entry a device."""
    return tuple(scatter(inputs, target_gpus, dim)), tuple(scatter(kwargs or {}, target_gpus, dim))


def gather(outputs, target_device, dim=0):
    """Outputs of several replicas joined along `dim`, leaf by leaf. Source: PyTorch, torch.nn.parallel.gather."""
    first = outputs[0]
    if isinstance(first, Tensor):
        join = stack if first.dim() == 0 else cat
        moved = [output.to(target_device) for output in outputs]
        return join(moved) if first.dim() == 0 else join(moved, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(output) != len(first) for output in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([output[key] for output in outputs], target_device, dim)) for key in first)
    joined = [gather(list(parts), target_device, dim) for parts in zip(*outputs)]
    return type(first)(*joined) if _is_namedtuple(first) else type(first)(joined)
