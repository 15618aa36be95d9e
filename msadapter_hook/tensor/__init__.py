"""Tensors: dtypes, devices, geometry, storage, views, random streams and printing."""

from . import dtype as dtypes
from .core import Tensor, cast_value, detached, from_array, from_storage, from_value, share_array
from .device import device
from .geometry import Size
from .leaf import Leaf, RemovableHandle
from .storage import UntypedStorage

__all__ = ["Leaf", "RemovableHandle", "Size", "Tensor", "UntypedStorage", "cast_value", "detached", "device", "dtypes",
           "from_array", "from_storage", "from_value", "share_array"]
