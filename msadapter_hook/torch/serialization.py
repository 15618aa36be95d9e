# torch.save and torch.load: the zip format and the one before it, map_location, safe loading by default.
import contextlib
import copyreg
import io
import os
import pickle
import pickletools
import struct
import sys
import threading
import warnings
from enum import Enum

import numpy as np

from msadapter_hook import settings
from msadapter_hook.tensor import UntypedStorage
from msadapter_hook.tensor import dtypes as _dtypes

from . import _tensor as _tensor  # tensors learn to pickle themselves
from . import _weights_only_unpickler
from ._storage_location import (
    _get_restore_location,
    default_restore_location,
    location_tag,
    register_package,
    validate_cuda_device,
)
from ._weights_only_unpickler import _get_allowed_globals, _get_user_allowed_globals
from ._zipfile_format import ZipReader, ZipWriter
from .storage import _CLASS_OF_NAME, PendingStorage, TypedStorage

__all__ = [
    "SourceChangeWarning",
    "mkdtemp",
    "register_package",
    "check_module_version_greater_or_equal",
    "validate_cuda_device",
    "location_tag",
    "default_restore_location",
    "normalize_storage_type",
    "storage_to_tensor_type",
    "save",
    "load",
    "StorageType",
    "LoadEndianness",
    "get_crc32_options",
    "set_crc32_options",
    "get_default_load_endianness",
    "set_default_load_endianness",
    "get_default_mmap_options",
    "set_default_mmap_options",
    "clear_safe_globals",
    "get_safe_globals",
    "add_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "safe_globals",
    "skip_data",
]

DEFAULT_PROTOCOL = 2
MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
STORAGE_KEY_SEPARATOR = ","
MAP_LOCATION = object  # a callable, a device, a string, a dict, or None
_ROOT = __package__

_local = threading.local()


class SourceChangeWarning(Warning):
    """The source of a pickled class is not what it was."""


class LoadEndianness(Enum):
    """Byte order assumed for files that do not say theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_options = {"endianness": None, "mmap": 2, "crc32": True}


def get_default_load_endianness():
    """The byte order assumed for files that do not say theirs."""
    return _options["endianness"]


def set_default_load_endianness(endianness):
    """Sets it. TypeError unless a LoadEndianness or None."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _options["endianness"] = endianness


def get_crc32_options():
    """Whether checksums are written; they always are."""
    return _options["crc32"]


def set_crc32_options(compute_crc32):
    """Sets whether checksums are asked for. A file without them would be broken for other readers."""
    _options["crc32"] = compute_crc32


def get_default_mmap_options():
    """The flags of memory maps of checkpoints: 2 is MAP_PRIVATE."""
    return _options["mmap"]


class set_default_mmap_options:
    """Sets the flags, for a block or for good. Only MAP_PRIVATE is supported."""

    def __init__(self, flags):
        if flags != 2:
            raise NotImplementedError("torch.serialization.set_default_mmap_options: only MAP_PRIVATE is supported")
        self.prev = _options["mmap"]
        _options["mmap"] = flags

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        _options["mmap"] = self.prev


# --------------------------------------------------------------------------------------------------- what is safe
def clear_safe_globals():
    """Forgets what was declared safe for weights_only=True."""
    _weights_only_unpickler._clear_safe_globals()


def get_safe_globals():
    """What was declared safe for weights_only=True."""
    return _weights_only_unpickler._get_safe_globals()


def add_safe_globals(safe_globals):
    """Declares functions and classes safe for weights_only=True; a pair gives an object and its full name."""
    _weights_only_unpickler._add_safe_globals(safe_globals)


class safe_globals(_weights_only_unpickler._safe_globals):
    """Declares them safe within a block."""


