# State dictionaries of modules: the functions that become Module.state_dict, load_state_dict and their parts.
import functools
import itertools
import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Mapping

from ... import Tensor, no_grad
from ... import __future__ as _future
from ..parameter import Parameter, is_lazy
from ._conversion import load

EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _WrappedHook:
    """A hook that remembers its module weakly, so that the hook does not keep the module alive."""

    def __init__(self, hook, module=None):
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if self.with_module:
            self.module = weakref.ref(module)

    def __call__(self, *args, **kwargs):
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self):
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state):
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


def save_to_state_dict(self, destination, prefix, keep_vars):
    """Put this module's own parameters, persistent buffers and extra state into `destination`, not its children's."""
    for name, param in self._parameters.items():
        if param is not None:
            destination[prefix + name] = param if keep_vars else param.detach()
    for name, buffer in self._buffers.items():
        if buffer is not None and name not in self._non_persistent_buffers_set:
            destination[prefix + name] = buffer if keep_vars else buffer.detach()
    if _has_own(self, "get_extra_state"):
        destination[prefix + EXTRA_STATE] = self.get_extra_state()


def _has_own(module, method):
    from .module import Module

    return getattr(type(module), method) is not getattr(Module, method)


def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
    """Ordered dictionary of all parameters, persistent buffers and extra states, keyed by dotted path.

    Values are detached but share memory, unless `keep_vars`. Source: PyTorch, torch.nn.Module.state_dict.
    """
    if args:
        warnings.warn(
            "Positional args are being deprecated, use kwargs instead. Refer to "
            "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
            FutureWarning,
            stacklevel=2,
        )
        destination, prefix, keep_vars = (*args, *(destination, prefix, keep_vars)[len(args) :])
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    local_metadata = {"version": self._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = local_metadata
    for hook in self._state_dict_pre_hooks.values():
        hook(self, prefix, keep_vars)
    self._save_to_state_dict(destination, prefix, keep_vars)
    for name, module in self._modules.items():
        if module is not None:
            module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
    for hook in self._state_dict_hooks.values():
        result = hook(self, destination, prefix, local_metadata)
        if not getattr(hook, "_from_public_api", False):
            if result is not None:
                destination = result
        elif result is not None:
            raise RuntimeError("state_dict post-hook must return None")
    return destination


def load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
    """Copy (or assign) this module's own entries of `state_dict`; problems are appended to the three lists."""
    for hook in self._load_state_dict_pre_hooks.values():
        hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    persistent = {k: v for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set}
    own = {k: v for k, v in itertools.chain(self._parameters.items(), persistent.items()) if v is not None}
    for name, param in own.items():
        key = prefix + name
        if key in state_dict:
            _load_one(self, name, key, param, state_dict[key], local_metadata, error_msgs)
        elif strict:
            missing_keys.append(key)

    extra_key = prefix + EXTRA_STATE
    if _has_own(self, "set_extra_state"):
        if extra_key in state_dict:
            self.set_extra_state(state_dict[extra_key])
        elif strict:
            missing_keys.append(extra_key)
    elif strict and extra_key in state_dict:
        unexpected_keys.append(extra_key)

    if strict:
        for key in state_dict.keys():
            if key.startswith(prefix) and key != extra_key:
                head, *rest = key[len(prefix) :].split(".", 1)
                # What stands behind a child's name is the child's business.
                if head not in (self._modules if rest else own):
                    unexpected_keys.append(key)


def _load_one(self, name, key, param, value, local_metadata, error_msgs):
    if not isinstance(value, Tensor):
        error_msgs.append(
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
            f"but received {type(value)}"
        )
        return
    lazy = is_lazy(param)
    # Files of PyTorch 0.3 hold one-element tensors where there are zero-dimensional ones now.
    if not lazy and len(param.shape) == 0 and len(value.shape) == 1:
        value = value[0]
    if not lazy and value.shape != param.shape:
        error_msgs.append(
            f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
            f"the shape in current model is {param.shape}."
        )
        return
    assign = local_metadata.get("assign_to_params_buffers", False)
    if param.device.type == "meta" and value.device.type != "meta" and not assign:
        warnings.warn(
            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
            "model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to "
            "their corresponding key in the module instead of copying them in place?)",
            stacklevel=2,
        )
    try:
        with no_grad():
            if _future.get_swap_module_params_on_conversion():
                load(param, value, assign)
                return
            if not assign:
                param.copy_(value)
                return
            if isinstance(param, Parameter):
                if not isinstance(value, Parameter):
                    value = Parameter(value, requires_grad=param.requires_grad)
                else:
                    value.requires_grad_(param.requires_grad)
            setattr(self, name, value)
    except Exception as error:
        error_msgs.append(
            f'While copying the parameter named "{key}", whose dimensions in the model are {param.size()} and whose '
            f"dimensions in the checkpoint are {value.size()}, an exception occurred : {error.args}."
        )


def load_state_dict(self, state_dict, strict=True, assign=False):
    """Copy parameters, buffers and extra states from `state_dict`; returns (missing_keys, unexpected_keys).

    `strict`: RuntimeError that lists keys missing or unexpected; sizes that differ always raise. `assign`: take the
    tensors of the dictionary instead of copying into those of the module. TypeError when it is no mapping.
    Source: PyTorch, torch.nn.Module.load_state_dict.
    """
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    missing_keys, unexpected_keys, error_msgs = [], [], []
    metadata = getattr(state_dict, "_metadata", None)
    state_dict = OrderedDict(state_dict)
    if metadata is not None:
        # Subclasses and hooks look for the versions here.
        state_dict._metadata = metadata

    def load(module, local_state_dict, prefix=""):
        local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
        if assign:
            local_metadata["assign_to_params_buffers"] = assign
        module._load_from_state_dict(
            local_state_dict, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs
        )
        for name, child in module._modules.items():
            if child is not None:
                child_prefix = prefix + name + "."
                child_state = {k: v for k, v in local_state_dict.items() if k.startswith(child_prefix)}
                load(child, child_state, child_prefix)
        incompatible = _IncompatibleKeys(missing_keys, unexpected_keys)
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, incompatible) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace."
                )

    load(self, state_dict)

    if strict:
        for kind, keys in (("Unexpected", unexpected_keys), ("Missing", missing_keys)):
            if keys:
                listed = ", ".join(f'"{key}"' for key in keys)
                error_msgs.insert(0, f"{kind} key(s) in state_dict: {listed}. ")
    if error_msgs:
        raise RuntimeError(
            "Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(error_msgs))
        )
    return _IncompatibleKeys(missing_keys, unexpected_keys)


def trainable_params(self):
    """The parameters that require grad, as a list. Source: MindSpore, Cell.trainable_params (the functional route)."""
    return [p for p in self.parameters() if p.requires_grad]
