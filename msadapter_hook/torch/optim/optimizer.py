# The base class of all optimizers: parameter groups, state, hooks, state_dict, and the callable form
# `optimizer(grads)` of the functional route. No update rule lives here.
import copy
import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from itertools import chain

from msadapter_hook import report as _report

from .. import Tensor, float32, float64, get_default_dtype, no_grad, set_grad_enabled, tensor, typename, zeros
from ..utils.hooks import RemovableHandle

_global_optimizer_pre_hooks = OrderedDict()
_global_optimizer_post_hooks = OrderedDict()


class _RequiredParameter:
    """Marks a hyperparameter without a default: each parameter group must give it."""

    def __repr__(self):
        return "<required parameter>"


required = _RequiredParameter()


def _get_scalar_dtype(is_fused=None):
    """dtype of the 0-dim state tensors (`step`): float64 under a float64 default, else float32."""
    if is_fused:
        return float32
    return float64 if get_default_dtype() == float64 else float32


def _get_value(x):
    """The Python number of a 0-dim tensor; numbers pass through."""
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x):
    """A one-element tensor as a 0-dim tensor; numbers and 0-dim tensors pass through."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


def _use_grad_for_differentiable(func):
    """Decorates `step`: gradients are recorded only when the optimizer was made with differentiable=True."""

    @functools.wraps(func)
    def step(self, *args, **kwargs):
        with set_grad_enabled(self.defaults.get("differentiable", False)):
            return func(self, *args, **kwargs)

    return step


def _disable_dynamo_if_unsupported(single_tensor_fn=None):
    """Kept for programs that decorate their own optimizers with it; nothing is compiled here."""
    return lambda func: func


def register_optimizer_step_pre_hook(hook):
    """Runs `hook(optimizer, args, kwargs)` before each `step` of every optimizer; returns a removable handle."""
    handle = RemovableHandle(_global_optimizer_pre_hooks)
    _global_optimizer_pre_hooks[handle.id] = hook
    return handle


def register_optimizer_step_post_hook(hook):
    """Runs `hook(optimizer, args, kwargs)` after each `step` of every optimizer; returns a removable handle."""
    handle = RemovableHandle(_global_optimizer_post_hooks)
    _global_optimizer_post_hooks[handle.id] = hook
    return handle


def _new_step(device=None):
    """A fresh step counter: a 0-dim tensor, on `device` where it must lie beside the parameter."""
    if device is not None:
        return zeros((), dtype=_get_scalar_dtype(), device=device)
    return tensor(0.0, dtype=_get_scalar_dtype())


class Optimizer:
    """Base class of all optimizers (PyTorch, torch.optim.Optimizer).

    `params`: an iterable of tensors, of (name, tensor) pairs, or of dicts with key "params" and hyperparameters of
    their own. `defaults`: hyperparameters of groups that do not give them.
    Errors: TypeError for something that is no tensor, ValueError for non-leaf or doubly given parameters.
    """

    _optimizer_step_pre_hooks: dict
    _optimizer_step_post_hooks: dict

    def __init__(self, params, defaults):
        self.defaults = defaults
        self._fresh_hooks()
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + typename(params)
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        param_groups = list(params)
        if not param_groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(param_groups[0], dict):
            param_groups = [{"params": param_groups}]
        for group in param_groups:
            self.add_param_group(group)
        self._warned_capturable_if_run_uncaptured = True

    def _fresh_hooks(self):
        for name in _HOOK_TABLES:
            self.__dict__.setdefault(name, OrderedDict())

    # -- the functional route -------------------------------------------------------------------------------------
    @property
    def parameters(self):
        """The flat list of all parameters, group after group."""
        return [p for group in self.param_groups for p in group["params"]]

    def __call__(self, grads):
        """One step with the given gradients, one for each of `self.parameters` in order; `.grad` stays as it was."""
        params = self.parameters
        grads = [grads] if isinstance(grads, Tensor) else list(grads)
        if len(grads) != len(params):
            raise ValueError(f"optimizer has {len(params)} parameters, but {len(grads)} gradients were given")
        before = [p.grad for p in params]
        try:
            for p, g in zip(params, grads):
                p.grad = None
                p.grad = _as_tensor(g)
            return self.step()
        finally:
            for p, g in zip(params, before):
                p.grad = g

    # -- pickling -------------------------------------------------------------------------------------------------
    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._fresh_hooks()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self):
        text = f"{self.__class__.__name__} ("
        for i, group in enumerate(self.param_groups):
            options = "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
            text += f"\nParameter Group {i}\n{options}"
        return text + ")"

    # -- hooks ----------------------------------------------------------------------------------------------------
    def _patch_step_function(self):
        """Wraps the class's `step` once, so that hooks run for optimizers written by users too."""
        cls = self.__class__
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{cls.__name__}.zero_grad"
        if not getattr(cls.step, "hooked", None):
            cls.step = self.profile_hook_step(cls.step)
            cls.step.hooked = True

    @staticmethod
    def profile_hook_step(func):
        """`func` (a `step`) with the pre and post hooks around it."""

        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            self = args[0]
            if _global_optimizer_pre_hooks or self._optimizer_step_pre_hooks:
                for hook in chain(_global_optimizer_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
                    result = hook(self, args, kwargs)
                    if result is None:
                        continue
                    if isinstance(result, tuple) and len(result) == 2:
                        args, kwargs = result
                    else:
                        raise RuntimeError(
                            f"{func} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                        )
            if _report.enabled:
                out = _report.measure(f"torch.optim.{type(self).__name__}.step", func, *args, **kwargs)
            else:
                out = func(*args, **kwargs)
            self._optimizer_step_code()
            if _global_optimizer_post_hooks or self._optimizer_step_post_hooks:
                for hook in chain(self._optimizer_step_post_hooks.values(), _global_optimizer_post_hooks.values()):
                    hook(self, args, kwargs)
            return out

        return wrapper

    def _optimizer_step_code(self):
        """Called after each step; a place that profilers replace."""

    def _register(self, table, hook, prepend=False):
        handle = RemovableHandle(table)
        table[handle.id] = hook
        if prepend:
            table.move_to_end(handle.id, last=False)
        return handle

    def register_step_pre_hook(self, hook):
        """`hook(optimizer, args, kwargs) -> None | (args, kwargs)` before each step."""
        return self._register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """`hook(optimizer, args, kwargs)` after each step."""
        return self._register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """`hook(optimizer)` before `state_dict`."""
        return self._register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """`hook(optimizer, state_dict) -> None | state_dict` after `state_dict`."""
        return self._register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """`hook(optimizer, state_dict) -> None | state_dict` before `load_state_dict`."""
        return self._register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """`hook(optimizer)` after `load_state_dict`."""
        return self._register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # -- state_dict -----------------------------------------------------------------------------------------------
    def state_dict(self):
        """`{"state": {index: {...}}, "param_groups": [...]}`; parameters stand as their running index."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        index_of = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                index_of.setdefault(id(p), len(index_of))
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [index_of[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {(index_of[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        state_dict = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            result = hook(self, state_dict)
            if result is not None:
                state_dict = result
        return state_dict

    @staticmethod
    def _process_value_according_to_param_policy(param, value, param_id, param_groups, key=None):
        """A loaded state tensor in the parameter's dtype and device; step counters keep theirs, not to be rounded."""
        fused = capturable = False
        for group in param_groups:
            if param_id in group["params"]:
                fused = group.get("fused", False)
                capturable = group.get("capturable", False)
                break
        if key == "step":
            if capturable or fused:
                return value.to(dtype=float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)

    def load_state_dict(self, state_dict):
        """Takes over a `state_dict()`. Raises ValueError when the groups differ in number or size."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            result = hook(self, state_dict)
            if result is not None:
                state_dict = result
        groups = self.param_groups
        # the groups are about to be changed; the caller's dictionary must not be
        saved_groups = copy.deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved_groups)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        param_of = dict(
            zip(
                chain.from_iterable(g["params"] for g in saved_groups),
                chain.from_iterable(g["params"] for g in groups),
            )
        )

        def cast(param, value, param_id, key=None):
            if isinstance(value, Tensor):
                return Optimizer._process_value_according_to_param_policy(
                    param, value, param_id, state_dict["param_groups"], key
                )
            if isinstance(value, dict):
                return {k: cast(param, v, param_id, key=k) for k, v in value.items()}
            if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
                return type(value)(cast(param, v, param_id) for v in value)
            return value

        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in param_of:
                state[param_of[key]] = cast(param_of[key], value, key)
            else:
                state[key] = value

        def merge(group, saved):
            saved["params"] = group["params"]
            if "param_names" in group and "param_names" not in saved:
                saved["param_names"] = group["param_names"]
            return saved

        self.__setstate__({"state": state, "param_groups": [merge(g, s) for g, s in zip(groups, saved_groups)]})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # -- stepping -------------------------------------------------------------------------------------------------
    def zero_grad(self, set_to_none=True):
        """Forgets the gradients of all parameters, or fills them with zeros when `set_to_none` is false."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if set_to_none:
                    p.grad = None
                elif p.grad.grad_fn is not None:
                    p.grad.detach_()
                    p.grad.zero_()
                else:
                    p.grad.requires_grad_(False)
                    p.grad.zero_()

    def step(self, closure=None):
        """One update of all parameters; subclasses say how."""
        raise NotImplementedError

    def add_param_group(self, param_group):
        """Adds a group: a dict with key "params" and, where wanted, hyperparameters of its own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, "
                "but the ordering of tensors in sets will change between runs. Please use a list instead."
            )
        else:
            params = list(params)
        param_group["params"] = params
        if any(isinstance(p, tuple) for p in params):
            names, tensors = [], []
            for entry in params:
                if not isinstance(entry, tuple):
                    raise ValueError("all optimizer params should be with/without names. Some param names are missing")
                names.append(entry[0])
                tensors.append(entry[1])
            param_group["params"] = params = tensors
            param_group["param_names"] = names
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + typename(p))
            if not self.defaults.get("differentiable", None) and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        if len(params) != len({id(p) for p in params}):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; "
                "in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(p) in known for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in param_group) != ("param_names" in self.param_groups[0]):
            has = "with" if "param_names" in param_group else "without"
            raise ValueError(
                "all optimizer param groups should be with/without names. "
                f"cannot add param group {has} names to the optimizer"
            )
        self.param_groups.append(param_group)


_HOOK_TABLES = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


def _as_tensor(value):
    """A gradient as our tensor: MindSpore's tensors (functional route) are taken over, None stays None."""
    if value is None or isinstance(value, Tensor):
        return value
    from .. import cast_to_adapter_tensor

    with no_grad():
        return cast_to_adapter_tensor(value)
