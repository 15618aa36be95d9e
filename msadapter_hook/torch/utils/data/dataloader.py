# The DataLoader and its two iterators: in the calling thread, and over worker threads.
import functools
import itertools
import multiprocessing
import os
import queue
import time
import warnings
import weakref
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ... import empty, int64
from ..._utils import ExceptionWrapper
from . import _utils
from ._utils.collate import default_collate, default_convert
from ._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher
from ._utils.pin_memory import pin_memory as _pin
from ._utils.worker import Worker, _Died, _IterableDatasetStopIteration, _ResumeIteration, get_worker_info
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "get_worker_info", "default_collate", "default_convert"]

_T_co = TypeVar("_T_co", covariant=True)


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        """The fetcher for a kind of dataset."""
        fetcher = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler):
    """None for ever: the "indices" of an iterable dataset."""

    def __iter__(self):
        return itertools.repeat(None)


class DataLoader(Generic[_T_co]):
    """Batches of a dataset in an order drawn as PyTorch draws it (PyTorch, torch.utils.data.DataLoader).

    Workers (`num_workers` > 0) are threads with random streams of their own, seeded with base seed + worker id.
    ValueError for options that exclude each other.
    """

    __initialized = False

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
    ):
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing."
                "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
            )
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
        elif prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")

        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.in_order = in_order
        self.multiprocessing_context = multiprocessing_context

        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            if shuffle not in {False, None}:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}"
                )
            if sampler is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified sampler option, but got sampler={sampler}"
                )
            if batch_sampler is not None:
                raise ValueError(
                    "DataLoader with IterableDataset: expected unspecified batch_sampler option, "
                    f"but got batch_sampler={batch_sampler}"
                )
        else:
            shuffle = bool(shuffle)
            self._dataset_kind = _DatasetKind.Map
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called = None
        self._iterator = None
        self.check_worker_number_rationality()

    @property
    def multiprocessing_context(self):
        """The start method asked for; workers are threads, so it is checked and kept only."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        if context is not None:
            if self.num_workers <= 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), "
                    f"but got num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise ValueError(
                        "multiprocessing_context option should specify a valid start method in "
                        f"{methods!r}, but got multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the "
                    f"start method, but got multiprocessing_context={context}"
                )
        self.__multiprocessing_context = context

    def __setattr__(self, attr, val):
        fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
        if self.__initialized and attr in fixed:
            raise ValueError(f"{attr} attribute should not be set after {self.__class__.__name__} is initialized")
        super().__setattr__(attr, val)

    def _get_iterator(self):
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self):
        if self.persistent_workers and self.num_workers > 0:
            if self._iterator is None:
                self._iterator = self._get_iterator()
            else:
                self._iterator._reset(self)
            return self._iterator
        return self._get_iterator()

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self):
        if self._dataset_kind != _DatasetKind.Iterable:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is not None:
            whole, rest = divmod(length, self.batch_size)
            length = whole + (1 if rest and not self.drop_last else 0)
        return length

    def check_worker_number_rationality(self):
        """Warns about more workers than this process may use processors."""
        if not self.num_workers:
            return
        try:
            available = len(os.sched_getaffinity(0))
        except AttributeError:
            available = os.cpu_count()
        if available is None or self.num_workers <= available:
            return
        warnings.warn(
            f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of "
            f"worker in current system is {available}, which is smaller than what this DataLoader is going to create. "
            "Please be aware that excessive worker creation might get DataLoader running slow or even freeze, lower "
            "the worker number to avoid potential slowness/freeze if necessary.",
            stacklevel=3,
        )


class _BaseDataLoaderIter:
    def __init__(self, loader):
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._persistent_workers = loader.persistent_workers
        self._pin_memory = loader.pin_memory
        if loader.pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, "
                "then device pinned memory won't be used.",
                stacklevel=4,
            )
        self._sampler_iter = iter(self._index_sampler)
        # drawn by every iterator, workers or not: it is part of the default generator's stream
        self._base_seed = empty((), dtype=int64).random_(generator=loader.generator).item()
        self._num_yielded = 0

    def __iter__(self):
        return self

    def _reset(self, loader, first_iter=False):
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_index(self):
        return next(self._sampler_iter)

    def _next_data(self):
        raise NotImplementedError

    def __next__(self):
        data = self._next_data()
        self._num_yielded += 1
        if (
            self._dataset_kind == _DatasetKind.Iterable
            and self._IterableDataset_len_called is not None
            and self._num_yielded > self._IterableDataset_len_called
        ):
            message = (
                f"Length of IterableDataset {self._dataset} was reported to be {self._IterableDataset_len_called}"
                f"(when accessing len(dataloader)), but {self._num_yielded} samples have been fetched. "
            )
            if self._num_workers > 0:
                message += (
                    "For multiprocessing data-loading, this could be caused by not properly configuring the "
                    "IterableDataset replica at each worker. Please see "
                    "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
                )
            warnings.warn(message, stacklevel=2)
        return data

    def __len__(self):
        return len(self._index_sampler)

    def __getstate__(self):
        raise NotImplementedError("{} cannot be pickled", self.__class__.__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Everything in the calling thread."""

    def __init__(self, loader):
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError(f"expected self._timeout to be 0, but got {self._timeout}")
        if self._num_workers != 0:
            raise AssertionError(f"expected self._num_workers to be 0, but got {self._num_workers}")
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def _next_data(self):
        data = self._dataset_fetcher.fetch(self._next_index())
        return _pin(data) if self._pin_memory else data


