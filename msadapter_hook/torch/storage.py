# Storages by their public names: UntypedStorage (bytes, from the tensor layer), TypedStorage over it, and the legacy
# classes FloatStorage, LongStorage, ... that checkpoints name.
import copy
import warnings

import numpy as np

from msadapter_hook.tensor import UntypedStorage, from_array, from_storage
from msadapter_hook.tensor import dtypes as _dtypes

__all__ = ["TypedStorage", "UntypedStorage"]

_ROOT = __package__  # "torch", or the name this tree is served under

# the names are part of the file format
_STORAGE_NAMES = {
    "double": "DoubleStorage",
    "float": "FloatStorage",
    "half": "HalfStorage",
    "long": "LongStorage",
    "int": "IntStorage",
    "short": "ShortStorage",
    "int8": "CharStorage",
    "uint8": "ByteStorage",
    "bool": "BoolStorage",
    "bfloat16": "BFloat16Storage",
    "cdouble": "ComplexDoubleStorage",
    "cfloat": "ComplexFloatStorage",
}


class PendingStorage:
    """Loaded memory that is not yet under a tensor.

    The first tensor that covers all of it in row order is made straight from the array, so that it is no view;
    whatever shares the storage after that is a view of that tensor's storage.
    """

    def __init__(self, array, device=None):
        self._array = array  # flat, of the storage's dtype
        self._storage = None
        self.device = device

    def nbytes(self):
        """Size in bytes."""
        return self._array.nbytes if self._storage is None else self._storage.nbytes()

    def storage(self):
        """The UntypedStorage of this memory."""
        if self._storage is None:
            self._storage = from_array(self._array).untyped_storage()
        return self._storage

    def tensor(self, dtype, size, stride, offset):
        """A tensor over this memory."""
        size, stride = tuple(size), tuple(stride)
        whole = offset == 0 and stride == _row_major(size) and _numel(size) == self._array.size
        if self._storage is None and whole and self._array.dtype == dtype.numpy:
            tensor = from_array(self._array.reshape(size), dtype)
            self._storage = tensor.untyped_storage()
            return tensor
        return from_storage(self.storage(), dtype, size, stride, offset, False)


def _numel(size):
    n = 1
    for s in size:
        n *= s
    return n


def _row_major(size):
    strides, step = [], 1
    for n in reversed(size):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def _warn_typed_storage_removal(stacklevel=2):
    warnings.warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage "
        "class. This should only matter to you if you are using storages directly.  To access UntypedStorage directly, "
        "use tensor.untyped_storage() instead of tensor.storage()",
        UserWarning,
        stacklevel=stacklevel + 1,
    )


