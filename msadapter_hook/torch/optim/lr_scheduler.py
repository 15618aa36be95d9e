# Learning rate schedulers: each is a rule `get_lr` (the next rates from the current ones) over one base class.
# ReduceLROnPlateau steps by a metric; SequentialLR and ChainedScheduler combine others.
import math
import types
import warnings
from bisect import bisect_right
from collections import Counter
from functools import wraps
from math import inf
from weakref import ref

from .. import Tensor
from .optimizer import Optimizer

__all__ = [
    "LambdaLR",
    "MultiplicativeLR",
    "StepLR",
    "MultiStepLR",
    "ConstantLR",
    "LinearLR",
    "ExponentialLR",
    "SequentialLR",
    "CosineAnnealingLR",
    "ChainedScheduler",
    "ReduceLROnPlateau",
    "CyclicLR",
    "CosineAnnealingWarmRestarts",
    "OneCycleLR",
    "PolynomialLR",
    "LRScheduler",
]

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. "
    "Please use `scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, "
    "the closed form is used instead of the new chainable form, where available. Please open an issue if you are "
    "unable to replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
_ORDER_DOC = "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"


def _copy(value):
    """A tensor rate is copied, so that later in-place changes do not reach records of it."""
    return value.clone() if isinstance(value, Tensor) else value


def _set(group, key, value):
    """Sets a hyperparameter of a group; a tensor is filled in place, since others may hold it."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value.squeeze() if isinstance(value, Tensor) else value)
    else:
        group[key] = value


def _rates(optimizer, key="lr"):
    return [_copy(group[key]) for group in optimizer.param_groups]


def _per_group(name, optimizer, value):
    """`value` for each parameter group; a list or tuple must have one entry for each."""
    if isinstance(value, (list, tuple)):
        if len(value) != len(optimizer.param_groups):
            raise ValueError(
                f"{name} must have the same length as optimizer.param_groups. "
                f"{name} has {len(value)} values, param_groups has {len(optimizer.param_groups)}."
            )
        return [_copy(v) for v in value]
    return [_copy(value) for _ in optimizer.param_groups]


def _require_optimizer(optimizer):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _plain_state(scheduler, *left_out):
    return {key: value for key, value in scheduler.__dict__.items() if key != "optimizer" and key not in left_out}


def _function_states(functions):
    """What can be saved of callables: the attributes of callable objects; None for functions."""
    return [None if isinstance(fn, types.FunctionType) else fn.__dict__.copy() for fn in functions]


class LRScheduler:
    """Base class of schedulers (PyTorch, torch.optim.lr_scheduler.LRScheduler).

    `last_epoch=-1` starts anew and records each group's `initial_lr`; otherwise the groups must have it (KeyError).
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer, last_epoch=-1):
        _require_optimizer(optimizer)
        self.optimizer = optimizer
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", _copy(group["lr"]))
        else:
            for i, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                        "last_epoch >= 0.\n"
                        "This typically happens when:\n"
                        "1. You're trying to resume training from a checkpoint but haven't properly loaded the "
                        "optimizer state\n"
                        "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
                    )
        self.base_lrs = _rates(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _track_step(optimizer)
        self._initial_step()

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self):
        """Everything but the optimizer."""
        return _plain_state(self)

    def load_state_dict(self, state_dict):
        """Takes over a `state_dict()`."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """The rates set by the last step, one for each group."""
        return self._last_lr

    def get_lr(self):
        """The next rates, from the current ones; subclasses say how."""
        raise NotImplementedError

    def step(self, epoch=None):
        """Moves on by one epoch (or to `epoch`, deprecated) and sets the rates."""
        if self._step_count == 1:
            step = self.optimizer.step
            if not hasattr(step, "_wrapped_by_lr_sched"):
                warnings.warn(
                    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                    "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. " + _ORDER_DOC,
                    UserWarning,
                    stacklevel=2,
                )
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(
                    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, "
                    "you should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  "
                    "Failure to do this will result in PyTorch skipping the first value of the learning rate "
                    "schedule. " + _ORDER_DOC,
                    UserWarning,
                    stacklevel=2,
                )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed_form = getattr(self, "_get_closed_form_lr", None)
                values = closed_form() if closed_form is not None else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values):
            _set(group, "lr", lr)
        self._last_lr = _rates(self.optimizer)

    def _warn_get_lr(self):
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )


def _track_step(optimizer):
    """Wraps this optimizer's `step` so that the order of optimizer and scheduler steps can be checked."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    owner = ref(optimizer)
    function = optimizer.step.__func__ if isinstance(optimizer.step, types.MethodType) else None
    plain = optimizer.step if function is None else None

    @wraps(function or plain)  # of the bound method, the wrapper would keep the optimizer alive
    def step(*args, **kwargs):
        opt = owner()
        opt._opt_called = True
        return plain(*args, **kwargs) if function is None else function.__get__(opt, type(opt))(*args, **kwargs)

    step._wrapped_by_lr_sched = True
    optimizer.step = step


class _LRScheduler(LRScheduler):
    """The name of the base class before 2.0."""


