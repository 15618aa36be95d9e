# ReduceOp, and reductions over arrays of several processes where MindSpore has none for the dtype or the operation.
import enum

import numpy as np

from msadapter_hook.backend.arrays import _BFLOAT16

__all__ = ["RedOpType", "ReduceOp", "check_reducible", "reduce_arrays", "reduce_over"]


class RedOpType(enum.IntEnum):
    """The kinds of reductions (PyTorch, torch.distributed.ReduceOp.RedOpType)."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __str__(self):
        return f"RedOpType.{self.name}"


class _Kinds(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, RedOpType) or type.__instancecheck__(cls, instance)


class ReduceOp(metaclass=_Kinds):
    """A reduction: one of the kinds that are its attributes (PyTorch, torch.distributed.ReduceOp)."""

    RedOpType = RedOpType
    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = RedOpType

    def __init__(self, op):
        self.op = RedOpType(op)

    def __eq__(self, other):
        return self.op == other

    def __hash__(self):
        return hash(self.op)


ReduceOp.__module__ = __package__

#: kind -> MindSpore's name
_ENGINE = {RedOpType.SUM: "sum", RedOpType.PRODUCT: "prod", RedOpType.MIN: "min", RedOpType.MAX: "max"}
_UFUNCS = {RedOpType.SUM: np.add, RedOpType.AVG: np.add, RedOpType.PRODUCT: np.multiply, RedOpType.MIN: np.minimum,
           RedOpType.MAX: np.maximum, RedOpType.BAND: np.bitwise_and, RedOpType.BOR: np.bitwise_or, RedOpType.BXOR: np.bitwise_xor}
_BITWISE = {RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR}
#: of booleans
_LOGICAL = {**_UFUNCS, RedOpType.SUM: np.logical_or, RedOpType.MAX: np.logical_or, RedOpType.PRODUCT: np.logical_and,
            RedOpType.MIN: np.logical_and}


def kind_of(op):
    """The RedOpType of what a caller gave. TypeError for anything else."""
    if isinstance(op, RedOpType):
        return op
    if isinstance(op, ReduceOp):
        return op.op
    raise TypeError(f"op must be a torch.distributed.ReduceOp, not {type(op).__name__}: {op!r}")


def check_reducible(name, op, dtype):
    """Refuse what PyTorch refuses: (collective's name, kind, NumPy's dtype)."""
    if op is RedOpType.PREMUL_SUM:
        raise RuntimeError("Cannot use ReduceOp.PREMUL_SUM with Gloo")
    if dtype.kind == "c" and op not in (RedOpType.SUM, RedOpType.AVG):
        raise ValueError(f"{name} does not support {op} on complex tensors")
    if op in _BITWISE and dtype.kind not in "iub":
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op is RedOpType.AVG and dtype.kind in "iub":
        raise RuntimeError("ReduceOp.AVG: result type Float can't be cast to the desired integral output type")


def reduce_arrays(arrays, op):
    """The reduction of arrays of one shape and dtype, in their order. Half precision is summed up in single."""
    dtype = arrays[0].dtype
    function = (_LOGICAL if dtype.kind == "b" else _UFUNCS)[op]
    wide = np.float32 if dtype.kind == "V" or dtype.itemsize < 4 and dtype.kind not in "iub" else dtype
    total = arrays[0].astype(wide)
    with np.errstate(all="ignore"):  # integers wrap, floats overflow to infinity
        for other in arrays[1:]:
            total = function(total, other.astype(wide, copy=False))
        if op is RedOpType.AVG:
            total = total / len(arrays)
    return total.astype(dtype, copy=False)


def reduce_over(circle, array, op):
    """The reduction over the processes of a circle, as an array of the same shape on all of them. `array` may be overwritten."""
    dtype = array.dtype
    kind = RedOpType.SUM if op is RedOpType.AVG else op
    view = array.view(np.int8) if dtype == np.uint8 and kind in (RedOpType.SUM, RedOpType.PRODUCT) else array
    if circle.size == 1:
        return array
    if view.dtype in circle.engine.REDUCED and kind in _ENGINE:
        circle.all_reduce(view, _ENGINE[kind])
        return (array / circle.size).astype(dtype) if op is RedOpType.AVG else array
    if dtype == np.complex64 and kind is RedOpType.SUM:
        circle.all_reduce(array.reshape(-1).view(np.float32), "sum")
        return array / np.float32(circle.size) if op is RedOpType.AVG else array
    return reduce_arrays(circle.all_gather(array), op)


assert _BFLOAT16.kind == "V"  # what `reduce_arrays` recognises it by
