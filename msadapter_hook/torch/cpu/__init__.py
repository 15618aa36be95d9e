"""torch.cpu: the CPU under the interface of an accelerator. Calls return when done: streams and events wait for nothing."""

import contextlib as _contextlib

from .._names import Event as _AnyEvent
from .._names import Stream as _AnyStream
from . import amp


class Stream(_AnyStream):
    """A stream of work; work is done when its call returns. Source: PyTorch, torch.cpu.Stream."""

    def __init__(self, priority=-1):
        super().__init__(priority=priority)


class Event(_AnyEvent):
    """A mark in a stream. Source: PyTorch, torch.cpu.Event."""

    def __init__(self):
        super().__init__()


_streams = [Stream()]


def is_available():
    """True. Source: PyTorch, torch.cpu.is_available."""
    return True


def is_initialized():
    return True


def device_count():
    """1. Source: PyTorch, torch.cpu.device_count."""
    return 1


def current_device():
    """"cpu". Source: PyTorch, torch.cpu.current_device."""
    return "cpu"


def set_device(device):
    """There is one CPU. Source: PyTorch, torch.cpu.set_device."""


def synchronize(device=None):
    """Every call has finished its work already. Source: PyTorch, torch.cpu.synchronize."""


def current_stream(device=None):
    """The stream in use. Source: PyTorch, torch.cpu.current_stream."""
    return _streams[-1]


@_contextlib.contextmanager
def stream(stream):
    """Work under a stream. None: no change. Source: PyTorch, torch.cpu.stream."""
    if stream is None:
        yield
        return
    _streams.append(stream)
    try:
        yield
    finally:
        _streams.pop()


StreamContext = stream
