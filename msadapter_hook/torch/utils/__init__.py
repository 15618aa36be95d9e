# torch.utils: hooks, trees, data loading, checkpointing and a few small helpers.
from . import _mode_utils as _mode_utils
from . import _pytree as _pytree
from . import checkpoint as checkpoint
from . import data as data
from . import deterministic as deterministic
from . import hooks as hooks
from ._swap import swap_tensors as swap_tensors
