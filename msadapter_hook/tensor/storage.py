"""Storage and History: where a tensor's data lives, and whose gradient flows through it.

A storage holds one value per *history*. The tensors of one history are a base and its views: a write through
any of them is a recorded operation, so gradients follow. `detach()`, `.data` and a leaf made of a view start a history
of their own over the same data: a write through one history reaches the others as data, not as gradient.
"""

import itertools
import sys
import weakref

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import Value, no_grad, value_of
from msadapter_hook.tape.abstract import Meta
from msadapter_hook.tape.recording import state

from . import geometry, view
from .geometry import numel


class Version:
    """The counter that in-place writes advance; shared by views and `detach()`, not by `.data`."""

    __slots__ = ("count",)

    def __init__(self):
        self.count = 0


births = itertools.count(1)  # storages in order of their making


class Storage:
    """Data that tensors share.

    `generation` advances with each write, and with it what tensors have cached is out of date. `raw`: the current data
    in the coordinates of the root history, where a history other than the root wrote last. `buffer`: flat NumPy memory,
    once it has been handed out or taken in; from then on writes land in that very memory. `lent`: an array of the program
    lies over it, so it cannot grow.
    """

    __slots__ = ("_root", "generation", "raw", "buffer", "lent", "device", "born", "inference", "__weakref__")

    def __init__(self, device=None):
        self.generation = 0
        self.raw = None
        self.buffer = None
        self.lent = False
        self.device = device
        self.born = next(births)
        self.inference = state.inference  # made in inference mode: the tensors over it are inference tensors
        self._root = None

    @property
    def root(self):
        """The history in whose coordinates the data are kept. Held weakly (it holds the storage): the tensors hold it."""
        return self._root()

    @root.setter
    def root(self, history):
        self._root = weakref.ref(history)

    def data(self) -> Value:
        """The current data without history, in root coordinates."""
        if self.buffer is not None:
            root = self.root
            return value_of(view.from_flat_array(self.buffer, root.size, root.stride))
        return self.raw if self.raw is not None else self.root.value.detach()

    def export(self) -> np.ndarray:
        """The flat memory of the storage; from now on every write is seen there, and writes there are seen."""
        if self.buffer is None:
            root = self.root
            if root.value.abstract:
                raise root.value.refuse()
            with no_grad():
                flat = view.flat_memory(self.data(), root.size, root.stride)
            self.buffer = np.array(flat.numpy, copy=True)
            self.raw = None
            self.generation += 1
        return self.buffer

    def grow(self, length: int):
        """Make room for `length` elements; what was there stays in front, and every tensor on the storage keeps its window."""
        old = self.root
        have = numel(old.size)
        if old.value.abstract:
            bigger = type(old.value)((length,), old.value.dtype)
        else:
            with no_grad():
                flat = view.flat_memory(self.data(), old.size, old.stride).numpy
            bigger = value_of(np.concatenate([flat, np.zeros(length - have, flat.dtype)]))
        root = History(self, bigger, (length,), (1,), version=old.version)
        moves = [view.Slice((0,), (have,), (1,))]
        order = geometry.memory_order(old.size, old.stride)
        moves.append(view.Reshape([old.size[d] for d in order]))
        if order != tuple(range(len(order))):
            moves.append(view.Permute(sorted(range(len(order)), key=order.__getitem__)))
        old.parent, old.moves = root, tuple(moves)
        self.root, self.raw = root, None
        if self.buffer is not None:
            self.buffer = bigger.numpy.copy()
        self.generation += 1
        root.synced = self.generation

    def written(self, history, value: Value):
        """Take `value` as the data after a write through `history`."""
        self.generation += 1
        history.synced = self.generation
        if history is self.root:
            if self.buffer is None:
                self.raw = None
                return
            data = value.detach()
        else:
            with no_grad():
                data = history.to_root(value.detach())
        if self.buffer is not None:
            root = self.root
            with no_grad():
                np.copyto(self.buffer, view.flat_memory(data, root.size, root.stride).numpy)
        else:
            self.raw = data


