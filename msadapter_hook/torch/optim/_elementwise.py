# What the optimizers share that update each parameter by itself: checks of hyperparameters, the loop over groups,
# state made on first sight, and the seam through which a fused kernel of the operator layer may take a whole group.
import importlib
import inspect
from itertools import repeat

from .. import Tensor, enable_grad, is_complex, preserve_format, tensor, view_as_real, zeros_like
from .optimizer import Optimizer, _get_scalar_dtype, _new_step, _use_grad_for_differentiable


def _host_module():
    try:
        return importlib.import_module("msadapter_hook.ops.optimizers")
    except ModuleNotFoundError as missing:
        if missing.name != "msadapter_hook.ops.optimizers":
            raise
        return None


_host = _host_module()


def run_step(name, plain, *args, differentiable=False, **hyper):
    """The update of one group: by the fused kernel `name` where the operator layer has one that takes this case
    (it returns True then, having changed parameters and state in place), else by `plain`, tensor by tensor."""
    if _host is not None and not differentiable:
        kernel = getattr(_host, name, None)
        if kernel is not None and kernel(*args, **hyper):
            return
    plain(*args, differentiable=differentiable, **hyper)


def check(ok, message):
    """ValueError with `message` unless `ok`."""
    if not ok:
        raise ValueError(message)


def check_lr(lr):
    """lr: a number >= 0, or a tensor of one element."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check(0.0 <= lr, f"Invalid learning rate: {lr}")


def check_lr_foreach(lr, foreach, capturable):
    """PyTorch refuses a tensor lr under foreach=True unless capturable."""
    if isinstance(lr, Tensor) and foreach and not capturable:
        raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")


def check_betas(betas):
    """Two numbers in [0, 1)."""
    for i in (0, 1):
        check(0.0 <= betas[i] < 1.0, f"Invalid beta parameter at index {i}: {betas[i]}")


def check_fused(optimizer, fused, foreach, differentiable):
    """The rules of `fused`: not with differentiable, not with foreach."""
    if not fused:
        return
    if differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    optimizer._step_supports_amp_scaling = True


CAPTURABLE_DEVICES = ["cuda", "xpu", "hpu", "privateuseone", "xla"]


def check_capturable(group, params, what, devices):
    """capturable=True is refused for parameters on the CPU, as PyTorch refuses it."""
    if group.get("capturable") and any(p.device.type not in devices for p in params):
        raise AssertionError(f"If capturable=True, {what} must be on supported devices: {devices}.")


def check_steps(state_steps):
    """The functional forms want step counters as tensors."""
    if not all(isinstance(t, Tensor) for t in state_steps):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")


def zeros_as(p):
    """Zeros like `p`, in its memory format."""
    return zeros_like(p, memory_format=preserve_format)


def as_real(*tensors):
    """Complex tensors as their real views (None passes through)."""
    return [view_as_real(t) if t is not None and is_complex(t) else t for t in tensors]


def or_nones(items):
    """`items`, or None for ever when it is empty: optional state lists."""
    return items if items else repeat(None)


class ElementwiseOptimizer(Optimizer):
    """An optimizer whose step is: for each group, collect parameters that have a gradient, then call the functional form over
    lists of parameters, gradients and state.

    A subclass gives `_initial_state(p, group)` -> dict and `_columns`; `updates` ties the functional form to it.
    """

    _group_defaults: dict = {}  # hyperparameters that checkpoints of older versions may lack
    _sparse_message = None  # the error for sparse gradients; None where they are supported
    _columns: tuple = ()  # entries of the state, in the order in which the functional form takes their lists
    _optional: dict = {}  # entries that are there where a hyperparameter asks for them: {entry: hyperparameter}
    _capturable_state = "params and state_steps"  # how PyTorch's refusal of `capturable` names what must be on the device
    _capturable_devices = CAPTURABLE_DEVICES

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._group_defaults.items():
                group.setdefault(name, value)
            for p in group["params"]:
                p_state = self.state.get(p, {})
                for key in ("step", "mu_product", "eta", "mu"):
                    if key in p_state and not isinstance(p_state[key], Tensor):
                        p_state[key] = tensor(float(p_state[key]), dtype=_get_scalar_dtype())

    def _initial_state(self, p, group):
        return {}

    def _step_counter(self, p, group):
        beside = group.get("capturable") or group.get("fused")
        return _new_step(device=p.device if beside else None)

    def _collect(self, group):
        params, grads, states = [], [], []
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            if grad.is_sparse and self._sparse_message:
                raise RuntimeError(self._sparse_message)
            state = self.state[p]
            if not state:
                state.update(self._initial_state(p, group))
            params.append(p)
            grads.append(grad)
            states.append(state)
        return params, grads, states

    def _options(self, group):
        """The keyword arguments of the functional form."""
        options = {name: group[name] for name in self._names if name in group}
        if "betas" in group:
            options["beta1"], options["beta2"] = group["betas"]
        if "grad_scale" in self._names:  # set by a GradScaler for the time of a step
            options.update(grad_scale=getattr(self, "grad_scale", None), found_inf=getattr(self, "found_inf", None))
        return options

    def _update(self, group, params, grads, states):
        check_capturable(group, params, self._capturable_state, self._capturable_devices)
        lists = [self._column(name, states, group) for name in self._columns]
        self._function(params, grads, *lists, **self._options(group))

    def _column(self, name, states, group):
        wanted = self._optional.get(name)
        return [s[name] for s in states] if wanted is None or group[wanted] else []

    @_use_grad_for_differentiable
    def step(self, closure=None):
        """One update of every parameter that has a gradient. `closure` recomputes the loss, which is returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            params, grads, states = self._collect(group)
            if params:
                self._update(group, params, grads, states)
        return loss


def updates(optimizer):
    """Decorator: the functional form of an optimizer, which takes the lists and then keywords named as hyperparameters are."""

    def tie(function):
        optimizer._function = staticmethod(function)
        optimizer._names = list(inspect.signature(function).parameters)[2 + len(optimizer._columns):]
        return function

    return tie
