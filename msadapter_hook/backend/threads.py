"""A second processor for host kernels: NumPy and ctypes let other Python threads run while they compute.

A helper thread takes jobs. Whoever needs a result does its job himself if it has not been begun, so nobody waits for a helper
that is busy with something else.
"""

import ctypes
import os
import threading
from collections import deque

import numpy as np

from msadapter_hook import settings


class Job:
    """A call that two threads may do, and one does."""

    __slots__ = ("_call", "_queue", "_done", "_error")

    def __init__(self, call, queue):
        self._call, self._queue, self._done, self._error = call, queue, threading.Lock(), None
        self._done.acquire()
        queue.append(self)

    def run(self):
        try:
            self._call()
        except BaseException as error:  # told to who needs the result
            self._error = error
        self._call = None
        self._done.release()

    def take(self):
        """Do it now if it has not been begun."""
        try:
            self._queue.remove(self)
        except ValueError:
            return
        self.run()

    def finish(self):
        """Do it, or wait for who is doing it; an error in it is raised."""
        self.take()
        interrupted = None
        while True:
            try:
                with self._done:
                    break
            except KeyboardInterrupt as error:  # the job reads and writes arrays of the caller: it ends first
                interrupted = error
        if interrupted is not None:
            raise interrupted
        if self._error is not None:
            raise self._error


class Later:
    """An array that jobs fill: `shape` and `dtype` are known, `array` is there when they are done."""

    __slots__ = ("shape", "dtype", "_array", "_jobs")

    def __init__(self, array, jobs):
        self.shape, self.dtype, self._array, self._jobs = array.shape, array.dtype, array, jobs

    @property
    def array(self):
        for job in self._jobs:
            job.take()
        for job in self._jobs:
            job.finish()
        self._jobs = ()
        return self._array


def _processor():
    """The function that tells which processor the calling thread is on; None where there is none."""
    try:
        return ctypes.PyDLL(None).sched_getcpu if hasattr(os, "sched_setaffinity") else None
    except (OSError, AttributeError):
        return None


class _Helper:
    """A thread that does jobs: first those that somebody is about to wait for."""

    def __init__(self):
        self.urgent, self.later = deque(), deque()
        self._wake = threading.Lock()
        self._wake.acquire()
        self._thread = threading.Thread(target=self._work, name="msadapter_hook helper", daemon=True)
        self._thread.start()
        self._avoided, self._place = None, _processor() if settings.current().kernels != "host" else None

    def _work(self):
        np.seterr(all="ignore")  # of this thread: floating-point events pass without a warning, as in PyTorch
        while True:
            for queue in self.urgent, self.later:
                try:
                    job = queue.popleft()
                    break
                except IndexError:
                    pass
            else:
                self._wake.acquire()
                continue
            job.run()
            del job  # it may hold arrays

    def _go_elsewhere(self):
        """Keep to the processors that the caller is not on. Where threads of MindSpore look for work on all others, Linux may else put
        the helper behind who woke it, for a tick of its clock."""
        here = self._place()
        if here != self._avoided:
            self._avoided = here
            try:
                others = os.sched_getaffinity(0) - {here}
                if others:
                    os.sched_setaffinity(self._thread.native_id, others)
            except OSError:  # processors were taken from this process meanwhile, or it may not choose: the helper goes where it is put
                self._place = None

    def post(self, call, queue):
        job = Job(call, queue)
        if self._place is not None:
            self._go_elsewhere()
        try:
            self._wake.release()
        except RuntimeError:
            pass  # it has been woken already
        return job


_WORTH_SPLITTING = 1 << 20
_MOST = 8  # jobs that may be put off: each keeps its arrays
_threads = {"helper": None, "number": os.cpu_count() or 1}


def use_threads(number):
    """How many processors kernels may use; they use two at most."""
    _threads["number"] = number


def _forget_helper():
    _threads["helper"] = None  # threads do not survive a fork


os.register_at_fork(after_in_child=_forget_helper)


def _helper():
    if _threads["helper"] is None:
        _threads["helper"] = _Helper()
    return _threads["helper"]


def side_by_side(first, second, multiplications=_WORTH_SPLITTING):
    """Call both, the second in a helper thread where one is free and the work is worth it."""
    if _threads["number"] < 2 or multiplications < _WORTH_SPLITTING:
        first()
        second()
        return
    helper = _helper()
    job = helper.post(second, helper.urgent)
    try:
        first()
    finally:
        job.finish()


def each(jobs):
    """Call one or two jobs; two of them side by side."""
    if len(jobs) == 1:
        jobs[0]()
    else:
        side_by_side(*jobs)


def put_off(calls, made, multiplications=_WORTH_SPLITTING):
    """Have the calls, which fill the array `made`, done beside what follows, where that pays: the array, or a Later."""
    if _threads["number"] < 2 or multiplications < _WORTH_SPLITTING:
        for call in calls:
            call()
        return made
    helper = _helper()
    while len(helper.later) >= _MOST:
        try:
            helper.later[0].take()
        except IndexError:
            break
    return Later(made, [helper.post(call, helper.later) for call in calls])
