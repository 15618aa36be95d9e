"""mindspore.amp.auto_mixed_precision on a served module: the same levels, as rules for operators while the module runs."""

import inspect
import threading

import mindspore

from msadapter_hook.autograd import modes  # noqa: F401  (operators are complete once autograd is there)
from msadapter_hook.ops import autocast, registry
from msadapter_hook.tensor import Tensor, dtypes

from .cells import _is_module

#: operators that O2 keeps in float32 (MindSpore: BatchNorm and LayerNorm Cells), by their short names. O3 rounds their inputs,
#: but statistics are float32 there too: they are written in place.
SENSITIVE = frozenset("batch_norm layer_norm group_norm instance_norm native_layer_norm native_batch_norm".split())
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
    if overload.kind != "kernel" or operator.short in LEFT_ALONE:
        return None
    if operator.short in SENSITIVE:
        return _cast(bound, dtypes.float32)
    return _cast(bound, dtype)


def _cast(bound, dtype):
    low = (dtypes.float16, dtypes.bfloat16, dtypes.float32)
    return tuple([_one(x, lambda t: t.to(dtype) if t._dtype in low and t._dtype is not dtype else t) for x in bound])


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


def auto_mixed_precision(native, args, kwargs):
    """mindspore.amp.auto_mixed_precision. A served module is changed and given back: O0 nothing, O1 products in low precision,
    O2 everything but normalization, O3 everything. Parameters stay float32. ValueError for another level."""
    bound = inspect.signature(native).bind(*args, **kwargs)
    bound.apply_defaults()
    network, level, dtype = (bound.arguments[name] for name in ("network", "amp_level", "dtype"))
    if not _is_module(network):
        return native(*args, **kwargs)
    if level not in ("O0", "O1", "O2", "O3", "auto"):
        raise ValueError(f"The amp level {level} is not supported")
    if dtype not in (mindspore.float16, mindspore.bfloat16):
        raise ValueError(f"The dtype should be one of (mindspore.float16, mindspore.bfloat16), but got {dtype}.")
    if intercept not in registry.interceptors:
        registry.interceptors.append(intercept)
    if level == "O0":
        network.__dict__.pop("forward", None)
    else:
        network.forward = MixedForward(network, level, dtypes.float16 if dtype == mindspore.float16 else dtypes.bfloat16)
    return network