def new_storage(value: Value, size, stride, device=None) -> "History":
    """The root history of a new storage with `value` as its data."""
    storage = Storage(device or value.place)
    history = History(storage, value, size, stride)
    storage._root = weakref.ref(history)
    return history


class History:
    """One line of values over a storage: the value at `synced`, and the moves that lead here from the parent history."""

    __slots__ = ("storage", "value", "synced", "size", "stride", "offset", "parent", "moves", "version", "views",
                 "__weakref__")

    def __init__(self, storage, value, size, stride, offset=0, parent=None, moves=(), version=None):
        self.storage = storage
        self.value = value
        self.synced = storage.generation
        self.size = size
        self.stride = stride
        self.offset = offset
        self.parent = parent
        self.moves = moves
        self.version = version or Version()
        self.views = False

    def read(self) -> Value:
        """The value of the base of this history, up to date."""
        storage = self.storage
        value = self.value
        if storage.buffer is not None:
            return self._read_exported(value)
        if self.synced != storage.generation:
            with no_grad():
                data = self.from_root(storage.data())
            self.value = value = renew(value, data)
            self.synced = storage.generation
        return value

    def _read_exported(self, value):
        """Foreign writes leave no trace, so the buffer is the truth. What is recorded gets a copy of its own."""
        with no_grad():
            data = self.from_root(self.storage.data())
        if not value.requires_grad:
            if state.enabled:
                return value_of(data.numpy.copy())
            return data
        if not state.enabled:
            return data
        if not _same(value.numpy, data.numpy):
            self.value = value = renew(value, value_of(data.numpy.copy()))
            self.synced = self.storage.generation
        return value

    def from_root(self, data: Value) -> Value:
        if self.parent is not None:
            data = self.parent.from_root(data)
            for move in self.moves:
                data = move.read(data)
        return data

    def to_root(self, data: Value) -> Value:
        if self.parent is None:
            return data
        base = self.parent.from_root(self.storage.data())
        return self.parent.to_root(write_through(self.moves, base, data))

    def write(self, value: Value):
        """Replace the base value. Where nothing is recorded, an old history stays and only its data change."""
        followed = True
        if value.abstract is not self.value.abstract:
            value = self._without_data(value)
        if not value.requires_grad and self.value.requires_grad and not state.enabled:
            value, followed = renew(self.value, value), False
        if state.mapped is not None:
            state.mapped.written(self, value)
        if self.storage.inference and not state.inference:
            raise RuntimeError(
                "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor "
                "before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.")
        if followed:
            follow_retained(self.value, value)
        self.value = value
        self.version.count += 1
        self.storage.written(self, value)

    def overwritten(self):
        """The memory of the value has been written to, by somebody who knows that nothing but this history refers to it."""
        value, storage = self.value, self.storage
        self.value = Value(value.shape, value.dtype, value._numpy, value._array, None, 0, value.requires_grad, value.leaf)
        if storage.raw is not None:
            storage.raw = Value(value.shape, value.dtype, value._numpy)
        self.version.count += 1
        storage.generation += 1
        self.synced = storage.generation

    def _without_data(self, value):
        """What a write leaves where only one side has data: a tensor without data stays so. NotImplementedError for the other."""
        if value.abstract:
            raise value.refuse()
        return value if self.value.wrapped else type(self.value)(value.shape, value.dtype)


def deep_copied(storage, memo) -> History:
    """The root history of a copy of `storage`: the same one for all who ask with one `memo`, as copy.deepcopy hands it on."""
    copied = memo.get(id(storage))
    if copied is None:
        root = storage.root
        with no_grad():
            copied = memo[id(storage)] = new_storage(prims.copy(storage.data()), root.size, root.stride, storage.device)
        memo.setdefault(id(memo), []).append(storage)  # its id stays its own as long as the memo is there
    return copied


