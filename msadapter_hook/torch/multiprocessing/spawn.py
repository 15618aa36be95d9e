"""torch.multiprocessing.spawn: start processes, and hear of the one that fails."""

import multiprocessing
import multiprocessing.connection
import signal
import sys
import traceback

from msadapter_hook import launch

__all__ = ["ProcessException", "ProcessExitedException", "ProcessRaisedException", "spawn", "start_processes"]

_PATIENCE = 30  # seconds between asking a process to end and ending it


class ProcessException(Exception):
    """A process ended badly. `error_index`: which; `error_pid`: its pid."""

    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process raised; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """A process exited or was killed."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn, i, args, errors):
    launch.end_with(multiprocessing.parent_process().pid)
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        errors.put(traceback.format_exc())
        launch.failed = True
        sys.exit(1)


class ProcessContext:
    """The processes of one spawn."""

    def __init__(self, processes, errors):
        self.processes, self.error_queues = processes, errors
        self.sentinels = {p.sentinel: i for i, p in enumerate(processes)}

    def pids(self):
        return [p.pid for p in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Wait; True when all are done. Raises for the first that failed, after ending the others: at once, or after
        `grace_period` seconds, and by force where they do not end."""
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(self.sentinels.keys(), timeout=timeout)
        failed = None
        for sentinel in ready:
            i = self.sentinels.pop(sentinel)
            p = self.processes[i]
            p.join()
            if p.exitcode != 0:
                failed = i
                break
        if failed is None:
            return not self.sentinels
        if grace_period:
            multiprocessing.connection.wait(self.sentinels.keys(), timeout=grace_period)
        for p in self.processes:
            if p.is_alive():
                p.terminate()
        for p in self.processes:
            p.join(_PATIENCE)
            if p.is_alive():
                p.kill()
                p.join()
        p = self.processes[failed]
        if not self.error_queues[failed].empty():
            text = f"\n\n-- Process {failed} terminated with the following error:\n{self.error_queues[failed].get()}"
            raise ProcessRaisedException(text, failed, p.pid)
        if p.exitcode < 0:
            name = signal.Signals(-p.exitcode).name
            raise ProcessExitedException(f"process {failed} terminated with signal {name}", failed, p.pid, p.exitcode, name)
        raise ProcessExitedException(f"process {failed} terminated with exit code {p.exitcode}", failed, p.pid, p.exitcode)


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Start `nprocs` processes that run `fn(i, *args)`. Source: PyTorch, torch.multiprocessing.start_processes."""
    context = multiprocessing.get_context(start_method)
    errors, processes = [], []
    for i in range(nprocs):
        queue = context.SimpleQueue()
        process = context.Process(target=_run, args=(fn, i, args, queue), daemon=daemon)
        process.start()
        errors.append(queue)
        processes.append(process)
    made = ProcessContext(processes, errors)
    if not join:
        return made
    while not made.join():
        pass
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Run `fn(i, *args)` in `nprocs` processes. Source: PyTorch, torch.multiprocessing.spawn."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
