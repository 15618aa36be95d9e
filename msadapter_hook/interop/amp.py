"""mindspore.amp on what is ours: auto_mixed_precision and build_train_network on served modules, scalers on our tensors."""

import inspect

import mindspore

from msadapter_hook import errors
from msadapter_hook.tensor import Tensor

from . import crossing
from .cells import ServedCell, as_cells
from .precision import LEVELS, set_level
from .references import is_module
from .trees import instances, tree_map


def auto_mixed_precision(native, args, kwargs):
    """mindspore.amp.auto_mixed_precision. A served module is changed and given back: O0 nothing, O1 products in low precision,
    O2 everything but normalization, O3 everything. Parameters stay float32. A Cell is MindSpore's affair, but for the served
    modules inside. ValueError for another level."""
    bound = inspect.signature(native).bind(*args, **kwargs)
    bound.apply_defaults()
    network, level, dtype = (bound.arguments[name] for name in ("network", "amp_level", "dtype"))
    if is_module(network):
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
    if is_module(network) or isinstance(network, ServedCell):
        raise errors.unsupported("mindspore.amp.custom_mixed_precision of a torch module", "use auto_mixed_precision or torch.autocast")
    return native(*args, **kwargs)


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
    return tree_map(lambda t: t * scale if multiply else t * (1.0 / scale), inputs, Tensor)


def all_finite(native, inputs):
    """mindspore.amp.all_finite over tensors of ours: a tensor with one truth value."""
    return crossing.cast_to_adapter_tensor(native(tuple(instances(crossing.cast_to_ms_tensor(inputs), crossing.NativeTensor))))
