# Page-locked memory: on the host there is nothing to pin, so batches pass unless they say how to pin themselves.
import collections.abc

from .... import Tensor


def pin_memory(data, device=None):
    """`data` with `pin_memory()` called on what is no tensor but has that method; tensors stay where they are."""
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, collections.abc.Mapping):
        return type(data)({key: pin_memory(value, device) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(d, device) for d in data))
    if isinstance(data, (list, tuple)):
        return [pin_memory(d, device) for d in data]
    return data
