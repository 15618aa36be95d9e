"""Convolutions over one, two and three axes, and the transposed ones."""

import warnings

from msadapter_hook import prims

from ._contract import permuted, shaped
from .promotion import dtype_of
from .refusals import c_name, type_text
from .registry import operator


# ------------------------------------------------------------------------------------------------ checks
def _per_axis(values, n, name):
    """One number per spatial axis."""
    values = tuple(values)
    if len(values) == 1:
        return values * n
    if len(values) != n:
        raise RuntimeError(f"expected {name} to be a single integer value or a list of {n} values to match the "
                           "convolution "
                           f"dimensions, but got {name}={list(values)}")
    return values


def _check(x, weight, bias, stride, padding, dilation, groups, transposed, output_padding=()):
    """RuntimeError, in PyTorch's words, where input, weight, bias and attributes do not fit each other."""
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    for name, values in (("padding", padding), ("output_padding", output_padding)):
        if any(v < 0 for v in values):
            raise RuntimeError(f"negative {name} is not supported")
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(d <= 0 for d in dilation):
        raise RuntimeError(f"dilation should be greater than zero, but got {list(dilation)}")
    if weight.ndim != x.ndim:
        raise RuntimeError(f"expected weight to have {x.ndim} dimensions, but got weight of size {list(weight.shape)}")
    if weight.shape[0] < groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got "
                           "weight of size "
                           f"{list(weight.shape)} instead")
    if weight.shape[0] % groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but "
                           "got weight of "
                           f"size [{list(weight.shape)}] instead")
    kernel = weight.shape[2:]
    if not transposed:
        channels = weight.shape[1] * groups
        if x.shape[1] != channels:
            raise RuntimeError(f"Given groups={groups}, weight of size {list(weight.shape)}, expected "
                               f"input{list(x.shape)} to have "
                               f"{channels} channels, but got {x.shape[1]} channels instead")
        made = weight.shape[0]
        if bias is not None and bias.shape != (made,):
            raise RuntimeError(f"Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional with "
                               f"{made} elements, "
                               f"but got bias of size {list(bias.shape)} instead")
        padded = [n + 2 * p for n, p in zip(x.shape[2:], padding)]
        reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
        if any(k > n for k, n in zip(reach, padded)):
            sizes, kernels = " x ".join(map(str, padded)), " x ".join(map(str, reach))
            raise RuntimeError(f"Calculated padded input size per channel: ({sizes}). Kernel size: ({kernels}). "
                               "Kernel size can't be "
                               "greater than actual input size")
    else:
        if x.shape[1] != weight.shape[0]:
            raise RuntimeError(f"Given transposed=1, weight of size {list(weight.shape)}, expected "
                               f"input{list(x.shape)} to have "
                               f"{weight.shape[0]} channels, but got {x.shape[1]} channels instead")
        made = weight.shape[1] * groups
        if bias is not None and bias.shape != (made,):
            raise RuntimeError(f"Given transposed=1, weight of size {list(weight.shape)}, expected bias to be "
                               "1-dimensional with "
                               f"{made} elements, but got bias of size {list(bias.shape)} instead")
    if x.dtype != weight.dtype and dtype_of(x).scalar_name == "BFloat16":
        raise RuntimeError(f"Input type ({type_text(dtype_of(x))}) and weight type ({type_text(dtype_of(weight))}) should be the same or "
                           "input should be a MKLDNN tensor and weight is a dense tensor")
    if x.dtype != weight.dtype:
        raise RuntimeError(f"expected scalar type {dtype_of(x).scalar_name} but found {dtype_of(weight).scalar_name}")
    if bias is not None and bias.dtype != x.dtype:
        raise RuntimeError(f"Input type ({c_name(x)}) and bias type ({c_name(bias)}) should be the same")
    if x.dtype.kind == "b":
        raise RuntimeError("\"slow_conv2d_cpu\" not implemented for 'Bool'")


def _batched(x, n, name):
    """The input with a batch axis, and whether it had none."""
    if x.ndim == n + 1:
        return shaped(x, (1,) + x.shape), True
    if x.ndim != n + 2:
        raise RuntimeError(f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of "
                           "size: "
                           f"{list(x.shape)}")
    return x, False


