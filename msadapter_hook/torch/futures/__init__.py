"""torch.futures: values that are there later."""

import threading

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A value that is there later (PyTorch, torch.futures.Future). devices: accepted, for tensors on any device."""

    def __init__(self, *, devices=None):
        self._ready, self._value, self._error, self._callbacks = threading.Event(), None, None, []
        self._lock = threading.Lock()

    def done(self):
        """True when the value, or an error, is there."""
        return self._ready.is_set()

    def wait(self):
        """The value, once it is there; raises the error where there is one."""
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def value(self):
        """The value that is there. RuntimeError where it is not."""
        if not self.done():
            raise RuntimeError("the Future has no value yet; wait() for it")
        return self.wait()

    def then(self, callback):
        """A Future of what `callback(self)` will give."""
        made = Future()

        def run(future):
            try:
                made.set_result(callback(future))
            except Exception as error:
                made.set_exception(error)

        self.add_done_callback(run)
        return made

    def add_done_callback(self, callback):
        """Call `callback(self)` when the value is there, or now."""
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback(self)

    def set_result(self, result):
        """Give the value. RuntimeError where there is one."""
        self._settle(result, None)

    def set_exception(self, result):
        """Give an error, which `wait` raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._settle(None, result)

    def _settle(self, value, error):
        with self._lock:
            if self.done():
                raise RuntimeError("Attempting to mark a completed Future as complete again. Note that a Future can only be marked "
                                   "completed once.")
            self._value, self._error = value, error
            self._ready.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


def collect_all(futures):
    """A Future of the list of futures, there when all are. Source: PyTorch, torch.futures.collect_all."""
    made, waiting, lock = Future(), [len(futures)], threading.Lock()

    def count(future):
        with lock:
            waiting[0] -= 1
            last = waiting[0] == 0
        if last:
            failed = next((one._error for one in futures if one._error is not None), None)
            made.set_result(list(futures)) if failed is None else made.set_exception(failed)

    for future in futures:
        future.add_done_callback(count)
    if not futures:
        made.set_result([])
    return made


def wait_all(futures):
    """The values of all futures. Source: PyTorch, torch.futures.wait_all."""
    return [future.wait() for future in collect_all(futures).wait()]
