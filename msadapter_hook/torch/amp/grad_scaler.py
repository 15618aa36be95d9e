"""torch.amp.grad_scaler: scale the loss so that small gradients survive in half precision."""

import warnings
from enum import Enum

from .. import Tensor, full, no_grad

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """Where an optimizer stands between two updates of the scale."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """Scales losses, unscales gradients, skips steps with infinities. Source: PyTorch, torch.amp.GradScaler."""

    def __init__(self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000,
                 enabled=True):
        self._device = device
        self._enabled = enabled
        if device == "cuda" and enabled:
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", UserWarning, stacklevel=2)
            self._enabled = False
        if self._enabled:
            if not growth_factor > 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if not backoff_factor < 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
            self._init_scale = init_scale
            self._scale = None
            self._growth_factor, self._backoff_factor, self._growth_interval = growth_factor, backoff_factor, growth_interval
            self._growth_tracker = 0
        self._per_optimizer = {}

    def _state(self, optimizer):
        return self._per_optimizer.setdefault(id(optimizer), {"stage": OptState.READY, "found_inf": None})

    def _scale_tensor(self):
        if self._scale is None:
            self._scale = full((), self._init_scale)
        return self._scale

    def scale(self, outputs):
        """The outputs (a tensor, or an iterable of such) times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_tensor()
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(o) for o in outputs])
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer, grads=None):
        """Divide the gradients of the optimizer's parameters by the scale, and note infinities.

        grads: the gradients themselves, as the functional route has them (MindTorch); divided in place.
        """
        if not self._enabled:
            return
        state = self._state(optimizer)
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        if self._scale is None:
            raise AssertionError("Attempted unscale_ but _scale is None.  This may indicate your script did not use "
                                 "scaler.scale(loss or outputs) earlier in the iteration.")
        inverse, found = 1.0 / self._scale.item(), False
        with no_grad():
            for grad in _grads_of(optimizer) if grads is None else _listed(grads):
                seen = grad.coalesce().values() if grad.is_sparse else grad  # places that repeat may overflow when they are added up
                found = found or not bool(seen.isfinite().all())
                grad.mul_(inverse)
        state["found_inf"], state["stage"] = found, OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """`optimizer.step()`, unless a gradient is infinite or NaN; gives what the step gives.

        `step(optimizer, grads)` is the functional route's (MindTorch): `optimizer(grads)` under the same condition.
        """
        grads = args[0] if args and (isinstance(args[0], Tensor) or isinstance(args[0], (list, tuple))) else None
        update = optimizer.step if grads is None else optimizer
        if not self._enabled:
            return update(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        state = self._state(optimizer)
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer, grads)
        result = None if state["found_inf"] else update(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale=None):
        """Adapt the scale after the steps of this iteration, or set it."""
        if not self._enabled:
            return
        scale = self._scale_tensor()
        if new_scale is not None:
            value = new_scale.item() if isinstance(new_scale, Tensor) else float(new_scale)
            scale.fill_(value)
        else:
            checks = [s["found_inf"] for s in self._per_optimizer.values() if s["found_inf"] is not None]
            if not checks:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(checks):
                scale.mul_(self._backoff_factor)
                self._growth_tracker = 0
            else:
                self._growth_tracker += 1
                if self._growth_tracker == self._growth_interval:
                    scale.mul_(self._growth_factor)
                    self._growth_tracker = 0
        self._per_optimizer = {}

    def get_scale(self):
        """The scale as a number (1 where disabled)."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self):
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        self._growth_interval = new_interval

    def is_enabled(self):
        return self._enabled

    def state_dict(self):
        """What load_state_dict needs to go on."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._growth_tracker}

    def load_state_dict(self, state_dict):
        """Go on from a state_dict."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance of "
                               "GradScaler.")
        self._init_scale = state_dict["scale"]
        self._scale = full((), state_dict["scale"])
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval, self._growth_tracker = state_dict["growth_interval"], state_dict["_growth_tracker"]


def _grads_of(optimizer):
    return [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]


def _listed(grads):
    return [grads] if isinstance(grads, Tensor) else [g for g in grads if g is not None]
