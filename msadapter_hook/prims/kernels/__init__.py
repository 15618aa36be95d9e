"""Host kernels with gradients of their own, by NumPy and oneDNN: an overlay over the primitives, where MSADAPTER_KERNELS=host.

A family per module; each has a table KERNELS of primitives and their kernels. Those in EXACT give what PyTorch gives, and compute
without the switch too, where nothing is recorded.
"""

from . import (
    activation,
    attention,
    convolution,
    derivatives,
    linear,
    loss,
    movement,
    normalization,
    pooling,
    recurrent,
    reduction,
    replayed,
    resampling,
)
from .trust import status

__all__ = ["KERNELS", "install", "status"]

_FAMILIES = (activation, attention, convolution, derivatives, linear, loss, movement, normalization, pooling, recurrent, reduction,
             resampling)
KERNELS = {primitive: kernel for family in _FAMILIES for primitive, kernel in family.KERNELS.items()}
_EXACT = {**activation.EXACT, **loss.EXACT, **movement.EXACT, **normalization.EXACT, **reduction.EXACT}


def install(preferred):
    """Give the primitives their host kernels: all where they are `preferred`, else those that are exact, and those that replay takes
    in place of MindSpore's."""
    for primitive, kernel in (KERNELS if preferred else _EXACT).items():
        primitive.kernel = kernel
    if not preferred:
        replayed.install(KERNELS)
