"""torch.nn.functional: the operators of that namespace, and what is composed of them."""

from msadapter_hook.ops import functions as _functions

globals().update(_functions("nn.functional"))
from ._functional_composites import *  # noqa: E402,F403
