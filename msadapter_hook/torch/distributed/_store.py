# Stores: keys and bytes that several processes share. HashStore (threads of one process), FileStore (a file), PrefixStore (a corner
# of another store); TCPStore is in _tcp_store.py.
import os as _os
import struct
import threading
import time
from datetime import timedelta

from ._errors import DistStoreError, QueueEmptyError

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store"]

DEFAULT_TIMEOUT = timedelta(seconds=300)


def as_bytes(value):
    """Values are given as text or bytes."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    raise TypeError(f"a store holds str or bytes, not {type(value).__name__}")


def _number(text):
    try:
        return int(text)
    except ValueError:
        raise ValueError("stoll") from None


class Table:
    """The data of a store, for threads: the operations, each at once, and waiting for keys."""

    def __init__(self):
        self.data, self.queues = {}, {}
        self.changed = threading.Condition()

    def set(self, key, value):
        with self.changed:
            self.data[key] = value
            self.changed.notify_all()

    def add(self, key, amount):
        with self.changed:
            total = _number(self.data.get(key, b"0")) + amount
            self.data[key] = str(total).encode()
            self.changed.notify_all()
            return total

    def append(self, key, value):
        with self.changed:
            self.data[key] = self.data.get(key, b"") + value
            self.changed.notify_all()

    def compare_set(self, key, expected, desired):
        with self.changed:
            found = self.data.get(key)
            if found is None and expected:
                return expected
            if found is None or found == expected:
                self.data[key] = desired
                self.changed.notify_all()
                return desired
            return found

    def delete_key(self, key):
        with self.changed:
            return self.data.pop(key, None) is not None

    def push(self, key, value):
        with self.changed:
            self.queues.setdefault(key, []).append(value)
            self.changed.notify_all()

    def pop(self, key, seconds):
        """The oldest value of a queue, or None where none has come after the seconds."""
        with self.changed:
            self.changed.wait_for(lambda: self.queues.get(key), seconds)
            return self.queues[key].pop(0) if self.queues.get(key) else None

    def wait(self, keys, seconds):
        """True when all keys are there, False where one is missing after the seconds."""
        with self.changed:
            return self.changed.wait_for(lambda: all(key in self.data for key in keys), min(seconds, threading.TIMEOUT_MAX))


class Store:
    """Keys and values that several processes share: what all stores have (PyTorch, torch.distributed.Store).

    Values are given as str or bytes and come back as bytes. `get` and `wait` wait for missing keys, by default for `timeout`.
    """

    def __init__(self):
        self._timeout = DEFAULT_TIMEOUT

    @property
    def timeout(self):
        """How long `get` and `wait` wait (a timedelta)."""
        return self._timeout

    def set_timeout(self, timeout):
        self._timeout = timeout

    def wait(self, keys, timeout=None):
        """Wait until all keys are there. Raises DistStoreError where one is missing after the timeout."""
        timeout = self._timeout if timeout is None else timeout
        if not self._wait(list(keys), timeout.total_seconds()):
            raise DistStoreError(f"wait timeout after {round(timeout.total_seconds() * 1000)}ms, keys: {', '.join(keys)}")

    def get(self, key):
        """The value of a key, once it is there. Raises DistStoreError after the timeout."""
        self.wait([key])
        return self._get(key)

    def multi_get(self, keys):
        self.wait(keys)
        return [self._get(key) for key in keys]

    def multi_set(self, keys, values):
        if len(keys) != len(values):
            raise ValueError("multi_set keys and values vectors must be of same size")
        for key, value in zip(keys, values):
            self.set(key, value)

    def queue_push(self, key, value):
        raise NotImplementedError("queue support is not implemented.")

    def queue_pop(self, key, block=True):
        raise NotImplementedError("queue support is not implemented.")

    def queue_len(self, key):
        raise NotImplementedError("queue support is not implemented.")

    def has_extended_api(self):
        return True

    def clone(self):
        """A store over the same data."""
        return self

    def barrier(self, key, world_size, timeout=None):
        """Wait until `world_size` callers have come to the barrier of this name."""
        if self.add(key, 1) == world_size:
            self.set(key + "/all", "1")
        self.wait([key + "/all"], timeout)


class HashStore(Store):
    """A store for the threads of one process (PyTorch, torch.distributed.HashStore)."""

    def __init__(self):
        super().__init__()
        self._table = Table()

    def set(self, key, value):
        self._table.set(key, as_bytes(value))

    def add(self, key, value):
        return self._table.add(key, value)

    def append(self, key, value):
        self._table.append(key, as_bytes(value))

    def compare_set(self, key, expected_value, desired_value):
        """Set where the key has the expected value (or is missing and "" is expected); gives the value afterwards."""
        return self._table.compare_set(key, as_bytes(expected_value), as_bytes(desired_value))

    def delete_key(self, key):
        return self._table.delete_key(key)

    def check(self, keys):
        """True where all keys are there now."""
        return self._table.wait(keys, 0)

    def num_keys(self):
        return len(self._table.data)

    def list_keys(self):
        return list(self._table.data)

    def queue_push(self, key, value):
        self._table.push(key, as_bytes(value))

    def queue_pop(self, key, block=True):
        value = self._table.pop(key, self._timeout.total_seconds() if block else 0)
        if value is None:
            raise DistStoreError("Wait timeout") if block else QueueEmptyError("queue is empty")
        return value

    def queue_len(self, key):
        return len(self._table.queues.get(key, ()))

    def _wait(self, keys, seconds):
        return self._table.wait(keys, seconds)

    def _get(self, key):
        return self._table.data[key]


class PrefixStore(Store):
    """A store in a corner of another: each key gets a prefix (PyTorch, torch.distributed.PrefixStore)."""

    def __init__(self, prefix, store):
        super().__init__()
        self._prefix, self._store = prefix, store

    @property
    def underlying_store(self):
        return self._store

    @property
    def _underlying_non_prefix_store(self):
        store = self._store
        return store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store

    @property
    def timeout(self):
        return self._store.timeout

    def set_timeout(self, timeout):
        self._store.set_timeout(timeout)

    def _at(self, key):
        return f"{self._prefix}/{key}"

    def set(self, key, value):
        self._store.set(self._at(key), value)

    def get(self, key):
        return self._store.get(self._at(key))

    def add(self, key, value):
        return self._store.add(self._at(key), value)

    def append(self, key, value):
        self._store.append(self._at(key), value)

    def compare_set(self, key, expected_value, desired_value):
        return self._store.compare_set(self._at(key), expected_value, desired_value)

    def delete_key(self, key):
        return self._store.delete_key(self._at(key))

    def check(self, keys):
        return self._store.check([self._at(key) for key in keys])

    def wait(self, keys, timeout=None):
        self._store.wait([self._at(key) for key in keys], timeout)

    def multi_get(self, keys):
        return self._store.multi_get([self._at(key) for key in keys])

    def multi_set(self, keys, values):
        self._store.multi_set([self._at(key) for key in keys], values)

    def num_keys(self):
        return self._store.num_keys()

    def list_keys(self):
        start = self._prefix + "/"
        return [key[len(start):] for key in self._store.list_keys() if key.startswith(start)]

    def has_extended_api(self):
        return self._store.has_extended_api()

    def queue_push(self, key, value):
        self._store.queue_push(self._at(key), value)

    def queue_pop(self, key, block=True):
        return self._store.queue_pop(self._at(key), block)

    def queue_len(self, key):
        return self._store.queue_len(self._at(key))

    def clone(self):
        return PrefixStore(self._prefix, self._store.clone())


class FileStore(Store):
    """A store in a file that all processes reach (PyTorch, torch.distributed.FileStore).

    The file is a log of what was set, read on from where one has read to; `world_size` processes leaving it remove it.
    """

    _ENTRY = struct.Struct("<iq")  # length of the key, length of the value (-1: the key is deleted)

    def __init__(self, file_name, world_size=-1):
        super().__init__()
        self.path = file_name
        self._world_size = world_size
        self._data, self._read_to, self._lock = {}, 0, threading.RLock()
        with self._open():
            pass
        if world_size > 0:
            self.add("efcount/", 1)

    def __del__(self):
        try:
            with self._lock, self._open(create=False) as file:
                left = int(self._data.get("efcount/", b"0")) - 1
                if self._world_size <= 0:
                    return
                if left <= 0:
                    _os.remove(self.path)
                else:
                    self._append(file, "efcount/", str(left).encode())
        except (OSError, AttributeError, TypeError):
            pass  # the file or the interpreter is gone

    def _open(self, create=True):
        return _Locked(self, create)

    def _append(self, file, key, value):
        name = key.encode()
        file.seek(0, _os.SEEK_END)
        file.write(self._ENTRY.pack(len(name), -1 if value is None else len(value)) + name + (value or b""))
        file.flush()
        self._catch_up(file)

    def _catch_up(self, file):
        file.seek(0, _os.SEEK_END)
        if file.tell() < self._read_to:  # another run has begun the file anew
            self._data, self._read_to = {}, 0
        file.seek(self._read_to)
        while head := file.read(self._ENTRY.size):
            key_length, length = self._ENTRY.unpack(head)
            key = file.read(key_length).decode()
            if length < 0:
                self._data.pop(key, None)
            else:
                self._data[key] = file.read(length)
        self._read_to = file.tell()

    def set(self, key, value):
        with self._lock, self._open() as file:
            self._append(file, key, as_bytes(value))

    def add(self, key, value):
        with self._lock, self._open() as file:
            total = _number(self._data.get(key, b"0")) + value
            self._append(file, key, str(total).encode())
            return total

    def append(self, key, value):
        with self._lock, self._open() as file:
            self._append(file, key, self._data.get(key, b"") + as_bytes(value))

    def compare_set(self, key, expected_value, desired_value):
        expected, desired = as_bytes(expected_value), as_bytes(desired_value)
        with self._lock, self._open() as file:
            found = self._data.get(key)
            if found is None and expected:
                return expected
            if found is None or found == expected:
                self._append(file, key, desired)
                return desired
            return found

    def delete_key(self, key):
        with self._lock, self._open() as file:
            known = key in self._data
            if known:
                self._append(file, key, None)
            return known

    def check(self, keys):
        with self._lock, self._open():
            return all(key in self._data for key in keys)

    def num_keys(self):
        with self._lock, self._open():
            return len(self._data)

    def list_keys(self):
        with self._lock, self._open():
            return list(self._data)

    def has_extended_api(self):
        return False

    def clone(self):
        return FileStore(self.path, -1)

    def _wait(self, keys, seconds):
        end = time.monotonic() + seconds
        while not self.check(keys):
            if time.monotonic() >= end:
                return False
            time.sleep(0.01)
        return True

    def _get(self, key):
        return self._data[key]


class _Locked:
    """The file of a FileStore, open, locked against other processes, and read to its end."""

    def __init__(self, store, create):
        self._store, self._create = store, create

    def __enter__(self):
        import fcntl

        flags = _os.O_RDWR | (_os.O_CREAT if self._create else 0)
        while True:
            self._file = _os.fdopen(_os.open(self._store.path, flags, 0o644), "r+b")
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                if _os.stat(self._store.path).st_ino == _os.fstat(self._file.fileno()).st_ino:
                    break
            except FileNotFoundError:
                pass
            self._file.close()  # removed by another process meanwhile
        self._store._catch_up(self._file)
        return self._file

    def __exit__(self, *exception):
        self._file.close()


for _store in (Store, HashStore, PrefixStore, FileStore):
    _store.__module__ = __package__
