"""Flat memory of tensors that are updated together: found again from one update to the next, and overwritten where nobody else can
see it. Elsewhere a Value never changes; here it is replaced by another over the same memory."""

import sys
import weakref

import numpy as np

from msadapter_hook.tape import value_of
from msadapter_hook.tape.recording import state

_parts = weakref.WeakKeyDictionary()  # history of the first tensor -> arrays of all of them, one after the other in flat memory


class Flat:
    """The elements of some tensors in one flat array.

    `array`: all elements. `own`: it is the memory of the tensors and nothing else refers to it, so that it may be overwritten.
    """

    __slots__ = ("array", "own", "_tensors")

    def __init__(self, tensors):
        self._tensors = tensors
        parts = [_current(t) for t in tensors]
        known = _parts.get(tensors[0]._history)
        if known is not None and len(known) == len(parts) and all(map(_same, known, parts)):
            self.array = flat = known[0].base
            # to the flat array refer its parts, `flat`, this object and the argument of getrefcount; to a part `known`, `parts`,
            # `part`, what zip keeps, the argument, and values
            self.own = sys.getrefcount(flat) == len(parts) + 3 and all(
                _alone(t, sys.getrefcount(part) - 5) for t, part in zip(tensors, parts))
        else:
            self.array = np.concatenate([t.value.numpy.reshape(-1) for t in tensors]) if len(tensors) > 1 else (
                tensors[0].value.numpy.reshape(-1))
            self.own = False

    def room(self):
        """Where the new elements go: over the old ones, or into memory of their own."""
        return self.array if self.own else np.empty_like(self.array)

    def take(self, new):
        """Make `new`, which `room` gave, the data of the tensors."""
        if new is self.array:
            for t in self._tensors:
                history = t._history
                history.overwritten()
                t._value, t._generation = history.value, history.storage.generation
            return
        at, parts = 0, []
        for t in self._tensors:
            end = at + t._size.numel()
            part = new[at:end].reshape(t._size)
            t._write(value_of(part))
            parts.append(part)
            at = end
        _parts[self._tensors[0]._history] = parts


def _current(tensor):
    """The array of a tensor, None where it is to be read in another way."""
    history = tensor._history
    storage = history.storage
    if tensor._moves or storage.buffer is not None or history.synced != storage.generation:
        return None
    return history.value._numpy


def _same(a, b):
    return a is b


def _alone(tensor, references):
    """Whether all that sees the current data of a tensor is the tensor itself. `references`: how many there are to its array."""
    history = tensor._history
    value, storage = history.value, history.storage
    if (history.views or history.moves or storage.inference or state.mapped is not None or state.levels
            or value.requires_grad and value.leaf is None):
        return False
    raw, array = storage.raw, value._array
    # to a value refer its owner, a name here and the argument; the MindSpore tensor refers to the NumPy array whose memory it shares
    return (sys.getrefcount(value) == 3 + (tensor._value is value)
            and (raw is None or sys.getrefcount(raw) == 3 and raw._numpy is value._numpy and raw._array is None)
            and (array is None or sys.getrefcount(array) == 3)
            and references == 1 + (raw is not None) + (array is not None))
