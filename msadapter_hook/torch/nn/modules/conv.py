# Convolutions and transposed convolutions over 1, 2 and 3 dimensions, and their lazy forms.
import math
import warnings

from ... import empty
from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module
from .utils import _pair, _reverse_repeat_tuple, _single, _triple

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip


class _ConvNd(Module):
    __constants__ = [
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels", "out_channels",
        "kernel_size",
    ]  # fmt: skip

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        bias,
        padding_mode,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        modes = ("zeros", "reflect", "replicate", "circular")
        if padding_mode not in modes:
            raise ValueError(f"padding_mode must be one of {set(modes)}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        # Padding for F.pad, used when the mode is not "zeros": last dimension first, both sides of each.
        if isinstance(padding, str):
            self._reversed_padding_repeated_twice = [0, 0] * len(kernel_size)
            if padding == "same":
                for i, (d, k) in enumerate(zip(dilation, kernel_size)):
                    total = d * (k - 1)
                    place = 2 * (len(kernel_size) - 1 - i)
                    self._reversed_padding_repeated_twice[place] = total // 2
                    self._reversed_padding_repeated_twice[place + 1] = total - total // 2
        else:
            self._reversed_padding_repeated_twice = _reverse_repeat_tuple(padding, 2)
        outer = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(empty((*outer, *kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        # Kaiming with a = √5 is the uniform distribution on ±1/√fan_in.
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self):
        ones, zeros = (1,) * len(self.dilation), (0,) * len(self.output_padding)
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * len(self.padding):
            text += f", padding={self.padding}"
        if self.dilation != ones:
            text += f", dilation={self.dilation}"
        if self.output_padding != zeros:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")

    # Name of the functional (looked up at the call, so that a replaced one is used) and tuple maker; set by subclasses.
    _function = None
    _tuple = None

    def _conv_forward(self, input, weight, bias):
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = type(self)._tuple(0)
        return getattr(F, self._function)(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)


class _PlainConv(_ConvNd):
    # Base of Conv1d/2d/3d, which differ in the dimensionality alone.
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        sizes = type(self)._tuple
        super().__init__(
            in_channels,
            out_channels,
            sizes(kernel_size),
            sizes(stride),
            padding if isinstance(padding, str) else sizes(padding),
            sizes(dilation),
            False,
            sizes(0),
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )


class Conv1d(_PlainConv):
    """Cross-correlation of (N, C, L) with learned filters. Source: PyTorch, torch.nn.Conv1d."""

    _function = "conv1d"
    _tuple = staticmethod(_single)


class Conv2d(_PlainConv):
    """Cross-correlation of (N, C, H, W) with learned filters. Source: PyTorch, torch.nn.Conv2d."""

    _function = "conv2d"
    _tuple = staticmethod(_pair)


class Conv3d(_PlainConv):
    """Cross-correlation of (N, C, D, H, W) with learned filters. Source: PyTorch, torch.nn.Conv3d."""

    _function = "conv3d"
    _tuple = staticmethod(_triple)


class _ConvTransposeNd(_ConvNd):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        bias,
        padding_mode,
        device=None,
        dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            transposed,
            output_padding,
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )

    def _output_padding(self, input, output_size, stride, padding, kernel_size, num_spatial_dims, dilation=None):
        """Output padding that gives `output_size`; ValueError when no padding smaller than the stride does."""
        if output_size is None:
            return _single(self.output_padding)
        batch_dims = 2 if input.dim() == num_spatial_dims + 2 else 1
        if len(output_size) == num_spatial_dims + batch_dims:
            output_size = output_size[batch_dims:]
        if len(output_size) != num_spatial_dims:
            raise ValueError(
                f"ConvTranspose{num_spatial_dims}D: for {input.dim()}D input, output_size must have "
                f"{num_spatial_dims} or {num_spatial_dims + batch_dims} elements (got {len(output_size)})"
            )
        smallest = [
            (input.size(d + batch_dims) - 1) * stride[d]
            - 2 * padding[d]
            + (dilation[d] if dilation is not None else 1) * (kernel_size[d] - 1)
            + 1
            for d in range(num_spatial_dims)
        ]
        largest = [low + stride[d] - 1 for d, low in enumerate(smallest)]
        if any(not low <= size <= high for size, low, high in zip(output_size, smallest, largest)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {smallest} to {largest} "
                f"(for an input of {input.size()[2:]})"
            )
        return [size - low for size, low in zip(output_size, smallest)]


class _PlainConvTranspose(_ConvTransposeNd):
    # Base of ConvTranspose1d/2d/3d, which differ in the dimensionality alone.
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        sizes = type(self)._tuple
        super().__init__(
            in_channels,
            out_channels,
            sizes(kernel_size),
            sizes(stride),
            sizes(padding),
            sizes(dilation),
            True,
            sizes(output_padding),
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )

    def forward(self, input, output_size=None):
        if self.padding_mode != "zeros":
            raise ValueError(f"Only `zeros` padding mode is supported for {type(self).__name__}")
        output_padding = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, len(self.kernel_size), self.dilation
        )
        return getattr(F, self._function)(
            input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups, self.dilation
        )


class ConvTranspose1d(_PlainConvTranspose):
    """The gradient of Conv1d with respect to its input, as a layer. Source: PyTorch, torch.nn.ConvTranspose1d."""

    _function = "conv_transpose1d"
    _tuple = staticmethod(_single)


class ConvTranspose2d(_PlainConvTranspose):
    """The gradient of Conv2d with respect to its input, as a layer. Source: PyTorch, torch.nn.ConvTranspose2d."""

    _function = "conv_transpose2d"
    _tuple = staticmethod(_pair)


class ConvTranspose3d(_PlainConvTranspose):
    """The gradient of Conv3d with respect to its input, as a layer. Source: PyTorch, torch.nn.ConvTranspose3d."""

    _function = "conv_transpose3d"
    _tuple = staticmethod(_triple)


class _ConvTransposeMixin(_ConvTransposeNd):
    """Deprecated name of _ConvTransposeNd."""

    def __init__(self, *args, **kwargs):
        warnings.warn(
            "_ConvTransposeMixin is a deprecated internal class. Please consider using public APIs.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)


class _LazyConvXdMixin(LazyModuleMixin):
    # in_channels comes from the first input; sizes of weight and bias follow.
    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if self.transposed:
            outer = (self.in_channels, self.out_channels // self.groups)
        else:
            outer = (self.out_channels, self.in_channels // self.groups)
        self.weight.materialize((*outer, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input):
        spatial = self._get_num_spatial_dims()
        if input.dim() not in (spatial + 1, spatial + 2):
            raise RuntimeError(
                f"Expected {spatial + 1}D (unbatched) or {spatial + 2}D (batched) input to {type(self).__name__}, "
                f"but got input of size: {input.shape}"
            )
        return input.shape[1] if input.dim() == spatial + 2 else input.shape[0]

    def _get_num_spatial_dims(self):
        return len(self.kernel_size)

    def _make_lazy(self, out_channels, bias, device, dtype):
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)


class _LazyPlainConv(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        # No bias in the base: nothing may be drawn before the shapes are known.
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)


class _LazyTransposedConv(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyPlainConv, Conv1d):
    """Conv1d with in_channels from its first input. Source: PyTorch, torch.nn.LazyConv1d."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyPlainConv, Conv2d):
    """Conv2d with in_channels from its first input. Source: PyTorch, torch.nn.LazyConv2d."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyPlainConv, Conv3d):
    """Conv3d with in_channels from its first input. Source: PyTorch, torch.nn.LazyConv3d."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyTransposedConv, ConvTranspose1d):
    """ConvTranspose1d with in_channels from its first input. Source: PyTorch, torch.nn.LazyConvTranspose1d."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyTransposedConv, ConvTranspose2d):
    """ConvTranspose2d with in_channels from its first input. Source: PyTorch, torch.nn.LazyConvTranspose2d."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyTransposedConv, ConvTranspose3d):
    """ConvTranspose3d with in_channels from its first input. Source: PyTorch, torch.nn.LazyConvTranspose3d."""

    cls_to_become = ConvTranspose3d
