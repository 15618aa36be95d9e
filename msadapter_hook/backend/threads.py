"""A second processor for host kernels: NumPy and ctypes let other Python threads run while they compute."""

import os
import threading

import numpy as np


class _Helper:
    """A thread that does one job at a time; handing one over costs some 10 µs."""

    def __init__(self):
        self._asked, self._done = threading.Lock(), threading.Lock()
        self._asked.acquire()
        self._done.acquire()
        self._job = self._error = None
        self.free = threading.Lock()
        threading.Thread(target=self._work, name="msadapter_hook helper", daemon=True).start()

    def _work(self):
        np.seterr(all="ignore")  # of this thread: floating-point events pass without a warning, as in PyTorch
        while True:
            self._asked.acquire()
            try:
                self._job()
            except BaseException as error:  # told to who asked
                self._error = error
            self._job = None
            self._done.release()

    def start(self, job):
        self._job, self._error = job, None
        self._asked.release()

    def join(self):
        interrupted = None
        while True:
            try:
                self._done.acquire()
                break
            except KeyboardInterrupt as error:  # the job reads and writes arrays of the caller: it ends first
                interrupted = error
        if interrupted is not None:
            raise interrupted
        if self._error is not None:
            raise self._error


_WORTH_SPLITTING = 1 << 20
_threads = {"helper": None, "number": os.cpu_count() or 1}


def use_threads(number):
    """How many processors kernels may use; they use two at most."""
    _threads["number"] = number


def _forget_helper():
    _threads["helper"] = None  # threads do not survive a fork


os.register_at_fork(after_in_child=_forget_helper)


def side_by_side(first, second, multiplications=_WORTH_SPLITTING):
    """Call both, the second in a helper thread where one is free and the work is worth it."""
    if _threads["number"] < 2 or multiplications < _WORTH_SPLITTING:
        first()
        second()
        return
    helper = _threads["helper"]
    if helper is None:
        helper = _threads["helper"] = _Helper()
    if not helper.free.acquire(blocking=False):
        first()
        second()
        return
    try:
        helper.start(second)
        try:
            first()
        finally:
            helper.join()
    finally:
        helper.free.release()


def each(jobs):
    """Call one or two jobs; two of them side by side."""
    if len(jobs) == 1:
        jobs[0]()
    else:
        side_by_side(*jobs)
