"""Autograd: the engine, modes, functions with gradients of their own, hooks, checkpoints."""

from msadapter_hook.tape import value as _value

from . import anomaly, attach
from .api import backward, grad
from .function import Function
from .modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)

attach.install()
_value.user_stack = anomaly.user_stack

__all__ = ["Function", "backward", "enable_grad", "grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled",
           "no_grad", "set_grad_enabled"]
