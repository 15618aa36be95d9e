# Exchanging two tensors in place, so that all who hold the one see the other.
import weakref

from msadapter_hook.tensor.core import TensorBase

_NOTHING = object()
_STATE = [name for name in TensorBase.__slots__ if not name.startswith("__")]


def _slots(cls):
    return [name for base in cls.__mro__ if not issubclass(TensorBase, base) and base is not TensorBase
            for name in base.__dict__.get("__slots__", ()) if name not in ("__dict__", "__weakref__")]


def swap_tensors(t1, t2):
    """Swaps data, type, attributes, gradients and places in the graph of two tensors. RuntimeError where the one has slots that the
    other has not. Source: PyTorch, torch.utils.swap_tensors."""
    if t1 is t2:
        return
    slots = _slots(type(t1))
    if set(slots) != set(_slots(type(t2))):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for name in [*_STATE, *slots]:
        first, second = getattr(t1, name, _NOTHING), getattr(t2, name, _NOTHING)
        for t, value in ((t1, second), (t2, first)):
            if value is not _NOTHING:
                setattr(t, name, value)
            elif hasattr(t, name):
                delattr(t, name)
    for t in (t1, t2):
        if t._leaf is not None:
            t._leaf.tensor = weakref.ref(t)
        value = t._history.value
        if value.wrapped and type(value.keep) is weakref.ref:
            value.keep = weakref.ref(t)
