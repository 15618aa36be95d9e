# torch.distributed.checkpoint.state_dict_loader: load into a dictionary that is there.
import inspect

from ... import Size, Tensor, no_grad
from ._flatten import set_element
from ._together import Ranks, older_name, storage_for
from .filesystem import FileSystemReader
from .metadata import TensorStorageMetadata
from .planner import DefaultLoadPlanner
from .state_dict_saver import states_of
from .stateful import Stateful

__all__ = ["load", "load_state_dict"]


@no_grad()
def load(state_dict, *, checkpoint_id=None, storage_reader=None, planner=None, process_group=None, no_dist=False):
    """Load what `state_dict` names from the folder `checkpoint_id`: tensors are filled in place, other values replaced, Stateful objects
    given their state.

    CheckpointException, with the failure of each rank, for a missing checkpoint or key and for another size. NotImplementedError for
    readers of one's own. Source: PyTorch, torch.distributed.checkpoint.load.
    """
    reader = storage_for("load", FileSystemReader, checkpoint_id, storage_reader)
    planner = planner if planner is not None else DefaultLoadPlanner()
    states = states_of(state_dict)
    Ranks(process_group, no_dist).each("load", lambda: _fill(states, reader, planner))
    for key, value in state_dict.items():
        if isinstance(value, Stateful) and not inspect.isclass(value):
            value.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]


def _fill(states, reader, planner):
    metadata = reader.read_metadata()
    flat, paths = planner.set_up(states)
    for key, value in flat.items():
        known = metadata.state_dict_metadata.get(key)
        if known is None:
            if getattr(planner, "allow_partial_load", False):
                continue
            raise RuntimeError(f"Missing key in checkpoint state_dict: {key}.")
        if not isinstance(known, TensorStorageMetadata):
            set_element(states, paths[key], reader.read_object(metadata, key))
        elif not isinstance(value, Tensor):
            raise ValueError(f"{key} is a tensor in the checkpoint; the state_dict to load into has a {type(value).__name__}")
        elif Size(known.size) != value.shape:
            raise ValueError(f"Size mismatch between saved {Size(known.size)} and current: {value.shape} for {key}")
        else:
            reader.read_tensor(metadata, key, value)


def load_state_dict(state_dict, storage_reader, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """The older name of `load`. Source: PyTorch, torch.distributed.checkpoint.load_state_dict."""
    older_name("load_state_dict", "load", coordinator_rank)
    load(state_dict, storage_reader=storage_reader, process_group=process_group, no_dist=no_dist, planner=planner)
