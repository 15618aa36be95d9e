"""torch._refs.linalg: the functions of torch.linalg."""

from ..linalg import *  # noqa: F403