def follow_retained(old, new):
    """A tensor that keeps its gradient keeps that of what it is after a write."""
    taps = old.node.taps if old.node is not None and old.leaf is None else None
    tap = taps.get(old.index) if taps is not None else None
    if tap is not None and tap.retained is not None and new.node is not None and new.requires_grad:
        tensor, tap.retained = tap.retained, None
        if new.node.taps is None:
            new.node.taps = {}
        new.node.taps.setdefault(new.index, type(tap)()).retained = tensor


def renew(old: Value, data: Value) -> Value:
    """`data` under the history of `old`."""
    if not old.requires_grad:
        return data
    if old.leaf is not None:
        return data.as_leaf(old.leaf)
    before, state.enabled = state.enabled, True
    try:
        made = prims.renewed(old, data.detach())
        if old.node is not None:
            made.node.operator = old.node.operator  # users see the gradient that was there
        return made
    finally:
        state.enabled = before


def write_through(moves, base: Value, new: Value) -> Value:
    """The base with `new` in the place that `moves` show."""
    bases = [base]
    for move in moves[:-1]:
        bases.append(move.read(bases[-1]))
    for move, under in zip(reversed(moves), reversed(bases)):
        new = move.write(under, new)
    return new


def _same(a, b):
    return a is b or np.array_equal(a.view(np.uint8) if a.flags.c_contiguous and a.ndim else a,
                                    b.view(np.uint8) if b.flags.c_contiguous and b.ndim else b)