class _LambdaBased(LRScheduler):
    """One function of the epoch for each group."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        self.optimizer = optimizer
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != len(optimizer.param_groups):
                raise ValueError(f"Expected {len(optimizer.param_groups)} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * len(optimizer.param_groups)
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        """Everything but the optimizer; of callable objects their attributes, of functions None."""
        state = _plain_state(self, "lr_lambdas")
        state["lr_lambdas"] = _function_states(self.lr_lambdas)
        return state

    def load_state_dict(self, state_dict):
        """Takes over a `state_dict()`."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for fn, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if attributes is not None:
                fn.__dict__.update(attributes)


class LambdaLR(_LambdaBased):
    """Initial rate times a function of the epoch (PyTorch, torch.optim.lr_scheduler.LambdaLR)."""

    def get_lr(self):
        self._warn_get_lr()
        return [base * fn(self.last_epoch) for fn, base in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(_LambdaBased):
    """Current rate times a function of the epoch (PyTorch, torch.optim.lr_scheduler.MultiplicativeLR)."""

    def get_lr(self):
        self._warn_get_lr()
        if self._is_initial:
            return _rates(self.optimizer)
        return [lr * fn(self.last_epoch) for fn, lr in zip(self.lr_lambdas, _rates(self.optimizer))]


class StepLR(LRScheduler):
    """Times gamma every `step_size` epochs (PyTorch, torch.optim.lr_scheduler.StepLR)."""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_get_lr()
        rates = _rates(self.optimizer)
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return rates
        return [lr * self.gamma for lr in rates]

    def _get_closed_form_lr(self):
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Times gamma at each milestone (PyTorch, torch.optim.lr_scheduler.MultiStepLR)."""

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_get_lr()
        rates = _rates(self.optimizer)
        if self.last_epoch not in self.milestones:
            return rates
        return [lr * self.gamma ** self.milestones[self.last_epoch] for lr in rates]

    def _get_closed_form_lr(self):
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """A constant factor for the first epochs (PyTorch, torch.optim.lr_scheduler.ConstantLR)."""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_get_lr()
        rates = _rates(self.optimizer)
        if self.last_epoch == 0:
            return [lr * self.factor for lr in rates]
        if self.last_epoch != self.total_iters:
            return rates
        return [lr * (1.0 / self.factor) for lr in rates]

    def _get_closed_form_lr(self):
        over = self.last_epoch >= self.total_iters
        return [base * (self.factor + over * (1 - self.factor)) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """From a first to a last factor in a straight line (PyTorch, torch.optim.lr_scheduler.LinearLR)."""

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_get_lr()
        rates = _rates(self.optimizer)
        if self.last_epoch == 0:
            return [lr * self.start_factor for lr in rates]
        if self._is_initial or self.last_epoch > self.total_iters:
            return rates
        change = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * change
        return [lr * (1.0 + change / before) for lr in rates]

    def _get_closed_form_lr(self):
        change = self.end_factor - self.start_factor
        return [
            base * (self.start_factor + change * min(self.total_iters, self.last_epoch) / self.total_iters)
            for base in self.base_lrs
        ]


class ExponentialLR(LRScheduler):
    """Times gamma every epoch (PyTorch, torch.optim.lr_scheduler.ExponentialLR)."""

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_get_lr()
        rates = _rates(self.optimizer)
        if self._is_initial:
            return rates
        return [lr * self.gamma for lr in rates]

    def _get_closed_form_lr(self):
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """To zero along a power of the remaining share (PyTorch, torch.optim.lr_scheduler.PolynomialLR)."""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_get_lr()
        rates = _rates(self.optimizer)
        if self._is_initial or self.last_epoch > self.total_iters:
            return rates
        decay = (
            (1.0 - self.last_epoch / self.total_iters) / (1.0 - (self.last_epoch - 1) / self.total_iters)
        ) ** self.power
        return [lr * decay for lr in rates]

    def _get_closed_form_lr(self):
        share = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * share**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Down to `eta_min` and up again along a cosine of half period T_max
    (PyTorch, torch.optim.lr_scheduler.CosineAnnealingLR)."""

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_get_lr()
        rates = _rates(self.optimizer)
        if self._is_initial:
            return rates
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # the ratio below would divide by zero right after the bottom
            return [
                lr + (base - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
                for base, lr in zip(self.base_lrs, rates)
            ]
        now = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        before = 1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        return [now / before * (lr - self.eta_min) + self.eta_min for lr in rates]

    def _get_closed_form_lr(self):
        share = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (base - self.eta_min) * share / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing that starts again after T_0, T_0 * T_mult, ... epochs; `step` takes fractions of an epoch
    (PyTorch, torch.optim.lr_scheduler.CosineAnnealingWarmRestarts)."""

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_get_lr()
        share = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * share / 2 for base in self.base_lrs]

    def step(self, epoch=None):
        """Moves on by one epoch, or to `epoch`, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur = self.T_cur + 1
            if self.T_cur >= self.T_i:
                self.T_cur = self.T_cur % self.T_i
                self.T_i = self.T_i * self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            if epoch < self.T_0:
                self.T_i, self.T_cur = self.T_0, epoch
            elif self.T_mult == 1:
                self.T_cur = epoch % self.T_0
            else:
                n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
                self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
                self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            values = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values):
            _set(group, "lr", lr)
        self._last_lr = _rates(self.optimizer)


def _check_same_optimizer(name, scheduler, i, optimizer):
    if not hasattr(scheduler, "optimizer"):
        raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
    if isinstance(scheduler, ReduceLROnPlateau):
        raise ValueError(
            f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be specified "
            f"when calling `step`, but got one at index {i} in the given schedulers sequence."
        )
    if optimizer != scheduler.optimizer:
        raise ValueError(
            f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
            f"{scheduler.__class__.__name__} at index {i} has {scheduler.optimizer}, "
            f"which is different from {optimizer.__class__.__name__}."
        )


class _Combined(LRScheduler):
    """What SequentialLR and ChainedScheduler share: their schedulers' states inside their own."""

    def state_dict(self):
        """Everything but the optimizer, with the state of each scheduler in a list."""
        state = _plain_state(self, "_schedulers")
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict):
        """Takes over a `state_dict()`."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"]):
            scheduler.load_state_dict(state)


class SequentialLR(_Combined):
    """One scheduler after another, changing at the milestones (PyTorch, torch.optim.lr_scheduler.SequentialLR)."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        if len(schedulers) < 1:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        for i, scheduler in enumerate(schedulers):
            _check_same_optimizer(self.__class__.__name__, scheduler, i, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # making the schedulers has already stepped all of them; only the first may have acted
        for group in self.optimizer.param_groups:
            _set(group, "lr", group["initial_lr"])
        self.recursive_undo()
        self._schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def recursive_undo(self, sched=None):
        """Takes back the first step of all schedulers, nested ones too."""
        scheds = self if sched is None else sched
        if hasattr(scheds, "_schedulers"):
            for scheduler in scheds._schedulers:
                self.recursive_undo(scheduler)
        elif hasattr(scheds, "last_epoch"):
            scheds.last_epoch -= 1

    def step(self):
        """Moves on by one epoch."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0) if hasattr(scheduler, "_update_lr") else scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Combined):
    """All schedulers step, one upon the other (PyTorch, torch.optim.lr_scheduler.ChainedScheduler)."""

    def __init__(self, schedulers, optimizer=None):
        if len(schedulers) < 1:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        for i, scheduler in enumerate(schedulers):
            _check_same_optimizer(self.__class__.__name__, scheduler, i, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = _rates(optimizer)

    def step(self):
        """Steps each scheduler."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = _rates(self.optimizer)


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` when a metric has not improved for `patience` epochs
    (PyTorch, torch.optim.lr_scheduler.ReduceLROnPlateau)."""

    def __init__(
        self,
        optimizer,
        mode="min",
        factor=0.1,
        patience=10,
        threshold=1e-4,
        threshold_mode="rel",
        cooldown=0,
        min_lr=0,
        eps=1e-8,
    ):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.factor = factor
        _require_optimizer(optimizer)
        self.optimizer = optimizer
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != len(optimizer.param_groups):
                raise ValueError(f"expected {len(optimizer.param_groups)} min_lrs, got {len(min_lr)}")
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * len(optimizer.param_groups)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = _rates(optimizer)
        self._init_is_better(mode=mode, threshold=threshold, threshold_mode=threshold_mode)
        self._reset()

    def _reset(self):
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics, epoch=None):
        """Takes the epoch's metric (a number or a tensor of one element)."""
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = _rates(self.optimizer)

    def _reduce_lr(self, epoch):
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    "The number of param groups in the `optimizer` "
                    f"({len(groups)}) differs from when `ReduceLROnPlateau` was initialized "
                    f"({len(self.min_lrs)}), usually due to a new param group being added to the optimizer. Please "
                    "modify the `min_lrs` field to match the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, lowest in zip(groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, lowest)
            if old - new > self.eps:
                _set(group, "lr", new)

    @property
    def in_cooldown(self):
        """Whether epochs are being waited for after a reduction."""
        return self.cooldown_counter > 0

    def _is_better(self, a, best):
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            bound = best * (self.threshold + 1.0) if sign > 0 else best * (1.0 - self.threshold)
        else:
            bound = best + sign * self.threshold
        return a > bound if sign > 0 else a < bound

    is_better = _is_better

    def _init_is_better(self, mode, threshold, threshold_mode):
        if mode not in {"min", "max"}:
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in {"rel", "abs"}:
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.mode_worse = inf if mode == "min" else -inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def state_dict(self):
        """Everything but the optimizer."""
        return _plain_state(self)

    def load_state_dict(self, state_dict):
        """Takes over a `state_dict()`."""
        self.__dict__.update(state_dict)
        self._init_is_better(mode=self.mode, threshold=self.threshold, threshold_mode=self.threshold_mode)


from ._cyclic import CyclicLR, OneCycleLR  # noqa: E402  (they build on the base class above)

for _class in (CyclicLR, OneCycleLR):
    _class.__module__ = __name__
del _class
