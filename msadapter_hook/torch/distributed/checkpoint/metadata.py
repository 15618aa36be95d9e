# torch.distributed.checkpoint.metadata: what a checkpoint says of itself in its file `.metadata`. The classes pickle under
# PyTorch's names and with PyTorch's fields, so either side reads what the other wrote.
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Union

from ... import Size, channels_last, contiguous_format, float32, preserve_format, strided

__all__ = [
    "ChunkStorageMetadata", "TensorStorageMetadata", "BytesStorageMetadata", "Metadata", "MetadataIndex", "TensorProperties",
    "StorageMeta",
]  # fmt: skip


@dataclass
class ChunkStorageMetadata:
    """A box of a tensor that is kept in one piece: where it begins, and its size."""

    offsets: Size
    sizes: Size


class _MEM_FORMAT_ENCODING(Enum):
    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_CODE_OF = {
    contiguous_format: _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT,
    channels_last: _MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST,
    preserve_format: _MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT,
}


@dataclass
class TensorProperties:
    """What is needed beside the size to make a tensor."""

    dtype: Any = field(default_factory=lambda: float32)
    layout: Any = field(default=strided)
    requires_grad: bool = False
    memory_format: Any = field(default=contiguous_format)
    pin_memory: bool = False

    def __getstate__(self):
        return self.dtype, self.layout, self.requires_grad, _CODE_OF[self.memory_format], self.pin_memory

    def __setstate__(self, state):
        self.dtype, self.layout, self.requires_grad, code, self.pin_memory = state
        self.memory_format = next(known for known, its in _CODE_OF.items() if its is code)

    @staticmethod
    def create_from_tensor(tensor):
        """The properties of a tensor."""
        return TensorProperties(tensor.dtype, tensor.layout, tensor.requires_grad, contiguous_format, False)


@dataclass
class TensorStorageMetadata:
    """A tensor of the checkpoint: its properties, its size, and the chunks that it is kept in."""

    properties: TensorProperties
    size: Size
    chunks: list


@dataclass
class BytesStorageMetadata:
    """An object of the checkpoint that is no tensor."""


@dataclass(frozen=True)
class MetadataIndex:
    """The name under which storage knows a piece: the key, and for a chunk its offset; `index` is a hint."""

    fqn: str
    offset: Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn, offset: Sequence[int] | None = None, index=None):
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "offset", Size(offset) if offset is not None else None)


@dataclass
class StorageMeta:
    """Which checkpoint this is."""

    checkpoint_id: Union[str, os.PathLike, None] = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list = field(default_factory=list)


@dataclass
class Metadata:
    """All of a checkpoint: keys and what they stand for, how the keys were flattened, and where each piece lies."""

    state_dict_metadata: dict
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None
