# The dropout family: elements, whole channels, and the forms that keep mean and variance.
from .. import functional as F
from .module import Module

__all__ = ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    __constants__ = ["p", "inplace"]

    # The functional that does it; set by the subclasses.
    _function = None

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"

    def forward(self, input):
        return getattr(F, self._function)(input, self.p, self.training, self.inplace)


class Dropout(_DropoutNd):
    """Zeroes elements with probability p in training, scales the rest by 1/(1-p). Source: PyTorch, torch.nn.Dropout."""

    _function = "dropout"


class Dropout1d(_DropoutNd):
    """Zeroes whole channels of (N, C, L) or (C, L). Source: PyTorch, torch.nn.Dropout1d."""

    _function = "dropout1d"


class Dropout2d(_DropoutNd):
    """Zeroes whole channels of (N, C, H, W) or (N, C, L). Source: PyTorch, torch.nn.Dropout2d."""

    _function = "dropout2d"


class Dropout3d(_DropoutNd):
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W). Source: PyTorch, torch.nn.Dropout3d."""

    _function = "dropout3d"


class AlphaDropout(_DropoutNd):
    """Dropout to SELU's negative saturation, keeping mean and variance. Source: PyTorch, torch.nn.AlphaDropout."""

    def forward(self, input):
        # The option to write into the input is accepted and unused, as in PyTorch.
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """Alpha dropout of whole channels. Source: PyTorch, torch.nn.FeatureAlphaDropout."""

    def forward(self, input):
        return F.feature_alpha_dropout(input, self.p, self.training)
