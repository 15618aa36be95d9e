"""torch.autograd.profiler: recording what operators run, over the adapter's report."""

import functools
import threading
import time

from msadapter_hook import report
from msadapter_hook.ops.tables import OPERATORS

from .profiler_util import EventList, FunctionEvent, FunctionEventAvg, Interval

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval", "emit_itt", "emit_nvtx", "profile", "record_function"]

_active = []  # the profiles that record now


def _operator_name(name):
    """The name under which PyTorch's profiles show a public name; None for a module."""
    if not name.startswith("torch."):
        return None
    rest = name[len("torch."):]
    if rest == "Tensor.backward":
        return "autograd::engine::backward"
    if rest.startswith("optim."):
        return f"Optimizer.step#{rest[len('optim.'):]}"
    if rest not in OPERATORS:
        return None
    return "aten::" + rest.replace("nn.functional.", "").replace(".", "_")


def _shapes(arguments):
    """Sizes of the tensors among the arguments of a measured call."""
    found = []
    for argument in arguments:
        items = argument if isinstance(argument, (tuple, list)) else (argument,)
        for item in items:
            shape = getattr(item, "shape", None)
            found.append(list(shape) if isinstance(shape, tuple) else [])
    return found


class Recorder:
    """The events of the measured calls, with who called whom; one stack for each thread."""

    def __init__(self, shapes=False, modules=False):
        self.events = EventList(shapes=shapes)
        self.shapes, self.modules = shapes, modules
        self.zero = time.perf_counter()
        self._local = threading.local()

    def now(self):
        return (time.perf_counter() - self.zero) * 1e6

    def _stack(self):
        if not hasattr(self._local, "stack"):
            self._local.stack = []
        return self._local.stack

    def begin(self, name, arguments):
        shown = _operator_name(name)
        if shown is None:
            shown = f"nn.Module: {name.rpartition('.')[2]}" if self.modules else None
        self.push(shown, _shapes(arguments) if self.shapes else "")

    def push(self, name, shapes="", annotation=False):
        stack = self._stack()
        if name is None:
            stack.append(None)
            return None
        event = FunctionEvent(len(self.events) + 1, name, threading.get_ident(), self.now(), shapes, annotation)
        parent = next((one for one in reversed(stack) if one is not None), None)
        if parent is not None:
            event.cpu_parent = parent
            parent.cpu_children.append(event)
        self.events.append(event)
        stack.append(event)
        return event

    def end(self, name, path):
        stack = self._stack()
        event = stack.pop() if stack else None
        if event is not None:
            event.time_range.end, event.path = self.now(), path


class profile:
    """Context that records the operators run in it. Times include what an operator calls; values that are computed late are counted
    where they are read. Source: PyTorch, torch.autograd.profiler.profile."""

    def __init__(self, enabled=True, *, use_cuda=False, use_device=None, record_shapes=False, with_flops=False,
                 profile_memory=False,
                 with_stack=False, with_modules=False, use_kineto=False, use_cpu=True, **options):
        self.enabled, self.record_shapes, self.with_modules = enabled, record_shapes, with_modules
        self.function_events = None
        self.entered = False
        self._recorder = None

    def __enter__(self):
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._start()
        return self

    def _start(self):
        self._recorder = Recorder(self.record_shapes, self.with_modules)
        _active.append(self._recorder)
        report.observe(self._recorder)

    def _stop(self):
        _active.remove(self._recorder)
        report.forget(self._recorder)
        self.function_events = self._recorder.events

    def __exit__(self, exc_type, exc_val, exc_tb):
        if self.enabled:
            self._stop()
        return False

    def _finished(self):
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def __repr__(self):
        return "<unfinished torch.autograd.profile>" if self.function_events is None else repr(self.function_events)

    def __str__(self):
        return "<unfinished torch.autograd.profile>" if self.function_events is None else str(self.function_events)

    def table(self, sort_by=None, row_limit=100, **options):
        return self._finished().table(sort_by=sort_by, row_limit=row_limit, **options)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        return self._finished().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self):
        return self._finished().total_average()

    def export_chrome_trace(self, path):
        self._finished().export_chrome_trace(path)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        self._finished().export_stacks(path, metric)

    @property
    def self_cpu_time_total(self):
        return self._finished().self_cpu_time_total


class record_function:
    """Context or decorator that puts a name of the program's own into profiles. Source: PyTorch,
    torch.autograd.profiler.record_function."""

    def __init__(self, name, args=None):
        self.name, self.args = name, args
        self._entered = []

    def __enter__(self):
        self._entered = list(_active)
        for recorder in self._entered:
            recorder.push(self.name, [] if recorder.shapes else "", annotation=True)
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        for recorder in self._entered:
            recorder.end(self.name, None)
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def recorded(*args, **kwargs):
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return recorded


class _Marks:
    """Kept for programs that mark regions for tools of hardware makers, which are not here: nothing is marked."""

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled = enabled

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


class emit_nvtx(_Marks):
    """Source: PyTorch, torch.autograd.profiler.emit_nvtx."""


class emit_itt(_Marks):
    """Source: PyTorch, torch.autograd.profiler.emit_itt."""


# ------------------------------------------------------------------------------------------------ as operators
def _enter(name, args=None):
    """Begin a region; gives the tensor by which `_exit` knows it. Source: PyTorch, torch.ops.profiler._record_function_enter."""
    from .. import empty

    handle = empty(0)
    handle._region = record_function(name, args).__enter__()
    return handle


def _exit(handle):
    """End the region of a handle."""
    handle._region.__exit__(None, None, None)


def _register():
    from .._ops import define

    for name in ("_record_function_enter", "_record_function_enter_new"):
        define("profiler", f"{name}(str name, str? args=None) -> Tensor").kernels["CompositeImplicitAutograd"] = _enter
    define("profiler", "_record_function_exit(Tensor handle) -> ()").kernels["CompositeImplicitAutograd"] = _exit


_register()
