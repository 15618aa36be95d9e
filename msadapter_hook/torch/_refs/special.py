"""torch._refs.special: the functions of torch.special."""

from ..special import *  # noqa: F403
