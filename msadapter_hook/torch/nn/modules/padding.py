# Padding modules: circular, constant, zero, reflection, replication, over 1, 2 and 3 dimensions.
from .. import functional as F
from .module import Module
from .utils import _ntuple, _pair, _quadruple

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip

_sextuple = _ntuple(6, "_sextuple")


class _PadNd(Module):
    __constants__ = ["padding"]
    # Mode of F.pad, and the tuple maker (two numbers a dimension, last dimension first); set below.
    _mode = None
    _tuple = None

    def __init__(self, padding):
        super().__init__()
        self.padding = type(self)._tuple(padding)

    def forward(self, input):
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    _mode = "circular"
    _dimensions = 0

    def _check_input_dim(self, input):
        low, high = self._dimensions + 1, self._dimensions + 2
        if input.dim() not in (low, high):
            raise ValueError(f"expected {low}D or {high}D input (got {input.dim()}D input)")

    def forward(self, input):
        self._check_input_dim(input)
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Pads the last dimension with values from the other end. Source: PyTorch, torch.nn.CircularPad1d."""

    _tuple = staticmethod(_pair)
    _dimensions = 1


class CircularPad2d(_CircularPadNd):
    """Pads the last two dimensions with values from the other end. Source: PyTorch, torch.nn.CircularPad2d."""

    _tuple = staticmethod(_quadruple)
    _dimensions = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last three dimensions with values from the other end. Source: PyTorch, torch.nn.CircularPad3d."""

    _tuple = staticmethod(_sextuple)
    _dimensions = 3


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]
    _mode = "constant"

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with a value. Source: PyTorch, torch.nn.ConstantPad1d."""

    _tuple = staticmethod(_pair)


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with a value. Source: PyTorch, torch.nn.ConstantPad2d."""

    _tuple = staticmethod(_quadruple)


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with a value. Source: PyTorch, torch.nn.ConstantPad3d."""

    _tuple = staticmethod(_sextuple)


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Pads the last dimension by reflection without the edge. Source: PyTorch, torch.nn.ReflectionPad1d."""

    _tuple = staticmethod(_pair)


class ReflectionPad2d(_ReflectionPadNd):
    """Pads the last two dimensions by reflection without the edge. Source: PyTorch, torch.nn.ReflectionPad2d."""

    _tuple = staticmethod(_quadruple)


class ReflectionPad3d(_ReflectionPadNd):
    """Pads the last three dimensions by reflection without the edge. Source: PyTorch, torch.nn.ReflectionPad3d."""

    _tuple = staticmethod(_sextuple)


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Pads the last dimension by repeating the edge. Source: PyTorch, torch.nn.ReplicationPad1d."""

    _tuple = staticmethod(_pair)


class ReplicationPad2d(_ReplicationPadNd):
    """Pads the last two dimensions by repeating the edge. Source: PyTorch, torch.nn.ReplicationPad2d."""

    _tuple = staticmethod(_quadruple)


class ReplicationPad3d(_ReplicationPadNd):
    """Pads the last three dimensions by repeating the edge. Source: PyTorch, torch.nn.ReplicationPad3d."""

    _tuple = staticmethod(_sextuple)


class ZeroPad1d(ConstantPad1d):
    """Pads the last dimension with zeros. Source: PyTorch, torch.nn.ZeroPad1d."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pads the last two dimensions with zeros. Source: PyTorch, torch.nn.ZeroPad2d."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pads the last three dimensions with zeros. Source: PyTorch, torch.nn.ZeroPad3d."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"