class TypedStorage:
    """Elements of one dtype over an UntypedStorage (PyTorch, torch.TypedStorage; deprecated there).

    `TypedStorage(n)`, `TypedStorage(sequence)` or `TypedStorage(wrap_storage=untyped, dtype=dtype)`.
    """

    is_sparse = False

    def __init__(self, *args, device=None, dtype=None, wrap_storage=None, _internal=False):
        if dtype is None:
            dtype = _dtypes.get_default_dtype()
        self.dtype = dtype
        if wrap_storage is not None:
            if args:
                raise RuntimeError("No positional arguments should be given when using 'wrap_storage'")
            self._memory = wrap_storage
            return
        if len(args) > 1:
            raise TypeError(f"TypedStorage expected 0 or 1 positional arguments, got {len(args)}")
        if not args:
            array = np.empty(0, dtype.numpy)
        elif isinstance(args[0], (int, np.integer)):
            array = np.zeros(int(args[0]), dtype.numpy)
        else:
            array = np.array(list(args[0])).astype(dtype.numpy)
        if str(device) == "meta":
            self._memory = UntypedStorage(array.nbytes, device=device)
        else:
            self._memory = PendingStorage(array)

    @property
    def _untyped_storage(self):
        if isinstance(self._memory, PendingStorage):
            self._memory = self._memory.storage()
        return self._memory

    def _tensor(self, size, stride, offset):
        """A tensor over this storage."""
        if isinstance(self._memory, PendingStorage):
            return self._memory.tensor(self.dtype, size, stride, offset)
        return from_storage(self._memory, self.dtype, size, stride, offset, False)

    def _numpy(self):
        return self._untyped_storage.numpy_bytes()[: self._size() * self.dtype.itemsize].view(self.dtype.numpy)

    def untyped(self):
        """The bytes."""
        return self._untyped_storage

    def nbytes(self):
        """Size in bytes."""
        return self._memory.nbytes()

    def _size(self):
        return self._memory.nbytes() // self.dtype.itemsize

    def size(self):
        """Number of elements."""
        return self._size()

    def __len__(self):
        return self._size()

    def element_size(self):
        """Bytes of an element."""
        return self.dtype.itemsize

    def data_ptr(self):
        """Address of the first element."""
        return self._untyped_storage.data_ptr()

    @property
    def device(self):
        """Where the memory lies."""
        return self._untyped_storage.device

    @property
    def is_cuda(self):
        """Whether the memory lies on a CUDA device."""
        return self.device.type == "cuda"

    def get_device(self):
        """Index of the device; -1 for the host."""
        return -1 if self.device.index is None else self.device.index

    def __getitem__(self, index):
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        self._untyped_storage._readable()
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return self._numpy()[index].item()

    def __setitem__(self, index, value):
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        self._numpy()[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        """The elements as Python numbers. NotImplementedError for the device "meta"."""
        self._untyped_storage._readable()
        return self._numpy().tolist()

    def fill_(self, value):
        """Sets every element."""
        self._numpy()[...] = value
        return self

    def copy_(self, source, non_blocking=None):
        """Takes over the elements of another storage."""
        other = source._numpy() if isinstance(source, TypedStorage) else source.numpy_bytes()
        self._numpy()[...] = other
        return self

    def clone(self):
        """A copy."""
        return TypedStorage(wrap_storage=PendingStorage(self._numpy().copy()), dtype=self.dtype)

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = TypedStorage(wrap_storage=copy.deepcopy(self._untyped_storage, memo), dtype=self.dtype)
        return memo[id(self)]

    def cpu(self):
        """This storage on the host. NotImplementedError where it has no data."""
        if self.device.type == "meta":
            self._untyped_storage.numpy_bytes()  # says that there is nothing to copy
        return self

    @property
    def _cdata(self):
        """A number that two handles have in common where they are of one storage."""
        return self._untyped_storage._cdata

    def share_memory_(self):
        """Worker threads share all memory; nothing to move. RuntimeError where there is no memory."""
        if self.device.type == "meta":
            raise RuntimeError("share_memory_ is only available on CPU")
        return self

    def is_shared(self):
        """Whether other processes see this memory."""
        return False

    def is_pinned(self, device="cuda"):
        """Whether the memory is page-locked."""
        return False

    def resizable(self):
        """Whether the storage can grow."""
        return False

    def pickle_storage_type(self):
        """The legacy class's name, as files have it."""
        return self._pickle_storage_type()

    def _pickle_storage_type(self):
        name = _NAME_OF_DTYPE.get(self.dtype)
        if name is None:
            raise KeyError(f"dtype {self.dtype} is not recognized")
        return name

    def type(self, dtype=None, non_blocking=False):
        """The legacy class's full name, or a copy in another one's dtype."""
        if dtype is None:
            return f"{_ROOT}.{self._pickle_storage_type()}"
        return self._to(dtype.dtype if isinstance(dtype, type) else dtype)

    def _to(self, dtype):
        return TypedStorage(wrap_storage=PendingStorage(self._numpy().astype(dtype.numpy)), dtype=dtype)

    def __eq__(self, other):
        return isinstance(other, TypedStorage) and self.data_ptr() == other.data_ptr() and self.dtype == other.dtype

    __hash__ = object.__hash__

    def __str__(self):
        values = "..." if self.device.type == "meta" else "\n ".join(str(value) for value in self.tolist())
        return f" {values}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"

    __repr__ = __str__

    def __reduce__(self):
        import io

        from .serialization import save

        file = io.BytesIO()
        save(self, file, _use_new_zipfile_serialization=False)
        return _load_from_bytes, (file.getvalue(),)


def _converter(dtype):
    def convert(self):
        return self._to(dtype)

    convert.__doc__ = f"A copy as {dtype}."
    return convert


for _method, _dtype in {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
    "bfloat16": "bfloat16",
    "complex_double": "complex128",
    "complex_float": "complex64",
}.items():
    setattr(TypedStorage, _method, _converter(_dtypes.DTYPES[_dtype]))


def _load_from_bytes(b):
    import io

    from .serialization import load

    return load(io.BytesIO(b), weights_only=False)


class _LegacyStorageMeta(type):
    def __instancecheck__(cls, instance):
        if type(instance) is TypedStorage:
            return cls is _LegacyStorage or cls.dtype == instance.dtype
        return super().__instancecheck__(instance)


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """Base of FloatStorage and its like: calling one makes a TypedStorage of its dtype."""

    dtype = None

    def __new__(cls, *args, wrap_storage=None, **kwargs):
        if wrap_storage is not None:
            return TypedStorage(wrap_storage=wrap_storage, dtype=cls.dtype)
        return TypedStorage(*args, dtype=cls.dtype, **kwargs)

    @classmethod
    def from_buffer(cls, *args, **kwargs):
        """A copy of the elements of a Python buffer. Source: PyTorch, torch.UntypedStorage.from_buffer."""
        return cls(wrap_storage=UntypedStorage.from_buffer(*args, dtype=cls.dtype, **kwargs))

    @classmethod
    def from_file(cls, filename, shared=False, size=0):
        """`size` elements of a file, mapped into memory. Source: PyTorch, torch.UntypedStorage.from_file."""
        return cls(wrap_storage=UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize))


_NAME_OF_DTYPE = {}
_CLASS_OF_NAME = {}
for _key, _name in _STORAGE_NAMES.items():
    _dtype = _dtypes.DTYPES[_key]
    _class = _LegacyStorageMeta(_name, (_LegacyStorage,), {"dtype": _dtype, "__module__": _ROOT})
    _NAME_OF_DTYPE[_dtype] = _name
    _CLASS_OF_NAME[_name] = globals()[_name] = _class
    __all__.append(_name)

LEGACY_STORAGES = tuple(_CLASS_OF_NAME)
Storage = FloatStorage  # noqa: F821 - of the default type of tensors
__all__.append("Storage")


def _dtype_to_storage_type_map():
    """{dtype: name of its legacy storage class}."""
    return dict(_NAME_OF_DTYPE)


def _legacy_storage_class(dtype):
    """FloatStorage for float32 and so on; None for dtypes that came after those classes."""
    return _CLASS_OF_NAME.get(_NAME_OF_DTYPE.get(dtype))
