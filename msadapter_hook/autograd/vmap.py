"""Mapping a function over samples: it runs once for each, with the sample's own shapes, and its results are stacked.

The samples are views of what is mapped over, so writes to them reach it. Tensors from outside are shared by all samples:
each sample finds them as they were before, and has to write what the others write. What depends on a sample is followed from
operator to operator: PyTorch refuses to let Python look at it, and so do the samples here.
"""

import contextlib
import sys
from bisect import bisect

import numpy as np

from msadapter_hook.ops.refusals import CONTROL_FLOW, outside
from msadapter_hook.ops.tables import interceptors
from msadapter_hook.tape import no_grad
from msadapter_hook.tape.recording import state
from msadapter_hook.tensor.generator import default_generator
from msadapter_hook.tensor.lanes import Lanes
from msadapter_hook.tensor.lanes import state as drawing
from msadapter_hook.tensor.storage import births

SHARED_WRITE = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more "
    "elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over in a vmap. Please try "
    "to use out-of-place operators instead of inplace arithmetic.")


_DYNAMIC = ("vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::{}. Please file an "
            "issue at https://github.com/pytorch/pytorch/issues if you need this feature.")
REFUSED = {  # operators whose results say more of one sample than its shape does
    "nonzero": _DYNAMIC.format("nonzero"), "argwhere": _DYNAMIC.format("nonzero"), "unique": _DYNAMIC.format("_unique2"),
    "unique_consecutive": _DYNAMIC.format("unique_consecutive"),
    "masked_select": "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for each "
                     "batch this would return a differently shaped Tensor. Please file an issue at "
                     "https://github.com/pytorch/pytorch/issues if you need this feature.",
    "equal": "Batching rule not implemented for aten::equal. We could not generate a fallback.",
    "allclose": "vmap over torch.allclose isn't supported yet. Please file an issue at https://github.com/pytorch/pytorch/issues if you "
                "need this feature.",
    "is_nonzero": CONTROL_FLOW,
}


class _Watching:
    """How many mapped calls run in all threads: while there are any, operators are watched."""

    count = 0


def _watch(operator, overload, bound):
    """Called before each operator: its results depend on a sample where its arguments do."""
    mapped, depends = state.mapped, False
    while mapped is not None:
        if mapped.maps:
            mine = any(mapped.depends(t) for t in overload.given(bound))
            mapped.mark(mine)
            depends = depends or mine
        mapped = mapped.outer
    if depends and outside(sys._getframe(3)):
        name = operator.name
        if name in REFUSED:
            raise RuntimeError(REFUSED[name])
        if name == "where" and len(bound) == 1:
            raise RuntimeError(_DYNAMIC.format("where"))


class Mapped:
    """One mapped call: watches writes to tensors that all samples share, and what depends on the samples.

    Storages are numbered by birth. What is born depends on a sample if the arguments of the operator called last did: `marks`
    are the births at which that changed.
    """

    maps = True

    def __init__(self, tensors):
        self.given = {id(t) for t in tensors}
        self.dependent = {t._history.storage.born for t in tensors}
        self.own = {id(t._history.storage) for t in tensors}
        # what is born from now on belongs to one sample
        self.born = next(births)
        self.before = []  # (history, value, version) of the shared tensors that were written, as they were
        self.writes, self.number, self.first = [], 0, True
        self.marks, self.flags = [self.born], [True]
        self.outer = self.lanes = None

    def __enter__(self):
        self.outer, state.mapped = state.mapped, self
        state.transforms += 1
        if not _Watching.count:
            interceptors.append(_watch)
        _Watching.count += 1
        return self

    def __exit__(self, *exc):
        state.mapped = self.outer
        state.transforms -= 1
        _Watching.count -= 1
        if not _Watching.count:
            interceptors.remove(_watch)

    def mark(self, depends):
        """From now on what is born depends on a sample, or does not."""
        if self.flags[-1] != depends:
            self.marks.append(next(births))
            self.flags.append(depends)

    def owns(self, tensor):
        """Whether a tensor is made of a sample of this call."""
        if tensor._compound or id(tensor) in self.given:
            return False
        born = tensor._history.storage.born
        return born in self.dependent or born > self.born and self.flags[bisect(self.marks, born) - 1]

    def depends(self, tensor):
        """Whether a tensor is made of a sample, of this call or of one around it."""
        return self.owns(tensor) or self.outer is not None and self.outer.depends(tensor)

    @contextlib.contextmanager
    def left(self):
        """Inside, this call and what runs in it are not there; what is made depends on its sample."""
        before = state.mapped, drawing.lanes
        self.mark(True)
        state.mapped, drawing.lanes = self.outer, self.lanes.outer
        try:
            yield
        finally:
            state.mapped, drawing.lanes = before

    def start(self, first):
        """The next sample begins: shared tensors are again as they were."""
        self.first, self.number = first, 0
        if not first:
            self._restore()

    def _restore(self):
        for history, value, version in reversed(self.before):
            history.value = value
            history.storage.written(history, value)
            history.version.count = version

    def written(self, history, value):
        """Called for each write before it happens. RuntimeError where samples write different things to one tensor."""
        if self.flags[-1]:
            self.dependent.add(history.storage.born)
        if history.storage.born < self.born and id(history.storage) not in self.own:
            place, self.number = self.number, self.number + 1
            if self.first:
                self.before.append((history, history.read(), history.version.count))
                self.writes.append(value.detach())
            elif place >= len(self.writes) or not _same(self.writes[place], value):
                self._restore()
                raise RuntimeError(SHARED_WRITE)
        if self.outer is not None:
            self.outer.written(history, value)


def _same(a, b):
    return a.shape == b.shape and np.array_equal(a.numpy, b.numpy, equal_nan=a.dtype.kind in "fc")


def run(function, size, mode, tensors, chunk=None):
    """`[function(i) for i in range(size)]`, with the random draws of a batch (in pieces of `chunk` samples)."""
    results = []
    chunk = chunk or size
    start = default_generator.clone_state() if mode == "same" and chunk < size else None
    with Mapped(tensors) as mapped:
        for first in range(0, size, chunk):
            if start is not None:
                default_generator.set_state(start.get_state())
            with Lanes(mode, min(chunk, size - first)) as mapped.lanes:
                for i in range(first, min(first + chunk, size)):
                    mapped.lanes.start(i - first)
                    mapped.start(i == 0)
                    results.append(function(i))
    return results


def run_empty(function):
    """The results for a sample of zeros, which only tell structure and shapes."""
    before = default_generator.get_state()
    with Mapped(()) as mapped, Lanes("different", 1) as mapped.lanes, no_grad():
        mapped.lanes.start(0)
        try:
            return function()
        finally:
            default_generator.set_state(before)


def equal(tensors):
    """Whether all samples gave the same value."""
    first = tensors[0]
    return all(t is first or _same(first.value.detach(), t.value.detach()) for t in tensors[1:])
