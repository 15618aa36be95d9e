# torch.distributed.checkpoint.filesystem: checkpoints as a folder. Each rank writes its pieces, one after another, into files of its own;
# the coordinator's `.metadata` says where each piece lies.
import io
import os
import pickle
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from msadapter_hook.errors import unsupported

from ... import Size, Tensor, dtype
from ... import layout as _layout
from ... import load as _load
from ... import save as _save
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .storage import StorageReader, StorageWriter

__all__ = ["FileSystemWriter", "FileSystemReader"]

_METADATA = ".metadata"
_SUFFIX = ".distcp"
_VERSION = "1.0.0"


@dataclass
class _StorageInfo:
    """Where a piece lies: a file of the folder, and a range of its bytes."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: list | None = None

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if value is not None}


class FileSystemWriter(StorageWriter):
    """Writes a checkpoint into the folder `path`.

    `single_file_per_rank=False`: a file for each piece. `sync_files`: the files are on the disk when saving ends. `thread_count`:
    so many threads, each with a file. `overwrite=False`: RuntimeError where the folder holds a checkpoint. `per_thread_copy_ahead` is about
    copies from other devices; `cache_staged_state_dict` about `async_save`, which copies each time. Source: PyTorch,
    torch.distributed.checkpoint.FileSystemWriter.
    """

    def __init__(self, path, single_file_per_rank=True, sync_files=True, thread_count=1, per_thread_copy_ahead=10_000_000,
                 cache_staged_state_dict=False, overwrite=True, _extensions=None, serialization_format=None):
        if _extensions:
            raise unsupported("torch.distributed.checkpoint.FileSystemWriter(_extensions=…)", "leave extensions out")
        if serialization_format is not None and getattr(serialization_format, "value", serialization_format) != "torch_save":
            raise unsupported("torch.distributed.checkpoint.FileSystemWriter(serialization_format=…)", "the format is that of torch.save")
        self.path = Path(path)
        self.single_file_per_rank = single_file_per_rank
        self.sync_files = sync_files
        self.thread_count = thread_count
        self.overwrite = overwrite

    @property
    def checkpoint_id(self):
        return self.path

    def prepare(self):
        """Make the folder. RuntimeError where it must not be overwritten."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.overwrite and (self.path / _METADATA).exists():
            raise RuntimeError(f"Checkpoint already exists and overwrite=False: {self.path}")

    def write(self, rank, pieces):
        """Write {key: value} and give [(MetadataIndex, _StorageInfo, metadata of the key)]."""
        items = list(pieces.items())
        if self.single_file_per_rank:
            count = max(1, min(self.thread_count, len(items)))
            shares = [items[i::count] for i in range(count)]
        else:
            shares = [[item] for item in items]
        numbered = [(f"__{rank}_{i}{_SUFFIX}", share) for i, share in enumerate(shares) if share]
        with ThreadPoolExecutor(self.thread_count) as pool:
            return [row for rows in pool.map(lambda job: self._write_file(*job), numbered) for row in rows]

    def _write_file(self, name, items):
        rows = []
        with open(self.path / name, "wb") as file:
            for key, value in items:
                start = file.tell()
                buffer = io.BytesIO()
                _save(value.detach().clone() if isinstance(value, Tensor) else value, buffer)
                file.write(buffer.getbuffer())
                index, described = _describe(key, value)
                rows.append((index, _StorageInfo(name, start, file.tell() - start), described))
            _flush(file, self.sync_files)
        return rows

    def finish(self, rows, paths):
        """Write and give the metadata of the whole checkpoint."""
        described = {index.fqn: one for index, _, one in rows}
        metadata = Metadata(
            {key: described[key] for key in paths},
            paths,
            {index: info for index, info, _ in rows},
            StorageMeta(self.path, str(uuid.uuid4())),
            _VERSION,
        )
        pending = self.path / f"{_METADATA}.tmp"
        with open(pending, "wb") as file:
            pickle.dump(metadata, file)
            _flush(file, self.sync_files)
        os.replace(pending, self.path / _METADATA)
        return metadata


def _flush(file, to_disk):
    file.flush()
    if to_disk:
        os.fsync(file.fileno())


def _describe(key, value):
    if not isinstance(value, Tensor):
        return MetadataIndex(key), BytesStorageMetadata()
    start, size = Size([0] * value.dim()), Size(value.shape)
    described = TensorStorageMetadata(TensorProperties.create_from_tensor(value), size, [ChunkStorageMetadata(start, size)])
    return MetadataIndex(key, start, 0), described


class _MetadataUnpickler(pickle.Unpickler):
    """Reads `.metadata` and makes nothing but what belongs into it."""

    _MODULES = {
        "torch.distributed.checkpoint.metadata": {
            "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties", "TensorStorageMetadata", "ChunkStorageMetadata",
            "BytesStorageMetadata", "_MEM_FORMAT_ENCODING"},
        "torch.distributed.checkpoint.filesystem": {"_StorageInfo"},
        "torch": {"Size"},
        "torch.serialization": {"_get_layout"},
        "pathlib": {"PosixPath", "WindowsPath", "Path", "PurePosixPath", "PureWindowsPath"},
        "pathlib._local": {"PosixPath", "WindowsPath", "Path"},
        "collections": {"OrderedDict"},
        "builtins": {"set", "list", "dict", "tuple"},
    }  # fmt: skip

    def find_class(self, module, name):
        if module.startswith("pathlib") and name in self._MODULES["pathlib"]:
            return Path  # a checkpoint may come from another system
        if name in self._MODULES.get(module, ()):
            return super().find_class(module, name)
        if module == "torch":
            found = super().find_class(module, name)
            if isinstance(found, (dtype, _layout)):
                return found
        raise pickle.UnpicklingError(f"the metadata of a checkpoint must not hold {module}.{name}")


class FileSystemReader(StorageReader):
    """Reads a checkpoint from the folder `path`. Source: PyTorch, torch.distributed.checkpoint.FileSystemReader."""

    def __init__(self, path, _extension_registry=None):
        self.path = Path(path)

    @property
    def checkpoint_id(self):
        return self.path

    def read_metadata(self):
        """The Metadata of the checkpoint. FileNotFoundError where there is none, UnpicklingError for objects that have no place in it."""
        with open(self.path / _METADATA, "rb") as file:
            return _MetadataUnpickler(file).load()

    def _read(self, info, weights_only):
        if info.__dict__.get("transform_descriptors"):
            raise unsupported("torch.distributed.checkpoint.FileSystemReader", "save the checkpoint without extensions")
        with open(self.path / info.relative_path, "rb") as file:
            file.seek(info.offset)
            data = file.read(info.length)
        if data[:4] != b"PK\x03\x04":
            raise unsupported("torch.distributed.checkpoint.FileSystemReader", "only the format of torch.save can be read")
        return _load(io.BytesIO(data), map_location="cpu", weights_only=weights_only)

    def read_object(self, metadata, key):
        """An object that is no tensor."""
        return self._read(metadata.storage_data[MetadataIndex(key)], False)

    def read_tensor(self, metadata, key, target):
        """Fill `target`, of the tensor's size, from its chunks."""
        target = target.detach()
        for i, chunk in enumerate(metadata.state_dict_metadata[key].chunks):
            part = self._read(metadata.storage_data[MetadataIndex(key, chunk.offsets, i)], True)
            place = target
            for d, (start, size) in enumerate(zip(chunk.offsets, chunk.sizes)):
                place = place.narrow(d, start, size)
            place.copy_(part)
