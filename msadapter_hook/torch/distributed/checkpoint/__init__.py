# torch.distributed.checkpoint: state dictionaries of whole tensors, saved by all processes together into a folder.
from ..._refusal import refuse_all
from .api import CheckpointException
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from .planner import DefaultLoadPlanner, DefaultSavePlanner, LoadPlanner, SavePlanner
from .state_dict_loader import load, load_state_dict
from .state_dict_saver import async_save, save, save_state_dict
from .storage import StorageReader, StorageWriter

refuse_all(globals(), "torch.distributed.checkpoint",
           "HuggingFaceStorageReader HuggingFaceStorageWriter QuantizedHuggingFaceStorageReader load_sharded_optimizer_state_dict",
           "save and load whole tensors with FileSystemWriter and FileSystemReader, or safetensors files with the safetensors package")