def get_unsafe_globals_in_checkpoint(f):
    """Full names of what a checkpoint contains and weights_only=True would refuse; nothing is executed."""
    allowed = {**_get_allowed_globals(), **_get_user_allowed_globals()}
    with _opened(f, "rb") as file:
        if not _is_zipfile(file):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        reader = ZipReader(file)
        if _is_torchscript(reader):
            raise ValueError(
                "Expected input to be a checkpoint returned by torch.save but got a torchscript checkpoint"
            )
        found = set(_weights_only_unpickler._read_globals(reader.read_record("data.pkl")))
    return sorted(name for name in found if name not in allowed)


class skip_data:
    """Within the block, save reserves room for the storages without writing them, and load does not read them."""

    def __init__(self, materialize_fake_tensors=False):
        if materialize_fake_tensors:
            raise NotImplementedError("torch.serialization.skip_data(materialize_fake_tensors=True): no fake tensors")

    def __enter__(self):
        self._before = getattr(_local, "skip_data", False)
        _local.skip_data = True

    def __exit__(self, *exc):
        _local.skip_data = self._before


# ------------------------------------------------------------------------------------------------ small helpers
def mkdtemp():
    """A temporary folder as a context manager."""
    import tempfile

    return tempfile.TemporaryDirectory()


def check_module_version_greater_or_equal(module, req_version_tuple, error_if_malformed=True):
    """Whether module.__version__ is at least the given tuple."""
    try:
        version = tuple(type(want)(got) for want, got in zip(req_version_tuple, module.__version__.split(".")))
    except Exception as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be compared"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(message + ", but continuing assuming that requirement is met", stacklevel=2)
        return True
    return version >= req_version_tuple


def _get_layout(name):
    """A layout by its repr, as pickles have it."""
    found = getattr(sys.modules[_ROOT], name.rpartition(".")[2], None)
    if not isinstance(found, _dtypes.layout):
        raise pickle.UnpicklingError(f"{name} is no layout")
    return found


copyreg.pickle(_dtypes.layout, lambda layout: (_get_layout, (str(layout),)))


class StorageType:
    """Stands for a storage class inside a pickle: all that counts is its dtype."""

    def __init__(self, name):
        if name not in _CLASS_OF_NAME:
            raise pickle.UnpicklingError(f"{name} is no known storage class")
        self._dtype = _CLASS_OF_NAME[name].dtype

    @property
    def dtype(self):
        """The elements' dtype."""
        return self._dtype

    def __str__(self):
        return f"StorageType(dtype={self.dtype})"


def normalize_storage_type(storage_type):
    """The storage class itself."""
    return getattr(sys.modules[_ROOT], storage_type.__name__)


def storage_to_tensor_type(storage):
    """The legacy tensor class of a storage."""
    return getattr(sys.modules[_ROOT], type(storage).__name__.replace("Storage", "Tensor"))


# -------------------------------------------------------------------------------------------------------- files
def _is_path(f):
    return isinstance(f, (str, os.PathLike))


@contextlib.contextmanager
def _opened(f, mode):
    if _is_path(f):
        with open(f, mode) as file:
            yield file
    elif "w" in mode:
        if not hasattr(f, "write"):
            raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
        yield f
    else:
        _check_seekable(f)
        yield f


@contextlib.contextmanager
def _open_zipfile_writer(name_or_buffer):
    """Within, an archive that takes `write_record(name, data, size)`. Source: PyTorch, torch.serialization."""
    with _opened(name_or_buffer, "wb") as file:
        writer = ZipWriter(file, "archive")
        yield writer
        writer.finish()
        writer.close()


@contextlib.contextmanager
def _open_zipfile_reader(name_or_buffer):
    """Within, an archive that gives `get_record(name)`. Source: PyTorch, torch.serialization."""
    with _opened(name_or_buffer, "rb") as file:
        yield ZipReader(file)


def _check_seekable(f):
    try:
        f.seek(f.tell())
        return True
    except (io.UnsupportedOperation, AttributeError) as error:
        message = (
            f"{error}. You can only torch.load from a file that is seekable. Please pre-load the data into a buffer "
            "like io.BytesIO and try to load from it instead."
        )
        raise type(error)(message) from None


