"""torch.types: names for annotations."""

import builtins
from collections.abc import Sequence
from typing import Any, Union

from . import SymInt, Tensor
from . import device as _torch_device
from . import dtype as _torch_dtype

__all__ = ["Device", "FileLike", "IntLikeType", "Number", "Storage"]

_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
_dtype = _torch_dtype
_device = _torch_device
_size = Union[list[builtins.int], tuple[builtins.int, ...]]
_layout = Any
_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
IntLikeType = Union[builtins.int, SymInt]
Number = Union[builtins.int, builtins.float, builtins.bool]
Device = Union[_torch_device, str, builtins.int, None]
FileLike = Any
Storage = Any