def _lifted(x, weight, *attributes):
    """One spatial axis as the second of two, so that the kernels for images serve sequences."""
    one = (shaped(x, x.shape[:2] + (1,) + x.shape[2:]), shaped(weight, weight.shape[:2] + (1,) + weight.shape[2:]))
    return one + tuple([(neutral,) + value for value, neutral in attributes])


def _finish(y, bias, single, sequence):
    if bias is not None:
        y = prims.bias_add(y, bias)
    if sequence:
        y = shaped(y, y.shape[:2] + y.shape[3:])
    return shaped(y, y.shape[1:]) if single else y


# ------------------------------------------------------------------------------------------------ values
def conv_values(x, weight, bias, stride, padding, dilation, groups):
    """Convolution of a batched Value with attributes of one number per axis."""
    sequence = x.ndim == 3
    if sequence:
        x, weight, stride, padding, dilation = _lifted(x, weight, (stride, 1), (padding, 0), (dilation, 1))
    y = prims.convolve(x, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)
    return _finish(y, None, False, sequence)


def conv_transpose_values(x, weight, bias, stride, padding, output_padding, dilation, groups):
    """Transposed convolution of a batched Value."""
    kernel = weight.shape[2:]
    for s, d, o in zip(stride, dilation, output_padding):
        if o >= s and o >= d:
            axes = ("depth", "height", "width")[3 - len(stride):]
            parts = [f"{word}_{axis}: {v}" for word, values in (("output_padding", output_padding), ("stride", stride),
                                                                ("dilation", dilation)) for axis, v in zip(axes, values)]
            raise RuntimeError("output padding must be smaller than either stride or dilation, but got " + " ".join(parts))
    size = tuple([(n - 1) * s - 2 * p + d * (k - 1) + o + 1
                  for n, s, p, d, k, o in zip(x.shape[2:], stride, padding, dilation, kernel, output_padding)])
    if any(n <= 0 for n in size):
        given, made = " x ".join(map(str, x.shape[2:])), " x ".join(map(str, size))
        raise RuntimeError(f"Given input size per channel: ({given}). Calculated output size per channel: ({made}). "
                           "Output size is "
                           "too small")
    sequence = x.ndim == 3
    if sequence:
        x, weight, stride, padding, dilation = _lifted(x, weight, (stride, 1), (padding, 0), (dilation, 1))
        size = (1,) + size
    y = prims.conv_input(x, weight, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups)
    return _finish(y, bias, False, sequence)


def _convolution(n, input, weight, bias, stride, padding, dilation, groups):
    x, single = _batched(input, n, f"conv{n}d")
    if weight.ndim != n + 2:
        if isinstance(padding, str):
            raise RuntimeError(f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight"
                               f"{list(weight.shape)}, but got {x.ndim}-dimensional input of size {list(x.shape)} "
                               "instead")
        n = weight.ndim - 2
    stride, dilation = _per_axis(stride, n, "stride"), _per_axis(dilation, n, "dilation")
    if isinstance(padding, str):
        x, padding = _padding_by_name(x, weight, padding, stride, dilation)
    else:
        padding = _per_axis(padding, n, "padding")
    _check(x, weight, bias, stride, padding, dilation, groups, False)
    if not x.shape[1]:  # of no channels PyTorch makes no channels, however many the weights have
        weight = _no_outputs(weight)
        bias = bias if bias is None else _no_outputs(bias)
    y = conv_values(x, weight, bias, stride, padding, dilation, groups)
    return shaped(y, y.shape[1:]) if single else y


def _no_outputs(a):
    """None of the rows of a weight or bias."""
    return prims.strided_slice(a, start=(0,) * a.ndim, stop=(0,) + a.shape[1:], step=(1,) * a.ndim)


