"""torch.autograd: backward, grad, modes, Function."""

from msadapter_hook.autograd import backward, grad

from . import forward_ad, function, functional, grad_mode, graph, profiler, profiler_util
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function, NestedIOFunction
from .grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .gradcheck import gradcheck, gradgradcheck
from .variable import Variable


def kineto_available():
    """False: the profiler is the adapter's own. Source: PyTorch, torch.autograd.kineto_available."""
    return False


__all__ = ["Function", "Variable", "backward", "detect_anomaly", "enable_grad", "grad", "inference_mode", "no_grad",
           "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled"]