def _is_zipfile(f):
    start = f.tell()
    head = f.read(4)
    f.seek(start)
    return head == b"PK\x03\x04"


def _is_torchscript(reader):
    return reader.has_record("constants.pkl")


def _identity(storage):
    return getattr(storage, "_cdata", None) or id(storage._storage)


class _StorageTable:
    """The storages met while pickling: each gets a key, is kept alive, and has one dtype."""

    def __init__(self):
        self.keys = {}
        self.kept = []
        self.dtypes = {}

    def describe(self, obj):
        """(storage class, key, location, number of elements) of a storage object; None for anything else."""
        if isinstance(obj, TypedStorage):
            memory, dtype = obj._untyped_storage, obj.dtype
            storage_type, count = _CLASS_OF_NAME[obj._pickle_storage_type()], obj._size()
        elif isinstance(obj, UntypedStorage):
            memory, dtype, storage_type, count = obj, _dtypes.DTYPES["uint8"], UntypedStorage, obj.nbytes()
        else:
            return None
        address = memory.data_ptr() if memory.nbytes() else 0
        if address and self.dtypes.setdefault(address, dtype) != dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        identity = _identity(memory)
        if identity not in self.keys:
            self.keys[identity] = str(len(self.keys))
            self.kept.append(memory)
        return storage_type, self.keys[identity], location_tag(memory), count


def _pickle(obj, pickle_module, protocol, file, persistent_id):
    class Pickler(pickle_module.Pickler):
        pass

    Pickler.persistent_id = lambda self, obj: persistent_id(obj)
    if _ROOT == "torch" or pickle_module is not pickle:
        Pickler(file, protocol=protocol).dump(obj)
        return
    written = io.BytesIO()
    Pickler(written, protocol=protocol).dump(obj)
    file.write(_under_torch(written.getvalue()))


def _under_torch(data):
    """A pickle of this tree, served under another name, with the names that PyTorch's own have: files are for everybody."""
    made, last = [], 0
    for opcode, argument, start in pickletools.genops(data):
        if opcode.name == "GLOBAL" and (argument == _ROOT or argument.startswith((_ROOT + ".", _ROOT + " "))):
            module, _, name = argument.partition(" ")
            stop = start + 1 + len(f"{module}\n{name}\n".encode())
            made += [data[last:start], f"ctorch{module[len(_ROOT):]}\n{name}\n".encode()]
            last = stop
    return b"".join([*made, data[last:]])


def save(
    obj,
    f,
    pickle_module=pickle,
    pickle_protocol=DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization=True,
    _disable_byteorder_record=False,
):
    """Saves an object with its tensors to a path or a file-like object (PyTorch, torch.save).

    Tensors that share storage do so in the file. RuntimeError for a folder that does not exist.
    """
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        parent = os.path.dirname(path)
        if parent and not os.path.isdir(parent):
            raise RuntimeError(f"Parent directory {parent} does not exist.")
    with _opened(f, "wb") as file:
        if _use_new_zipfile_serialization:
            archive = os.path.splitext(os.path.basename(os.fspath(f)))[0] if _is_path(f) else "archive"
            writer = ZipWriter(file, archive or "archive")
            _save_zip(obj, writer, pickle_module, pickle_protocol, _disable_byteorder_record)
            writer.close()
        else:
            _save_legacy(obj, file, pickle_module, pickle_protocol)
            if hasattr(file, "flush"):
                file.flush()


def _save_zip(obj, writer, pickle_module, protocol, no_byteorder):
    table = _StorageTable()

    def persistent_id(obj):
        found = table.describe(obj)
        return None if found is None else ("storage", *found)

    buffer = io.BytesIO()
    _pickle(obj, pickle_module, protocol, buffer, persistent_id)
    writer.write_record("data.pkl", buffer.getvalue())
    writer.write_record(".format_version", b"1")
    writer.write_record(".storage_alignment", b"64")
    if not no_byteorder:
        writer.write_record("byteorder", sys.byteorder.encode())
    skip = getattr(_local, "skip_data", False)
    for key, memory in enumerate(table.kept):
        data = np.zeros(memory.nbytes(), np.uint8) if skip else memory.numpy_bytes()
        writer.write_record(f"data/{key}", data)
    writer.finish()


