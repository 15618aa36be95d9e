"""torch.profiler.profiler: profiles with a schedule over the steps of a program."""

import enum
import os

from ..autograd.profiler import profile as _region

__all__ = ["ProfilerAction", "profile", "schedule", "supported_activities", "tensorboard_trace_handler"]


class ProfilerActivity(enum.Enum):
    """What can be recorded; here the CPU's side of operators. Source: PyTorch, torch.profiler.ProfilerActivity."""

    CPU, XPU, MTIA, CUDA, HPU, PrivateUse1 = range(6)


class ProfilerAction(enum.Enum):
    """What a step does. Source: PyTorch, torch.profiler.ProfilerAction."""

    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """The action of each step: cycles of waiting, warming up and recording. Source: PyTorch, torch.profiler.schedule."""
    if wait < 0 or warmup < 0 or active < 1 or repeat < 0 or skip_first < 0:
        raise AssertionError("Invalid profiler schedule arguments")

    def action(step):
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        length = wait + warmup + active
        if repeat and step // length >= repeat:
            return ProfilerAction.NONE
        at = step % length
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def supported_activities():
    """{ProfilerActivity.CPU}. Source: PyTorch, torch.profiler.supported_activities."""
    return {ProfilerActivity.CPU}


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """A function for `on_trace_ready` that writes each trace into a folder for TensorBoard. Source: PyTorch,
    torch.profiler.tensorboard_trace_handler."""
    import socket
    import time

    def handler(prof):
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handler


class profile:
    """Context that records operators, all steps or those that the schedule says; `step()` marks the end of one. Memory, call
    stacks and floating point operations are accepted and not recorded. Source: PyTorch, torch.profiler.profile."""

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False, profile_memory=False,
                 with_stack=False, with_flops=False, with_modules=False, experimental_config=None,
                 execution_trace_observer=None, acc_events=False, use_cuda=None, custom_trace_id_callback=None,
                 post_processing_timeout_s=None):
        self.activities = set(activities) if activities else supported_activities()
        self.on_trace_ready, self.record_shapes, self.with_modules = on_trace_ready, record_shapes, with_modules
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.record_steps = schedule is not None
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler = None
        self.metadata = {}

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self.stop()

    def start(self):
        """Begin with the action of step 0."""
        self._enter(self.current_action)

    def _records(self, action):
        return action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

    def _enter(self, action):
        if self._records(action):
            self.profiler = _region(record_shapes=self.record_shapes, with_modules=self.with_modules)
            self.profiler.__enter__()

    def _leave(self):
        self.profiler.__exit__(None, None, None)
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self):
        """The end of a step. Source: PyTorch, torch.profiler.profile.step."""
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE or self._records(before) and not self._records(self.current_action):
            self._leave()
            self._enter(self.current_action)
        elif not self._records(before):
            self._enter(self.current_action)

    def stop(self):
        """End what is being recorded."""
        if self._records(self.current_action) and self.profiler is not None and self.profiler.function_events is None:
            self._leave()
        self.current_action = ProfilerAction.NONE

    def _done(self):
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before getting key averages")
        return self.profiler

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """Sums by name: print them with `.table(sort_by="cpu_time_total")`. Source: PyTorch,
        torch.profiler.profile.key_averages."""
        return self._done().key_averages(group_by_input_shape, group_by_stack_n)

    def events(self):
        return self._done()._finished()

    def export_chrome_trace(self, path):
        """Write the trace; packed where the name ends in .gz. Source: PyTorch, torch.profiler.profile.export_chrome_trace."""
        path = os.fspath(path)
        if not path.endswith(".gz"):
            self._done().export_chrome_trace(path)
            return
        import gzip
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "trace.json")
            self._done().export_chrome_trace(plain)
            with open(plain, "rb") as source, gzip.open(path, "wb") as target:
                target.write(source.read())

    def export_stacks(self, path, metric="self_cpu_time_total"):
        self._done().export_stacks(path, metric)

    def export_memory_timeline(self, path, device=None):
        from .._refusal import refused

        refused("torch.profiler.profile.export_memory_timeline", "memory is not recorded; look at the process with psutil")()

    def add_metadata(self, key, value):
        self.metadata[key] = value

    add_metadata_json = preset_metadata_json = add_metadata


_KinetoProfile = profile
