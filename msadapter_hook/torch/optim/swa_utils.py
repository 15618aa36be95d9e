# Averaging of weights over training (SWA, EMA): AveragedModel, its averaging rules, update_bn and SWALR.
import itertools
import math
from copy import deepcopy

from .. import Tensor, is_complex, is_floating_point, long, nn, no_grad, tensor
from .lr_scheduler import LRScheduler, _per_group

__all__ = [
    "AveragedModel",
    "update_bn",
    "SWALR",
    "get_ema_multi_avg_fn",
    "get_swa_multi_avg_fn",
    "get_ema_avg_fn",
    "get_swa_avg_fn",
]


def _can_lerp(t):
    return is_floating_point(t) or is_complex(t)


def _check_decay(decay):
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay=0.999):
    """A rule over lists of tensors, in place: average * decay + current * (1 - decay)."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param_list, current_param_list, _):
        for ema, current in zip(ema_param_list, current_param_list):
            if _can_lerp(ema):
                ema.lerp_(current, 1 - decay)
            else:
                ema.copy_(ema * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn():
    """A rule over lists of tensors, in place: the equal average of all models so far."""

    @no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        count = num_averaged + 1
        for averaged, current in zip(averaged_param_list, current_param_list):
            if _can_lerp(averaged):
                averaged.lerp_(current, float(1 / count))
            else:
                averaged.add_((current - averaged) / count)

    return swa_update


def get_ema_avg_fn(decay=0.999):
    """The rule of get_ema_multi_avg_fn for one tensor, returning a new one."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn():
    """The rule of get_swa_multi_avg_fn for one tensor, returning a new one."""

    @no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(nn.Module):
    """A copy of `model` whose parameters are averages (PyTorch, torch.optim.swa_utils.AveragedModel).

    The equal average unless `avg_fn(average, current, n)` or `multi_avg_fn(averages, currents, n)` is given (not
    both). `use_buffers` averages buffers too; otherwise they are copied.
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        """The averaged model's output."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model):
        """Takes the parameters of `model` into the average."""
        if self.use_buffers:
            own = itertools.chain(self.module.parameters(), self.module.buffers())
            theirs = itertools.chain(model.parameters(), model.buffers())
        else:
            own, theirs = self.parameters(), model.parameters()
        pairs = [(mine, other.detach().to(mine.device)) for mine, other in zip(own, theirs)]
        count = self.n_averaged
        if count == 0:
            for mine, other in pairs:
                mine.detach().copy_(other)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn([mine.detach() for mine, _ in pairs], [other for _, other in pairs], count)
        else:
            average = self.avg_fn if self.avg_fn is not None else get_swa_avg_fn()
            for mine, other in pairs:
                mine.detach().copy_(average(mine.detach(), other, count))
        if not self.use_buffers:
            for mine, other in zip(self.module.buffers(), model.buffers()):
                mine.detach().copy_(other.detach().to(mine.device))
        self.n_averaged += 1


@no_grad()
def update_bn(loader, model, device=None):
    """Computes the running statistics of all batch norms of `model` anew, as plain averages over `loader`."""
    momenta = {}
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        if device is not None:
            batch = batch.to(device)
        model(batch)
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


def _cosine_anneal(t):
    return (1 - math.cos(math.pi * t)) / 2


def _linear_anneal(t):
    return t


def _clamp01(t):
    return max(0, min(1, t))


class SWALR(LRScheduler):
    """From the current rate to a fixed one in `anneal_epochs` (PyTorch, torch.optim.swa_utils.SWALR)."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        for group, lr in zip(optimizer.param_groups, _per_group("swa_lr", optimizer, swa_lr)):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    @property
    def anneal_func(self):
        """The share of the way as a function of the share of the time."""
        return _cosine_anneal if self._anneal_strategy == "cos" else _linear_anneal

    @staticmethod
    def _get_initial_lr(lr, swa_lr, alpha):
        return swa_lr if alpha == 1 else (lr - alpha * swa_lr) / (1 - alpha)

    def get_lr(self):
        self._warn_get_lr()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        span = max(1, self.anneal_epochs)
        before = self.anneal_func(_clamp01((step - 1) / span))
        now = self.anneal_func(_clamp01(step / span))
        rates = []
        for group in self.optimizer.param_groups:
            lr = group["lr"].clone() if isinstance(group["lr"], Tensor) else group["lr"]
            start = self._get_initial_lr(lr, group["swa_lr"], before)
            rates.append(group["swa_lr"] * now + start * (1 - now))
        return rates
