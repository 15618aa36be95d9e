# torch.distributed.checkpoint.format_utils: a checkpoint folder as one file of torch.save, and the reverse.
import os

from ... import empty
from ... import load as _load
from ... import save as _save
from ._flatten import set_element
from .filesystem import FileSystemReader
from .metadata import TensorStorageMetadata
from .state_dict_saver import save

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir, torch_save_path):
    """Write all of a checkpoint folder into one file, nested as it was saved. Source: PyTorch, the same name."""
    reader = FileSystemReader(dcp_checkpoint_dir)
    metadata = reader.read_metadata()
    whole = {}
    for key, known in metadata.state_dict_metadata.items():
        if isinstance(known, TensorStorageMetadata):
            value = empty(known.size, dtype=known.properties.dtype)
            reader.read_tensor(metadata, key, value)
        else:
            value = reader.read_object(metadata, key)
        set_element(whole, metadata.planner_data[key] if metadata.planner_data else (key,), value)
    _save(whole, os.fspath(torch_save_path))


def torch_save_to_dcp(torch_save_path, dcp_checkpoint_dir):
    """Write the dictionary in a file of torch.save as a checkpoint folder; for files one trusts. Source: PyTorch, the same name."""
    save(_load(os.fspath(torch_save_path), weights_only=False), checkpoint_id=dcp_checkpoint_dir, no_dist=True)
