"""Host kernels with gradients of their own, by NumPy and oneDNN: an overlay over the primitives, where MSADAPTER_KERNELS=host.

A family per module; `install` gives its primitives their kernels.
"""

from . import activation, attention, convolution, linear, loss, movement, normalization, pooling, recurrent
from .trust import status

__all__ = ["install", "status"]


def install():
    """Give the primitives their host kernels."""
    for family in (activation, attention, convolution, linear, loss, movement, normalization, pooling, recurrent):
        family.install()
