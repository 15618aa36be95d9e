"""torch.distributed.fsdp.wrap: which modules to wrap. The policies are plain functions of a module; wrapping refuses."""

from ..._refusal import refuse_all as _refuse_all
from ...nn import ModuleDict, ModuleList
from .fully_sharded import ADVICE

_refuse_all(globals(), "torch.distributed.fsdp.wrap", "enable_wrap wrap", ADVICE)


def always_wrap_policy(*args, **kwargs):
    """True. Source: PyTorch, torch.distributed.fsdp.wrap.always_wrap_policy."""
    return True


def lambda_auto_wrap_policy(module, recurse, nonwrapped_numel, lambda_fn):
    """Modules for which `lambda_fn(module)` holds. Source: PyTorch, torch.distributed.fsdp.wrap.lambda_auto_wrap_policy."""
    return True if recurse else lambda_fn(module)


def transformer_auto_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls):
    """Modules of the classes given. Source: PyTorch, torch.distributed.fsdp.wrap.transformer_auto_wrap_policy."""
    return True if recurse else isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(module, recurse, nonwrapped_numel, min_num_params=int(1e8), force_leaf_modules=None,
                                exclude_wrap_modules=None):
    """Modules with `min_num_params` parameters or more. Source: PyTorch,
    torch.distributed.fsdp.wrap.size_based_auto_wrap_policy."""
    large = nonwrapped_numel >= min_num_params
    if recurse:
        return large and not isinstance(module, tuple(force_leaf_modules or ()))
    return large and not isinstance(module, tuple({ModuleList, ModuleDict} if exclude_wrap_modules is None else exclude_wrap_modules))


class ModuleWrapPolicy:
    """Modules of the classes given. Source: PyTorch, torch.distributed.fsdp.wrap.ModuleWrapPolicy."""

    def __init__(self, module_classes):
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def __call__(self, module, recurse, *args, **kwargs):
        return True if recurse else isinstance(module, tuple(self._module_classes))

    def __repr__(self):
        return f"{super().__repr__()}({self._module_classes_str})"


class CustomPolicy:
    """Modules for which a function gives True or options. Source: PyTorch, torch.distributed.fsdp.wrap.CustomPolicy."""

    def __init__(self, lambda_fn):
        self._lambda_fn = lambda_fn
