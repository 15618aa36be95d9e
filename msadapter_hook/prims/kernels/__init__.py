"""Host kernels with gradients of their own, by NumPy and oneDNN: an overlay over the primitives, where MSADAPTER_KERNELS=host.

A family per module; each has a table KERNELS of primitives and their kernels.
"""

from . import activation, attention, convolution, linear, loss, movement, normalization, pooling, recurrent
from .trust import status

__all__ = ["KERNELS", "install", "status"]

_FAMILIES = (activation, attention, convolution, linear, loss, movement, normalization, pooling, recurrent)
KERNELS = {primitive: kernel for family in _FAMILIES for primitive, kernel in family.KERNELS.items()}


def install():
    """Give the primitives their host kernels."""
    for primitive, kernel in KERNELS.items():
        primitive.kernel = kernel
