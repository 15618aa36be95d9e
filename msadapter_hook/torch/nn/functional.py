"""torch.nn.functional: the operators of that namespace, and what is composed of them."""

from msadapter_hook.ops import functions as _functions

globals().update(_functions("nn.functional"))
from .._refusal import refuse_all as _refuse_all  # noqa: E402
from . import grad  # noqa: E402,F401
from ._functional_composites import *  # noqa: E402,F403

native_channel_shuffle = _functions()["native_channel_shuffle"]
_refuse_all(globals(), "torch.nn.functional", "scaled_grouped_mm scaled_mm",
            "the products of 8-bit floating point matrices have kernels on accelerators only; multiply in bfloat16 or float32")