def _save_legacy(obj, file, pickle_module, protocol):
    table = _StorageTable()

    def persistent_id(obj):
        found = table.describe(obj)
        return None if found is None else ("storage", *found, None)

    for header in (
        MAGIC_NUMBER,
        PROTOCOL_VERSION,
        {
            "protocol_version": PROTOCOL_VERSION,
            "little_endian": sys.byteorder == "little",
            "type_sizes": {"short": 2, "int": 4, "long": 4},
        },
    ):
        pickle_module.dump(header, file, protocol=protocol)
    buffer = io.BytesIO()
    _pickle(obj, pickle_module, protocol, buffer, persistent_id)
    file.write(buffer.getvalue())
    pickle_module.dump([str(i) for i in range(len(table.kept))], file, protocol=protocol)
    for memory in table.kept:
        data = memory.numpy_bytes()
        dtype = table.dtypes.get(memory.data_ptr() if memory.nbytes() else 0)
        file.write(struct.pack("<q", data.size // (dtype.itemsize if dtype is not None else 1)))
        file.write(memoryview(data))


# ------------------------------------------------------------------------------------------------------ loading
_DOC_LINK = (
    "\n\nCheck the documentation of torch.load to learn more about types accepted by default with weights_only "
    "https://pytorch.org/docs/stable/generated/torch.load.html."
)
_TRUST = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to "
    "`True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in "
    "arbitrary code execution. Do it only if you got the file from a trusted source."
)


def _weights_only_message(error):
    text = str(error)
    if "Unsupported global" in text:
        return (
            "Weights only load failed. This file can still be loaded, to do so you have two options, "
            "\033[1mdo those steps only if you trust the source of the checkpoint\033[0m. \n\t(1) "
            + _TRUST
            + "\n\t(2) "
            "Alternatively, to load with `weights_only=True` please check the recommended steps in the following error "
            "message.\n\tWeightsUnpickler error: " + text + _DOC_LINK
        )
    if "is blocked" in text:
        return f"Weights only load failed. {_TRUST}\n\n\n{text}{_DOC_LINK}"
    return (
        f"Weights only load failed. {_TRUST}\nPlease file an issue with the following so that we can make "
        f"`weights_only=True` compatible with your use case: WeightsUnpickler error: \n\n{text}{_DOC_LINK}"
    )


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """Loads what `save` wrote, by this library or by PyTorch (PyTorch, torch.load).

    `weights_only` (the default): tensors, dictionaries and plain values only; a file cannot make anything else run.
    `map_location`: a device, a string, a dict of locations, or `function(storage, location) -> storage`.
    Errors: pickle.UnpicklingError for what is not allowed, RuntimeError for broken files.
    """
    chosen = settings.reload()  # a program may have set the variable itself
    if chosen.force_weights_only and chosen.force_no_weights_only:
        raise RuntimeError("Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but "
                           "both were set.")
    if chosen.force_weights_only:
        weights_only = True
    elif weights_only is None:
        weights_only = pickle_module is None and not chosen.force_no_weights_only
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if not weights_only:
        pickle_module = pickle_module or pickle
    pickle_load_args.setdefault("encoding", "utf-8")
    mmap = bool(mmap)
    with _opened(f, "rb") as file:
        if not _is_zipfile(file):
            if mmap:
                shown = f" torch.save({f}, _use_new_zipfile_serialization=True)" if _is_path(f) else " the zip format"
                raise RuntimeError(
                    f"mmap can only be used with files saved with `{shown.strip()}, please torch.save your checkpoint "
                    "with this option in order to use mmap."
                )
            return _guarded(weights_only, _load_legacy, file, map_location, pickle_module, pickle_load_args)
        if mmap and not _is_path(f):
            raise ValueError("f must be a file path in order to use the mmap argument")
        start = file.tell()
        reader = ZipReader(file, os.fspath(f) if _is_path(f) else None)
        if _is_torchscript(reader):
            file.seek(start)
            if weights_only:
                raise RuntimeError(
                    "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. " + _TRUST
                )
            raise NotImplementedError(
                "torch.load of a TorchScript archive: TorchScript is not supported; save the module's state_dict"
            )
        return _guarded(weights_only, _load_zip, reader, map_location, pickle_module, pickle_load_args, mmap)


def _guarded(weights_only, function, *args):
    if not weights_only:
        return function(*args)
    try:
        return function(*args)
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(_weights_only_message(error)) from None


def _unpickler(file, persistent_load, pickle_module, options):
    """The restricted unpickler, or one of `pickle_module` that finds storage classes and this tree's modules."""
    if pickle_module is None:
        unpickler = _weights_only_unpickler.Unpickler(file, encoding=options.get("encoding", "utf-8"))
        unpickler.persistent_load = persistent_load
        return unpickler

    class Unpickler(pickle_module.Unpickler):
        def find_class(self, module, name):
            if "Storage" in name:
                try:
                    return StorageType(name)
                except pickle.UnpicklingError:
                    pass
            if _ROOT != "torch" and (module == "torch" or module.startswith("torch.")):
                module = _ROOT + module[len("torch") :]
            return super().find_class(module, name)

    Unpickler.persistent_load = lambda self, pid: persistent_load(pid)
    return Unpickler(file, **options)


def _storage_dtype(storage_type):
    return _dtypes.DTYPES["uint8"] if storage_type is UntypedStorage else storage_type.dtype


def _text(value):
    return value.decode("ascii") if isinstance(value, bytes) else value


def _parse_pid(pid, fields):
    """The parts of a storage's persistent id; UnpicklingError unless they are what `save` writes."""
    if not isinstance(pid, tuple) or len(pid) not in fields or _text(pid[0]) != "storage":
        raise pickle.UnpicklingError(f"Unknown typename for persistent_load, expected 'storage' but got '{pid!r}'")
    storage_type, key, location, count = pid[1], _text(pid[2]), _text(pid[3]), pid[4]
    known = storage_type is UntypedStorage or isinstance(storage_type, (StorageType, type))
    if not (known and isinstance(key, str) and isinstance(location, str) and isinstance(count, int) and count >= 0):
        raise pickle.UnpicklingError(f"malformed storage description {pid!r}")
    dtype = getattr(storage_type, "dtype", None) if storage_type is not UntypedStorage else _dtypes.DTYPES["uint8"]
    if not isinstance(dtype, _dtypes.dtype):
        raise pickle.UnpicklingError(f"malformed storage description {pid!r}")
    return dtype, key, location, count


def _file_byteorder(reader):
    if reader.has_record("byteorder"):
        order = reader.read_record("byteorder").decode("ascii", "replace")
        if order not in ("little", "big"):
            raise ValueError("Unknown endianness type: " + order)
        return order
    assumed = get_default_load_endianness()
    return {None: "little", LoadEndianness.NATIVE: sys.byteorder, LoadEndianness.LITTLE: "little"}.get(assumed, "big")


def _native(array, dtype, order):
    """Raw bytes as elements of the machine's byte order."""
    if order == sys.byteorder or dtype.itemsize == 1:
        return array.view(dtype.numpy)
    unit = dtype.itemsize // (2 if dtype.is_complex else 1)
    return array.view(f"u{unit}").byteswap().view(dtype.numpy)


def _load_zip(reader, map_location, pickle_module, options, mmap):
    restore = _get_restore_location(map_location)
    order = _file_byteorder(reader)
    loaded = {}

    def memory(dtype, key, location, count):
        name = f"data/{key}"
        size = reader.record_size(name)
        wanted = count * dtype.itemsize
        if size != wanted:
            raise RuntimeError(
                f"record size ({size} bytes) does not match expected size ({wanted} bytes = {count} elements * "
                f"{dtype.itemsize} bytes/element) for dtype {dtype}"
            )
        if mmap:
            raw = reader.map_record(name)
        else:
            raw = np.empty(size, np.uint8)
            if getattr(_local, "skip_data", False):
                raw[...] = 0
            else:
                reader.read_into(name, raw)
        return restore(PendingStorage(_native(raw, dtype, order)), location)

    def persistent_load(pid):
        dtype, key, location, count = _parse_pid(pid, (5,))
        if key not in loaded:
            loaded[key] = memory(dtype, key, location, count)
        return TypedStorage(wrap_storage=loaded[key], dtype=dtype)

    data = io.BytesIO(reader.read_record("data.pkl"))
    return _unpickler(data, persistent_load, pickle_module, options).load()


def _load_legacy(file, map_location, pickle_module, options):
    restore = _get_restore_location(map_location)
    file.seek(0, io.SEEK_CUR)
    start = file.tell()
    file.seek(0, io.SEEK_END)
    remaining = file.tell() - start
    file.seek(start)
    arrays, loaded, widths = {}, {}, {}

    def header():
        if pickle_module is None:
            return _weights_only_unpickler.load(file, encoding="utf-8")
        return pickle_module.load(file, **options)

    def persistent_load(pid):
        if isinstance(pid, tuple) and pid and _text(pid[0]) == "module":
            return pid[1]  # the class; its source, which follows, is not compared
        dtype, key, location, count = _parse_pid(pid, (5, 6))
        if key not in loaded:
            if sum(a.nbytes for a in arrays.values()) + count * dtype.itemsize > remaining:
                raise RuntimeError(
                    f"the checkpoint claims a storage of {count} elements of {dtype} but is only {remaining} bytes long"
                )
            # tensors are made before their data is read, so they must see what is written into this very memory
            arrays[key] = np.zeros(count * dtype.itemsize, np.uint8)
            widths[key] = dtype
            loaded[key] = restore(UntypedStorage.from_numpy_bytes(arrays[key]), location)
        if len(pid) > 5 and pid[5] is not None:
            raise NotImplementedError("torch.load: storage views of files before 0.4 are not supported; save them anew")
        return TypedStorage(wrap_storage=loaded[key], dtype=dtype)

    if not file.read(1):
        raise EOFError("Ran out of input")
    file.seek(start)
    if header() != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = header()
    if version != PROTOCOL_VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    system = header()
    order = "little" if not isinstance(system, dict) or system.get("little_endian", True) else "big"
    result = _unpickler(file, persistent_load, pickle_module, options).load()
    keys = header()
    for key in keys:
        key = _text(key)
        if key not in arrays:
            raise RuntimeError(
                f"the checkpoint has data for a storage {key!r} that it does not describe; corrupt file?"
            )
        array, dtype = arrays[key], widths[key]
        raw = file.read(8)
        count = struct.unpack("<q" if order == "little" else ">q", raw)[0] if len(raw) == 8 else -1
        if count * dtype.itemsize != array.nbytes:
            raise RuntimeError(
                f"unexpected number of elements of storage {key!r}: {count}, "
                f"expected {array.nbytes // dtype.itemsize}; corrupt file?"
            )
        data = file.read(array.nbytes)
        if len(data) != array.nbytes:
            raise EOFError(f"the file ends within storage {key!r}; corrupt file?")
        array.view(dtype.numpy)[...] = _native(np.frombuffer(data, np.uint8), dtype, order)
    if set(arrays) - {_text(key) for key in keys}:
        raise RuntimeError("the checkpoint does not have the data of all its storages; corrupt file?")
    return result
