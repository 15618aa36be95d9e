# torch.futures: a value that comes later, with continuations. Nothing here starts a thread: whoever sets the value runs what waits.
import logging
import threading

__all__ = ["Future", "collect_all", "wait_all"]

_log = logging.getLogger(__name__)


def _in_callback(error):
    return f"Got the following error when running the callback: {type(error).__name__}: {error}"


class Future:
    """A result that may not be there yet. Source: PyTorch, torch.futures.Future.

    `set_result` and `set_exception` may be called once (RuntimeError after that); continuations run in the thread that sets
    the result, or at once where it is set already. `devices` is accepted for devices that have streams; the CPU has none.
    """

    def __init__(self, *, devices=None):
        self._devices = list(devices) if devices is not None else []
        self._ready = threading.Event()
        self._lock = threading.Lock()
        self._callbacks = []
        self._value = None
        self._error = None

    def __class_getitem__(cls, item):
        return cls

    def done(self):
        """Whether a result or an exception has been set."""
        return self._ready.is_set()

    def wait(self):
        """The result, waited for; raises the exception that was set instead."""
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def value(self):
        """The result of a finished future; RuntimeError before, and the exception where one was set."""
        if not self.done():
            raise RuntimeError("Future has not completed yet: value() needs a finished future, wait() waits for it")
        return self.wait()

    def then(self, callback):
        """A future with `callback(self)`, run once this one is finished; an exception in it becomes the new future's."""
        following = type(self)()

        def run(finished):
            try:
                result = callback(finished)
            except Exception as error:
                following.set_exception(RuntimeError(_in_callback(error)))
            else:
                following.set_result(result)

        self.add_done_callback(run)
        return following

    def add_done_callback(self, callback):
        """Call `callback(self)` once the future is finished; what it gives is dropped."""
        with self._lock:
            if not self._ready.is_set():
                self._callbacks.append(callback)
                return
        self._run(callback)

    def _run(self, callback):
        # an error here belongs to nobody who waits: it is told, and the others still run
        try:
            callback(self)
        except Exception as error:
            _log.error(_in_callback(error), exc_info=error)

    def _finish(self, value, error):
        with self._lock:
            if self._ready.is_set():
                raise RuntimeError("Attempting to mark a completed Future as complete again. Note that a Future can only be marked "
                                   "completed once.")
            self._value, self._error = value, error
            self._ready.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            self._run(callback)

    def set_result(self, result):
        """Finish with a result."""
        self._finish(result, None)

    def set_exception(self, result):
        """Finish with an exception, which `wait` and `value` raise."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)


def collect_all(futures):
    """A future that finishes once all of `futures` have, with the list of them; with the first exception where one has one.

    Source: PyTorch, torch.futures.collect_all.
    """
    futures = list(futures)
    everything, lock, missing = Future(), threading.Lock(), [len(futures)]
    if not futures:
        everything.set_result(futures)

    def one_more(_):
        with lock:
            missing[0] -= 1
            last = missing[0] == 0
        if not last:
            return
        error = next((f._error for f in futures if f._error is not None), None)
        if error is not None:
            everything.set_exception(error)
        else:
            everything.set_result(futures)

    for future in futures:
        future.add_done_callback(one_more)
    return everything


def wait_all(futures):
    """The results of all futures, waited for, in order. Source: PyTorch, torch.futures.wait_all."""
    return [future.wait() for future in collect_all(futures).wait()]
