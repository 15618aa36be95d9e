"""Selective checkpoints: two dispatch modes, one that keeps results of operators and one that hands them out in their place."""

from collections import defaultdict, deque

from .. import Tensor, equal, random
from .._ops import ops
from ._python_dispatch import TorchDispatchMode
from ._pytree import tree_map_only

EXTRA = ("Trying to backward an extra time. You are only allowed to backward once on any region computed under selective activation "
         "checkpoint.")
MUTATED = "Tensor cached during selective activation checkpoint has been mutated"
_PASSED = frozenset([ops.aten.detach.default])  # nothing to compute, nothing to keep
_AGAIN = object()  # in the place of a result that is computed again


def contexts(saves, writable):
    """(keeping, handing out): `saves(op, args, kwargs)` tells of each call whether its result is kept."""
    results = defaultdict(deque)
    return _Keeping(results, saves), _HandingOut(results, writable)


class _Kept:
    """A result as it was: its tensors and how often they had been written to."""

    def __init__(self, result):
        self.result = tree_map_only(Tensor, lambda t: (t.detach(), t._version), result)

    def given(self, writable):
        def check(tensor, version):
            if not writable and tensor._version != version:
                raise RuntimeError(MUTATED)
            return tensor

        return _unpaired(self.result, check)


def _unpaired(x, check):
    if isinstance(x, tuple) and len(x) == 2 and isinstance(x[0], Tensor) and type(x[1]) is int:
        return check(*x)
    return type(x)(_unpaired(item, check) for item in x) if isinstance(x, (tuple, list)) else x


class _Keeping(TorchDispatchMode):
    def __init__(self, results, saves):
        super().__init__()
        self.results, self.saves = results, saves

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _PASSED:
            return func(*args, **kwargs)
        kept = self.saves(func, args, kwargs)
        before = random.get_rng_state() if kept else None
        result = func(*args, **kwargs)
        if kept and not equal(random.get_rng_state(), before):
            kept = False  # it draws: the gradient belongs to the numbers, which the second run draws again
        self.results[func].append(_Kept(result) if kept else _AGAIN)
        return result


class _HandingOut(TorchDispatchMode):
    def __init__(self, results, writable):
        super().__init__()
        self.results, self.writable = results, writable

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kept = _AGAIN
        if func not in _PASSED:
            if func not in self.results:
                raise RuntimeError(f"{func} encountered during backward, but not found in storage")
            if not self.results[func]:
                raise RuntimeError(EXTRA)
            kept = self.results[func].popleft()
        return func(*args, **(kwargs or {})) if kept is _AGAIN else kept.given(self.writable)
