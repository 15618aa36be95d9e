"""mindspore.amp.auto_mixed_precision on a served module: the same levels, as rules for operators while the module runs."""

import inspect
import threading

import mindspore

from msadapter_hook import errors
from msadapter_hook.autograd import modes  # noqa: F401  (operators are complete once autograd is there)
from msadapter_hook.ops import autocast, registry
from msadapter_hook.tensor import Tensor, dtypes

from . import crossing
from .cells import ServedCell, _is_module, as_cells

LEVELS = ("O0", "O1", "O2", "O3", "auto")

#: operators that O2 keeps in float32 (MindSpore: BatchNorm and LayerNorm Cells), by their short names, parts of them included
SENSITIVE = frozenset("batch_norm layer_norm group_norm instance_norm native_layer_norm native_batch_norm "
                      "_batch_norm_train _batch_norm_eval _instance_norm_input".split())
#: their arguments that are float32 at every level: they are written in place
STATISTICS = ("running_mean", "running_var")
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


def auto_mixed_precision(native, args, kwargs):
    """mindspore.amp.auto_mixed_precision. A served module is changed and given back: O0 nothing, O1 products in low precision,
    O2 everything but normalization, O3 everything. Parameters stay float32. A Cell is MindSpore's affair, but for the served
    modules inside. ValueError for another level."""
    bound = inspect.signature(native).bind(*args, **kwargs)
    bound.apply_defaults()
    network, level, dtype = (bound.arguments[name] for name in ("network", "amp_level", "dtype"))
    if _is_module(network):
        return set_level(network, level, dtype)
    if isinstance(network, ServedCell):
        set_level(network.module, level, dtype)
        return network
    served = [cell for _, cell in network.cells_and_names() if isinstance(cell, ServedCell)] if hasattr(network, "_cells") else []
    result = native(*args, **kwargs)
    for cell in served:
        set_level(cell.module, level, dtype)
    return result


def custom_mixed_precision(native, args, kwargs):
    """mindspore.amp.custom_mixed_precision: its lists name MindSpore's Cells and primitives, of which a served module has none."""
    network = args[0] if args else kwargs.get("network")
    if _is_module(network) or isinstance(network, ServedCell):
        raise errors.unsupported("mindspore.amp.custom_mixed_precision of a torch module", "use auto_mixed_precision or torch.autocast")
    return native(*args, **kwargs)


def set_level(module, level, dtype=mindspore.float16):
    """The module under a level; O0 leaves it as it is. ValueError for another level or dtype than MindSpore's."""
    if level not in LEVELS:
        raise ValueError(f"The amp level {level} is not supported")
    if dtype not in (mindspore.float16, mindspore.bfloat16):
        raise ValueError(f"The dtype should be one of (mindspore.float16, mindspore.bfloat16), but got {dtype}.")
    if intercept not in registry.interceptors:
        registry.interceptors.append(intercept)
    if level != "O0":
        module.forward = MixedForward(module, level, dtypes.float16 if dtype == mindspore.float16 else dtypes.bfloat16)
    return module


def restore(module):
    """The module in its own precision again."""
    if isinstance(module.__dict__.get("forward"), MixedForward):
        del module.forward


def build_train_network(native, args, kwargs):
    """mindspore.amp.build_train_network: a served network gets its level here, the rest is MindSpore's."""
    bound = inspect.signature(native).bind(*args, **kwargs)
    given = bound.arguments
    given["network"], given["loss_fn"] = as_cells(given["network"]), as_cells(given.get("loss_fn"))
    level = given.get("level", "O0")
    if not isinstance(given["network"], ServedCell) or level not in LEVELS:
        return native(*bound.args, **bound.kwargs)
    settings = {**mindspore.train.amp._config_level.get(level, {}), **given.get("kwargs", {})}
    given["kwargs"] = {**given.get("kwargs", {}), "loss_scale_manager": settings.get("loss_scale_manager")}
    if "cast_model_type" in given["kwargs"]:  # it takes the place of the level
        half = given["kwargs"].pop("cast_model_type") == mindspore.float16
        level = "O0" if not half else "O2" if settings.get("keep_batchnorm_fp32") else "O3"
    elif level in ("O2", "O3"):
        level = "O2" if settings["keep_batchnorm_fp32"] else "O3"
    given["kwargs"].pop("keep_batchnorm_fp32", None)
    set_level(given["network"].module, level)
    given["level"] = "O0"
    return native(*bound.args, **bound.kwargs)


# ------------------------------------------------------------------------------------------------ MindSpore's own scalers
def scaled(scaler, inputs, multiply):
    """`inputs` (tensors of ours in lists, tuples, dicts) times the scale of one of MindSpore's scalers, or divided by it."""
    scale = float(scaler.scale_value)
    inputs = crossing.cast_to_adapter_tensor(inputs)
    return crossing.tree_map(lambda t: t * scale if multiply else t * (1.0 / scale), inputs, Tensor)


def all_finite(native, inputs):
    """mindspore.amp.all_finite over tensors of ours: a tensor with one truth value."""
    return crossing.cast_to_adapter_tensor(native(tuple(crossing.leaves(crossing.cast_to_ms_tensor(inputs), crossing.NativeTensor))))