class UntypedStorage:
    """The bytes under one or more tensors. Source: PyTorch, torch.UntypedStorage.

    Shares memory with the tensors it was taken from; `numpy_bytes()` is that memory as a uint8 array.
    """

    __module__ = "torch.storage"

    def __init__(self, size=0, *, device=None, _history=None):
        if _history is None:
            given = None if hasattr(size, "__index__") else np.array(list(size)).astype(np.uint8)
            length = int(size) if given is None else given.size
            if str(device) == "meta":
                flat = Meta((length,), np.dtype(np.uint8))
            else:
                flat = value_of(np.zeros(length, np.uint8) if given is None else given)
            _history = new_storage(flat, (length,), (1,))
        self._history = _history
        self._storage = _history.storage

    @classmethod
    def from_numpy_bytes(cls, data: np.ndarray) -> "UntypedStorage":
        """A storage over the memory of a flat uint8 array."""
        history = new_storage(value_of(data), (data.size,), (1,))
        history.storage.buffer = data
        return cls(_history=history)

    @classmethod
    def from_file(cls, filename, shared=False, nbytes=0) -> "UntypedStorage":
        """The first `nbytes` bytes of a file, mapped into memory. Writes stay private, or go to the file where `shared`, which also makes
        the file or lengthens it. RuntimeError for a file that is not there or too short. Source: PyTorch,
        torch.UntypedStorage.from_file."""
        try:
            with open(filename, "ab" if shared else "rb") as file:
                have = file.seek(0, 2)
                if shared and have < nbytes:
                    have = file.truncate(nbytes)
        except OSError as error:
            mode = "read-write" if shared else "read-only"
            raise RuntimeError(f"unable to open file <{filename}> in {mode} mode: {error.strerror} ({error.errno})") from None
        if have < nbytes:
            raise RuntimeError(f"file <{filename}> size <{have}> is smaller than the required mapping size <{nbytes}>")
        if not nbytes:
            return cls()
        return cls.from_numpy_bytes(np.asarray(np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(nbytes,))))

    @classmethod
    def from_buffer(cls, buffer, byte_order=None, count=-1, offset=0, *, dtype) -> "UntypedStorage":
        """A copy of `count` elements of a Python buffer, from byte `offset` on, turned into this machine's byte order. Source: PyTorch,
        torch.UntypedStorage.from_buffer."""
        size, length = dtype.itemsize, memoryview(buffer).nbytes
        if size > 1 and byte_order is None:
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
        if byte_order not in (None, "big", "little", "native"):
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
        if not 0 <= offset <= length:
            raise ValueError(f"offset must be non-negative and no greater than buffer length ({length}), but got {offset}")
        if count < 0:
            if (length - offset) % size:
                raise ValueError(f"buffer size ({length}) must be a multiple of element size ({size})")
            count = (length - offset) // size
        elif offset + count * size > length:
            raise ValueError(f"buffer has only {length - offset} elements after offset {offset}, but specified a size of {count}")
        data = np.frombuffer(buffer, np.uint8, count * size, offset).copy()
        if byte_order in ("big", "little") and byte_order != sys.byteorder:
            part = size // 2 if dtype.is_complex else size
            data = np.ascontiguousarray(data.reshape(-1, part)[:, ::-1]).reshape(-1)
        return cls.from_numpy_bytes(data)

    is_cuda = is_hpu = is_sparse = is_sparse_csr = False

    def clone(self) -> "UntypedStorage":
        """A copy with memory of its own."""
        return UntypedStorage.from_numpy_bytes(self.numpy_bytes().copy())

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        """A copy, over which the copies of the tensors on this storage lie too."""
        if id(self) not in memo:
            memo[id(self)] = UntypedStorage(_history=deep_copied(self._storage, memo))
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        raise AttributeError("type object 'torch.storage.UntypedStorage' has no attribute 'dtype': bytes without a type are not pickled; "
                             "pickle a tensor over them, or use torch.save")

    def new(self) -> "UntypedStorage":
        """An empty storage."""
        return UntypedStorage()

    def copy_(self, source, non_blocking=False) -> "UntypedStorage":
        """Take over the bytes of another storage. RuntimeError where the sizes differ."""
        if source.nbytes() != self.nbytes():
            raise RuntimeError(f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes")
        self[:] = source.untyped().numpy_bytes()
        return self

    def fill_(self, value) -> "UntypedStorage":
        """Set every byte to `value`."""
        self[:] = value
        return self

    def element_size(self) -> int:
        """1: a storage without a type counts bytes."""
        return 1

    def is_pinned(self, device=None) -> bool:
        """False: the memory of the host is as it is."""
        return False

    def is_shared(self) -> bool:
        """Whether other processes see this memory."""
        return False

    def resizable(self) -> bool:
        """Whether tensors over it may make it longer."""
        return self._storage.buffer is None

    def untyped(self) -> "UntypedStorage":
        """Itself; what a TypedStorage has too."""
        return self

    def numpy_bytes(self) -> np.ndarray:
        flat = self._storage.export()
        return flat.view(np.uint8) if flat.size else np.empty(0, np.uint8)

    @property
    def _cdata(self):
        """A number that handles of one storage have in common."""
        return id(self._storage)

    def data_ptr(self) -> int:
        if self._history.value.abstract:
            return 0
        return self._storage.export().ctypes.data if self.nbytes() else 0

    def nbytes(self) -> int:
        root = self._storage.root
        return numel(root.size) * root.value.dtype.itemsize

    def size(self) -> int:
        return self.nbytes()

    def __len__(self):
        return self.nbytes()

    @property
    def device(self):
        from .device import cpu

        return self._storage.device or cpu

    def _readable(self):
        """NotImplementedError where there is nothing to read."""
        if self._storage.root.value.abstract:
            raise NotImplementedError(f"Not available for '{self.device.type}' device type")

    def cpu(self):
        """This storage, which is on the host. NotImplementedError where it has no data."""
        if self._storage.root.value.abstract:
            raise self._storage.root.value.refuse()
        return self

    def __getitem__(self, item):
        self._readable()
        found = self.numpy_bytes()[item]
        return int(found) if not isinstance(item, slice) else UntypedStorage.from_numpy_bytes(found)

    def __setitem__(self, item, value):
        self.numpy_bytes()[item] = value
        self._storage.generation += 1

    def tolist(self):
        self._readable()
        return self.numpy_bytes().tolist()

    def __eq__(self, other):
        return isinstance(other, UntypedStorage) and other._storage is self._storage

    def __hash__(self):
        return id(self._storage)
