"""The levels of mindspore.amp on a served module, as rules for operators while the module runs."""

import threading

import mindspore

from msadapter_hook.autograd import modes  # noqa: F401  (operators are complete once autograd is there)
from msadapter_hook.ops import autocast, tables
from msadapter_hook.tensor import Tensor, dtypes

LEVELS = ("O0", "O1", "O2", "O3", "auto")

#: operators that O2 keeps in float32 (MindSpore: BatchNorm and LayerNorm Cells), by their short names, parts of them included
SENSITIVE = frozenset("batch_norm layer_norm group_norm instance_norm native_layer_norm native_batch_norm "
                      "_batch_norm_train _batch_norm_eval _instance_norm_input".split())
#: their arguments that are float32 at every level: statistics are written in place, and beside them stand only float32 parameters
STATISTICS = ("running_mean", "running_var", "weight", "bias")
#: operators whose arguments say what is made or copied: a cast would change what they are for
LEFT_ALONE = frozenset("copy_ to type_as set_ detach clone".split())


class _State(threading.local):
    rule = None  # (level, dtype) while a module with mixed precision runs


state = _State()


def _one(x, change):
    if isinstance(x, Tensor):
        return change(x)
    if type(x) in (list, tuple):
        return type(x)([_one(item, change) for item in x])
    return x


def intercept(operator, overload, bound):
    """The arguments of an operator in the precision of the running rule."""
    if state.rule is None:
        return None
    level, dtype = state.rule
    if level in ("O1", "auto"):
        if operator.name in autocast.LOWER["cuda"]:
            return _cast(bound, dtype)
        return _cast(bound, dtypes.float32) if operator.name in autocast.SINGLE["cuda"] else None
    if operator.short in SENSITIVE:
        kept = [overload.positions[name] for name in STATISTICS if name in overload.positions]
        return _cast(bound, dtypes.float32 if level == "O2" else dtype, kept)
    if overload.kind != "kernel" or operator.short in LEFT_ALONE:
        return None
    return _cast(bound, dtype)


def _cast(bound, dtype, kept=()):
    low = (dtypes.float16, dtypes.bfloat16, dtypes.float32)
    return tuple([x if i in kept else _one(x, lambda t: t.to(dtype) if t._dtype in low and t._dtype is not dtype else t)
                  for i, x in enumerate(bound)])


class MixedForward:
    """The forward of a module under a level. Floating outputs are float32, so that the loss and its scale do not overflow."""

    def __init__(self, module, level, dtype):
        self.module, self.level, self.dtype = module, level, dtype

    def __call__(self, *args, **kwargs):
        before, state.rule = state.rule, (self.level, self.dtype)
        try:
            result = type(self.module).forward(self.module, *args, **kwargs)
        finally:
            state.rule = before
        return _one(result, lambda t: t.float() if t._dtype is self.dtype else t)


def set_level(module, level, dtype=mindspore.float16):
    """The module under a level; O0 leaves it as it is. ValueError for another level or dtype than MindSpore's."""
    if level not in LEVELS:
        raise ValueError(f"The amp level {level} is not supported")
    if dtype not in (mindspore.float16, mindspore.bfloat16):
        raise ValueError(f"The dtype should be one of (mindspore.float16, mindspore.bfloat16), but got {dtype}.")
    if intercept not in tables.interceptors:
        tables.interceptors.append(intercept)
    if level != "O0":
        module.forward = MixedForward(module, level, dtypes.float16 if dtype == mindspore.float16 else dtypes.bfloat16)
    return module


def restore(module):
    """The module in its own precision again."""
    if isinstance(module.__dict__.get("forward"), MixedForward):
        del module.forward