@dataclass(frozen=True)
class _WorkerOptions:
    """What a worker needs to know of its loader; it must not hold the iterator itself, which would never be freed."""

    dataset: Any
    iterable: bool
    worker_init_fn: Any
    create_fetcher: Any


def _make_fetcher(dataset, *, kind, auto_collation, collate_fn, drop_last):
    return _DatasetKind.create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last)


def _stop_all(workers):
    for worker in workers:
        worker.stop()


def _stop_and_wait(workers, seconds=_utils.MP_STATUS_CHECK_INTERVAL):
    """Ends the workers; at exit of the interpreter a thread that still runs would meet a torn-down runtime."""
    _stop_all(workers)
    deadline = time.monotonic() + seconds
    for worker in workers:
        worker.thread.join(max(0.0, deadline - time.monotonic()))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Tasks go round robin to the workers; batches come back in order (or as they come, without `in_order`).

    `_tasks`: idx -> worker id of everything sent and not yet given out; `_arrived`: idx -> batch.
    """

    def __init__(self, loader):
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        self._results = queue.Queue()
        iterable = self._dataset_kind == _DatasetKind.Iterable
        options = _WorkerOptions(
            dataset=self._dataset,
            iterable=iterable,
            worker_init_fn=loader.worker_init_fn,
            create_fetcher=functools.partial(
                _make_fetcher,
                kind=self._dataset_kind,
                auto_collation=self._auto_collation,
                collate_fn=self._collate_fn,
                drop_last=self._drop_last,
            ),
        )
        self._epoch = 0
        self._workers = [
            Worker(i, self._num_workers, self._results, self._base_seed, options) for i in range(self._num_workers)
        ]
        self._finalizer = weakref.finalize(self, _stop_and_wait, self._workers)
        self._shutdown = False
        self._begin_epoch()

    def _begin_epoch(self):
        self._send_idx = 0  # of the next task
        self._rcvd_idx = 0  # of the next batch to give out
        self._tasks = {}
        self._arrived = {}
        self._active = [True] * self._num_workers  # has more to give in this epoch
        self._cycle = itertools.cycle(range(self._num_workers))
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    def _reset(self, loader, first_iter=False):
        super()._reset(loader)
        self._epoch += 1
        for worker in self._workers:
            worker.indices.put(_ResumeIteration(self._epoch))
        waiting = set(range(self._num_workers))
        while waiting:
            epoch, _, worker_id, data = self._receive()
            if isinstance(data, _ResumeIteration) and epoch == self._epoch:
                waiting.discard(worker_id)
        self._begin_epoch()

    def _try_put_index(self):
        if len(self._tasks) >= self._prefetch_factor * self._num_workers:
            return
        try:
            index = self._next_index()
        except StopIteration:
            return
        for _ in range(self._num_workers):
            worker_id = next(self._cycle)
            if self._active[worker_id]:
                break
        else:
            return
        self._workers[worker_id].indices.put((self._send_idx, index))
        self._tasks[self._send_idx] = worker_id
        self._send_idx += 1

    def _receive(self):
        """The next message of any worker. RuntimeError after `timeout` seconds, or when a worker has died."""
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else None
        while True:
            patience = _utils.MP_STATUS_CHECK_INTERVAL
            if deadline is not None:
                patience = min(patience, max(0.0, deadline - time.monotonic()))
            try:
                message = self._results.get(timeout=patience)
            except queue.Empty:
                message = None
            dead = [w for w in self._workers if not w.thread.is_alive()] if message is None else []
            if message is not None and isinstance(message[3], _Died):
                dead = [self._workers[message[2]]]
            if dead:
                self._shutdown_workers()
                names = ", ".join(f"worker {w.id}" for w in dead)
                raise RuntimeError(f"DataLoader worker (pid(s) {names}) exited unexpectedly")
            if message is not None:
                return message
            if deadline is not None and time.monotonic() >= deadline:
                self._shutdown_workers()
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")

    def _take(self):
        """The idx of a batch that may be given out now, if there is one; skips what ended workers never made."""
        if not self._in_order:
            return next(iter(self._arrived), None)
        while self._rcvd_idx < self._send_idx:
            if self._rcvd_idx in self._arrived:
                return self._rcvd_idx
            if self._rcvd_idx in self._tasks and self._active[self._tasks[self._rcvd_idx]]:
                return None
            self._tasks.pop(self._rcvd_idx, None)
            self._rcvd_idx += 1
        return None

    def _pending(self):
        return any(self._active[worker_id] for worker_id in self._tasks.values())

    def _next_data(self):
        if self._shutdown:
            raise StopIteration
        while True:
            idx = self._take()
            if idx is not None:
                data = self._arrived.pop(idx)
                del self._tasks[idx]
                if self._in_order:
                    self._rcvd_idx += 1
                self._try_put_index()
                if isinstance(data, ExceptionWrapper):
                    data.reraise()
                return _pin(data) if self._pin_memory else data
            if not self._pending():
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            epoch, idx, worker_id, data = self._receive()
            if epoch != self._epoch or isinstance(data, _ResumeIteration):
                continue  # left over from an epoch that was not iterated to its end
            if isinstance(data, _IterableDatasetStopIteration):
                self._active[worker_id] = False
                if not self._persistent_workers:
                    self._workers[worker_id].indices.put(None)
                self._tasks.pop(idx, None)
                self._try_put_index()
                continue
            self._arrived[idx] = data

    def _shutdown_workers(self):
        self._shutdown = True
        _stop_all(self._workers)
