"""Modules wrapped so that their activations are computed anew in backward, by torch.utils.checkpoint."""

import enum
from functools import partial

from ....nn import Module
from ....utils.checkpoint import checkpoint

_PREFIX = "_checkpoint_wrapped_module"


class CheckpointImpl(enum.Enum):
    """The two ways of torch.utils.checkpoint. Source: PyTorch, CheckpointImpl."""

    REENTRANT, NO_REENTRANT = 1, 2


class ActivationWrapper(Module):
    """A module around another; names of parameters are those of the inner one. Source: PyTorch, ActivationWrapper."""

    def __init__(self, mod):
        super().__init__()
        setattr(self, _PREFIX, mod)
        self._register_state_dict_hook(_without_prefix)
        self.register_load_state_dict_pre_hook(_with_prefix)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._modules[_PREFIX], name)

    def __getitem__(self, key):
        return self._modules[_PREFIX][key]

    def named_parameters(self, *args, **kwargs):
        """The inner module's, under its own names."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(f"{_PREFIX}.", ""), parameter


def _without_prefix(module, state_dict, prefix, *args):
    for key in [k for k in state_dict if k.startswith(f"{prefix}{_PREFIX}.")]:
        state_dict[prefix + key[len(f"{prefix}{_PREFIX}.") :]] = state_dict.pop(key)


def _with_prefix(module, state_dict, prefix, *args):
    for key in [k for k in state_dict if k.startswith(prefix) and not k.startswith(f"{prefix}{_PREFIX}.")]:
        state_dict[f"{prefix}{_PREFIX}.{key[len(prefix) :]}"] = state_dict.pop(key)


class CheckpointWrapper(ActivationWrapper):
    """A module whose forward is checkpointed. Source: PyTorch, CheckpointWrapper."""

    def __init__(self, mod, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **checkpoint_fn_kwargs):
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        reentrant = checkpoint_impl is CheckpointImpl.REENTRANT
        self.checkpoint_fn = (partial(checkpoint, use_reentrant=reentrant, **checkpoint_fn_kwargs) if checkpoint_fn is None
                              else partial(checkpoint_fn, **checkpoint_fn_kwargs))

    def forward(self, *args, **kwargs):
        inner = self._modules[_PREFIX]
        if self.checkpoint_impl is CheckpointImpl.REENTRANT and kwargs:
            n = len(args)  # the reentrant way takes positions only
            return self.checkpoint_fn(lambda *values: inner(*values[:n], **dict(zip(kwargs, values[n:]))), *args, *kwargs.values())
        return self.checkpoint_fn(inner, *args, **kwargs)


def checkpoint_wrapper(module, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **checkpoint_fn_kwargs):
    """`module` with its activations computed anew in backward. Source: PyTorch,
    torch.distributed.algorithms._checkpoint.checkpoint_wrapper."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def offload_wrapper(module):
    """NotImplementedError: there is no other memory to move activations to."""
    from msadapter_hook.errors import unsupported

    raise unsupported("torch.distributed.algorithms._checkpoint.checkpoint_wrapper.offload_wrapper", "use checkpoint_wrapper")


def apply_activation_checkpointing(model, checkpoint_wrapper_fn=checkpoint_wrapper, check_fn=lambda _: True, auto_wrap_policy=None):
    """Wrap every submodule for which `check_fn` holds (or `auto_wrap_policy`), the model itself left as it is. Source: PyTorch,
    apply_activation_checkpointing."""
    def chosen(module):
        if auto_wrap_policy is not None:
            return auto_wrap_policy(module=module, recurse=False, nonwrapped_numel=sum(p.numel() for p in module.parameters()))
        return check_fn(module)

    def visit(module):
        for name, child in list(module.named_children()):
            visit(child)
            if chosen(child):
                setattr(module, name, checkpoint_wrapper_fn(child))

    visit(model)
