"""torch.utils.model_zoo: the old place of torch.hub's functions for pretrained weights."""

from ..hub import load_state_dict_from_url as load_url  # noqa: F401
from ..hub import tqdm  # noqa: F401
