# Small names of the module torch: errors of devices, streams of the CPU, questions about devices, arithmetic of symbolic numbers.
import math as _math
import sys as _sys

from msadapter_hook.tensor import Tensor, dtypes
from msadapter_hook.tensor.device import device as _device

__all__ = ["AcceleratorError", "Event", "OutOfMemoryError", "Stream", "get_device_module", "legacy_contiguous_format", "sym_float",
           "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum"]

legacy_contiguous_format = dtypes.contiguous_format


class OutOfMemoryError(RuntimeError):
    """The memory of a device does not suffice. Source: PyTorch, torch.OutOfMemoryError."""

    __module__ = "torch"


class AcceleratorError(RuntimeError):
    """A device failed. Source: PyTorch, torch.AcceleratorError."""

    __module__ = "torch"


def get_device_module(device=None):
    """The module of a device, `torch.cpu` for none. RuntimeError where there is no such module. Source: PyTorch,
    torch.get_device_module."""
    kind = "cpu" if device is None else _device(device).type
    module = _sys.modules.get(f"torch.{kind}")
    if module is None:
        raise RuntimeError(f"Invalid device '{kind}' or device module 'torch.{kind}' not found; currently only support cpu")
    return module


class Stream:
    """A stream of work of the CPU; work is done when its call returns. Source: PyTorch, torch.Stream."""

    def __init__(self, device=None, *, priority=0):
        self.device, self.priority, self.stream_id = _device("cpu") if device is None else _device(device), priority, 0
        if self.device.type != "cpu":
            raise RuntimeError(f"torch.Stream: there is no device {self.device}")

    def query(self):
        """True: nothing is pending."""
        return True

    def synchronize(self):
        """Nothing is pending."""

    def record_event(self, event=None):
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event):
        """Nothing is pending."""

    def wait_stream(self, stream):
        """Nothing is pending."""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None

    def __repr__(self):
        return f"torch.Stream device_type={self.device.type}, device_index=-1, stream_id={self.stream_id}"


class Event:
    """A mark in a stream of the CPU. Times are not taken: `elapsed_time` is an error, as it is in PyTorch without
    `enable_timing`. Source: PyTorch, torch.Event."""

    def __init__(self, device=None, *, enable_timing=False, blocking=False, interprocess=False):
        self.device, self.event_id = _device("cpu") if device is None else _device(device), 0
        if enable_timing:
            raise NotImplementedError("torch.Event(enable_timing=True) is not supported by msadapter_hook: take time.perf_counter()")

    def record(self, stream=None):
        """Nothing is pending."""

    def query(self):
        """True: nothing is pending."""
        return True

    def wait(self, stream=None):
        """Nothing is pending."""

    def synchronize(self):
        """Nothing is pending."""

    def elapsed_time(self, end_event):
        raise ValueError("Both events must be created with argument 'enable_timing=True'.")

    def __repr__(self):
        return f"torch.Event device_type={self.device.type}, device_index=-1, event_flag=0, event_id={self.event_id}"


# Sizes are plain numbers here, so PyTorch's arithmetic of symbolic ones is Python's.
def sym_int(a):
    """The integer towards zero. Source: PyTorch, torch.sym_int."""
    return _math.floor(a) if a >= 0 else _math.ceil(a)


def sym_float(a):
    """A number as a float. Source: PyTorch, torch.sym_float."""
    return float(a)


def sym_max(a, b):
    """The larger; a float where one of them is. Source: PyTorch, torch.sym_max."""
    return type(a + b)(max(a, b))


def sym_min(a, b):
    """The smaller; a float where one of them is. Source: PyTorch, torch.sym_min."""
    return type(a + b)(min(a, b))


def sym_sum(args):
    """The sum. Source: PyTorch, torch.sym_sum."""
    return sum(args)


def sym_sqrt(a):
    """The square root. Source: PyTorch, torch.sym_sqrt."""
    return _math.sqrt(a)


def sym_not(a):
    """The contrary. Source: PyTorch, torch.sym_not."""
    return not a


def sym_ite(b, t, f):
    """`t` where `b`, else `f`. Source: PyTorch, torch.sym_ite."""
    return t if b else f


def _assert_async(input, assert_msg=None):
    """RuntimeError where a number is zero. Source: PyTorch, torch._assert_async."""
    if not (input.item() if isinstance(input, Tensor) else input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")
