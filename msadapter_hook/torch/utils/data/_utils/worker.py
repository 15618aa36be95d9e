# The worker threads of a DataLoader: they take index lists from a queue of their own and put batches into a common
# one. Threads, because a forked child cannot run MindSpore.
import copy
import io
import pickle
import threading
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np

from .... import Tensor
from ...._utils import ExceptionWrapper
from . import worker_rng

_local = threading.local()


def _generate_state(base_seed, worker_id):
    """The four words that numpy.random of a worker is seeded with."""
    return tuple([int(word) for word in worker_rng.numpy_seed(base_seed, worker_id)])


@dataclass(frozen=True)
class WorkerInfo:
    """What `get_worker_info()` gives inside a worker (PyTorch, torch.utils.data.get_worker_info)."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str = "thread"


def get_worker_info():
    """The WorkerInfo of the calling worker; None outside of workers."""
    return getattr(_local, "info", None)


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """Stands for the end of a worker's share of an iterable dataset."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """Tells a persistent worker that a new epoch begins; the worker answers with the same."""

    epoch: int


class _Died:
    """Stands for a worker that ended by something that is no Exception, such as SystemExit."""


class _SharingPickler(pickle.Pickler):
    """Copies an object by pickling, but passes tensors and arrays by reference: they are read, not written to."""

    def __init__(self, file, kept):
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._kept = kept

    def persistent_id(self, obj):
        if isinstance(obj, (Tensor, np.ndarray)):
            self._kept.append(obj)
            return len(self._kept) - 1
        return None


class _SharingUnpickler(pickle.Unpickler):
    def __init__(self, file, kept):
        super().__init__(file)
        self._kept = kept

    def persistent_load(self, pid):
        return self._kept[pid]


def private_copy(dataset, iterable):
    """The worker's own dataset, so that what it sets on it stays its own, as it does in a process.

    An iterable dataset, which workers usually configure, is copied deeply where it can be pickled; otherwise, and for
    map-style datasets, only the object itself is copied, which is enough to rebind attributes."""
    if iterable:
        try:
            kept, file = [], io.BytesIO()
            _SharingPickler(file, kept).dump(dataset)
            file.seek(0)
            return _SharingUnpickler(file, kept).load()
        except Exception:
            pass  # lambdas, open files, local classes: what a forked process would have inherited
    try:
        return copy.copy(dataset)
    except Exception:
        return dataset


class Worker:
    """One worker thread. `indices`: its queue of (idx, index) tasks; None ends it."""

    def __init__(self, worker_id, num_workers, results, base_seed, loader_options):
        self.id = worker_id
        self.indices = SimpleQueue()
        self.stopped = threading.Event()
        self.thread = threading.Thread(
            target=_worker_loop,
            args=(worker_id, num_workers, self.indices, results, self.stopped, base_seed, loader_options),
            name=f"DataLoader worker {worker_id}",
            daemon=True,
        )
        self.thread.start()

    def join(self, timeout=None):
        """Waits until the worker has ended, as that of a process would."""
        self.thread.join(timeout)

    def is_alive(self):
        return self.thread.is_alive()

    def stop(self):
        """Asks the worker to end after what it is doing; does not wait."""
        self.stopped.set()
        self.indices.put(None)


def _worker_loop(worker_id, num_workers, indices, results, stopped, base_seed, options):
    seed = base_seed + worker_id
    worker_rng.enter(seed, worker_rng.numpy_seed(base_seed, worker_id))
    try:
        _serve(worker_id, num_workers, indices, results, stopped, seed, options)
    except BaseException:
        results.put((None, None, worker_id, _Died()))
        raise
    finally:
        _local.info = None
        worker_rng.leave()


def _serve(worker_id, num_workers, indices, results, stopped, seed, options):
    dataset = private_copy(options.dataset, options.iterable)
    _local.info = WorkerInfo(id=worker_id, num_workers=num_workers, seed=seed, dataset=dataset)
    where = f"in DataLoader worker process {worker_id}"
    fetcher = failure = None
    try:
        if options.worker_init_fn is not None:
            options.worker_init_fn(worker_id)
        fetcher = options.create_fetcher(dataset)
    except Exception:
        failure = ExceptionWrapper(where=where)
    ended = False
    epoch = 0
    while True:
        task = indices.get()
        if task is None or stopped.is_set():
            return
        if isinstance(task, _ResumeIteration):
            epoch, ended, failure = task.epoch, False, None
            results.put((epoch, None, worker_id, task))
            try:
                fetcher = options.create_fetcher(dataset)
            except Exception:
                failure = ExceptionWrapper(where=where)
            continue
        if ended:
            continue
        idx, index = task
        if failure is not None:
            data, failure = failure, None
        else:
            try:
                data = fetcher.fetch(index)
            except Exception as error:
                if isinstance(error, StopIteration) and options.iterable:
                    data, ended = _IterableDatasetStopIteration(worker_id), True
                else:
                    data = ExceptionWrapper(where=where)
        if stopped.is_set():
            return
        results.put((epoch, idx, worker_id, data))
        del data, task