def _padding_by_name(x, weight, name, stride, dilation):
    """'valid' is none; 'same' keeps the size: where the two sides differ, the second gets one more."""
    n = len(stride)
    if name == "valid":
        return x, (0,) * n
    if name != "same":
        raise RuntimeError(f"Invalid padding string: '{name}'")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
    extra = tuple([t % 2 for t in total])
    if any(extra):
        warnings.warn("padding='same' with an even kernel and an odd dilation needs a copy of the input with one more "
                      "row or column.",
                      stacklevel=8)
        x = prims.pad(x, before=(0,) * x.ndim, after=(0, 0) + extra, value=0)
    return x, tuple([t // 2 for t in total])


def _integers(padding):
    """Padding as a name or a tuple of integers; TypeError for anything else."""
    if isinstance(padding, str):
        return padding
    from .arguments import integers

    return integers(padding, 1)


# ------------------------------------------------------------------------------------------------ operators
def _declare(n):
    @operator(f"conv{n}d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, any padding=0, int[1] "
              "dilation=1, "
              "int groups=1) -> Tensor", namespace="nn.functional", forms="function", aliases=(f"conv{n}d",),
              saves="input:weight weight:input", grad_name="ConvolutionBackward0", layout="channels")
    def conv(input, weight, bias=None, stride=(1,), padding=0, dilation=(1,), groups=1):
        return _convolution(n, input, weight, bias, _tuple(stride), _integers(padding), _tuple(dilation), groups)

    axes = "LHWD"[:1] if n == 1 else ("H, W" if n == 2 else "D, H, W")
    conv.__doc__ = (f"Convolution of (N, C, {axes}) or (C, {axes}) with weights (O, C/groups, …). Padding may be "
                    "'valid' or 'same'.\n"
                    f"\n    Source: PyTorch, torch.nn.functional.conv{n}d.\n    ")

    @operator(f"conv_transpose{n}d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, "
              "int[1] output_padding=0, int groups=1, int[1] dilation=1) -> Tensor", namespace="nn.functional", forms="function",
              aliases=(f"conv_transpose{n}d",), saves="input:weight weight:input", grad_name="ConvolutionBackward0", layout="channels")
    def conv_transpose(input, weight, bias=None, stride=(1,), padding=(0,), output_padding=(0,), groups=1, dilation=(1,)):
        x, single = _batched(input, n, f"conv_transpose{n}d")
        stride, padding = _per_axis(_tuple(stride), n, "stride"), _per_axis(_tuple(padding), n, "padding")
        dilation = _per_axis(_tuple(dilation), n, "dilation")
        output_padding = _per_axis(_tuple(output_padding), n, "output_padding")
        _check(x, weight, bias, stride, padding, dilation, groups, True, output_padding)
        y = conv_transpose_values(x, weight, bias, stride, padding, output_padding, dilation, groups)
        return shaped(y, y.shape[1:]) if single else y

    conv_transpose.__doc__ = (f"Transposed convolution of (N, C, {axes}) with weights (C, O/groups, …).\n\n"
                              f"    Source: PyTorch, torch.nn.functional.conv_transpose{n}d.\n    ")


def _tuple(v):
    return (v,) if isinstance(v, int) else tuple(v)


for _n in (1, 2, 3):
    _declare(_n)


@operator("convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool "
          "transposed, "
          "int[] output_padding, int groups) -> Tensor", forms="function", saves="input:weight weight:input",
          grad_name="ConvolutionBackward0", layout="channels")
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Convolution or transposed convolution over as many axes as the input has. Source: PyTorch, torch.convolution."""
    n = input.ndim - 2
    stride, padding = _per_axis(stride, n, "stride"), _per_axis(padding, n, "padding")
    dilation, output_padding = _per_axis(dilation, n, "dilation"), _per_axis(output_padding, n, "output_padding")
    _check(input, weight, bias, stride, padding, dilation, groups, transposed, output_padding)
    if transposed:
        return conv_transpose_values(input, weight, bias, stride, padding, output_padding, dilation, groups)
    return conv_values(input, weight, bias, stride, padding, dilation, groups)


@operator("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", forms="function", saves="self weight bias",
          aliases=("nn.functional.conv_tbc",))
def conv_tbc(self, weight, bias, pad=0):
    """Convolution of a sequence (time, batch, channels) with weights (kernel, in, out).

    Source: PyTorch, torch.conv_tbc.
    """
    x = permuted(self, (1, 2, 0))
    w = permuted(weight, (2, 1, 0))
    return permuted(conv_values(x, w, bias, (1,), (pad,), (1,), 1), (2, 0, 1))
