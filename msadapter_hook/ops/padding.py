"""Padding, sliding blocks, one-hot codes, and what images do with their channels: pixel and channel shuffles."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import value_of
from msadapter_hook.tensor import Tensor, detached, dtypes, from_array, geometry

from .registry import composite, operator
from .shape import copied
from .tables import call


# ------------------------------------------------------------------------------------------------ images
def _formatted(self, made):
    """`made` with the channels innermost where `self` has them so."""
    if made.ndim == 4 and self.ndim == 4 and geometry.suggests_channels_last(self._size, self._stride):
        return made.contiguous(memory_format=dtypes.channels_last)
    return made


@composite("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", forms="function",
           aliases=("nn.functional.pixel_shuffle",))
def pixel_shuffle(self, upscale_factor):
    """(*, C·r², H, W) as (*, C, H·r, W·r). Source: PyTorch, F.pixel_shuffle."""
    r = upscale_factor
    if self.ndim < 3:
        raise RuntimeError(f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {self.ndim} "
                           "dimension(s)")
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *lead, c, h, w = self._size
    if c % (r * r):
        raise RuntimeError("pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
                           f"upscale_factor, but input.size(-3)={c} is not divisible by {r * r}")
    n = len(lead)
    split = self.reshape((*lead, c // (r * r), r, r, h, w))
    made = split.permute((*range(n), n, n + 3, n + 1, n + 4, n + 2)).reshape((*lead, c // (r * r), h * r, w * r))
    return _formatted(self, made)


@composite("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", forms="function",
           aliases=("nn.functional.pixel_unshuffle",))
def pixel_unshuffle(self, downscale_factor):
    """(*, C, H·r, W·r) as (*, C·r², H, W). Source: PyTorch, F.pixel_unshuffle."""
    r = downscale_factor
    if self.ndim < 3:
        raise RuntimeError("pixel_unshuffle expects input to have at least 3 dimensions, but got input with "
                           f"{self.ndim} dimension(s)")
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, c, h, w = self._size
    for label, n, at in (("height", h, -2), ("width", w, -1)):
        if n % r:
            raise RuntimeError(f"pixel_unshuffle expects {label} to be divisible by downscale_factor, but "
                               f"input.size({at})={n} is not divisible by {r}")
    n = len(lead)
    split = self.reshape((*lead, c, h // r, r, w // r, r))
    made = split.permute((*range(n), n, n + 2, n + 4, n + 1, n + 3)).reshape((*lead, c * r * r, h // r, w // r))
    return _formatted(self, made)


@composite("channel_shuffle(Tensor self, int groups) -> Tensor", forms="function",
           aliases=("nn.functional.channel_shuffle", "native_channel_shuffle"))
def channel_shuffle(self, groups):
    """The channels of (N, C, *) dealt out over groups. Source: PyTorch, F.channel_shuffle."""
    if self.ndim <= 2:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(self._size)}")
    if groups <= 0:
        raise RuntimeError("Number of groups to divide channels in must be positive. Value of groups:" + str(groups))
    n, c, *rest = self._size
    if c % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    return _formatted(self, self.reshape((n, groups, c // groups, *rest)).transpose(1, 2).reshape((n, c, *rest)))


@composite("one_hot(Tensor self, int num_classes=-1) -> Tensor", forms="function", namespace="nn.functional")
def one_hot(self, num_classes=-1):
    """A row of zeros with a one at each class; int64 (*, num_classes). Source: PyTorch, F.one_hot."""
    if self._dtype is not dtypes.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    index = detached(self).numpy
    if index.size == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return from_array(np.zeros(index.shape + (num_classes,), np.int64))
    if index.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(index.max()) + 1
    elif num_classes < 1:
        raise RuntimeError("num_classes should be positive")
    elif index.max() >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    made = from_array((index[..., None] == np.arange(num_classes)).astype(np.int64))
    made._history.version.count = 2  # PyTorch clears and scatters in place
    return made


# ------------------------------------------------------------------------------------------------ padding
def _pairs(pad, ndim):
    """PyTorch's list (last dimension first) as `before` and `after` per dimension."""
    before, after = [0] * ndim, [0] * ndim
    for k in range(len(pad) // 2):
        before[ndim - 1 - k], after[ndim - 1 - k] = pad[2 * k], pad[2 * k + 1]
    return tuple(before), tuple(after)


def _check_length(pad, value):
    if len(pad) // 2 > value.ndim:
        raise RuntimeError("Padding length should be less than or equal to two times the input dimension but got padding length "
                           f"{len(pad)} and input of dimension {value.ndim}")


def constant_pad(value, pad, fill):
    """A Value with a margin of `fill`; negative numbers cut off."""
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    _check_length(pad, value)
    before, after = _pairs(pad, value.ndim)
    for d in range(value.ndim):
        n = value.shape[d] + before[d] + after[d]
        if n < 0 and -min(before[d], 0) > value.shape[d] or n < 0 and min(before[d], after[d]) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        if n < 0:
            raise RuntimeError(f"The input size {value.shape[d]}, plus negative padding {before[d]} and {after[d]} "
                               f"resulted in a negative output size, which is invalid. Check dimension {d} of your "
                               "input.")
    if min((*before, *after), default=0) < 0:
        value = prims.strided_slice(value, start=tuple([max(-b, 0) for b in before]),
                                    stop=tuple([n - max(-a, 0) for n, a in zip(value.shape, after)]),
                                    step=(1,) * value.ndim)
    if max((*before, *after), default=0) <= 0:
        return copied(value)
    return prims.pad(value, before=tuple([max(b, 0) for b in before]), after=tuple([max(a, 0) for a in after]),
                     value=fill)


@operator("constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor", forms="function", layout="channels")
def constant_pad_nd(self, pad, value=0):
    """A margin of one number. Source: PyTorch, torch.constant_pad_nd."""
    return constant_pad(self, pad, value)


def _margin_index(n, before, after, mode):
    """Which positions of a dimension of length `n` the padded one shows."""
    at = np.arange(-before, n + after)
    if mode == "reflect":
        at = np.abs(at)
        return np.where(at >= n, 2 * (n - 1) - at, at)
    if mode == "replicate":
        return np.clip(at, 0, n - 1)
    return at % n


def _check_margin(value, pad, mode):
    pairs = len(pad) // 2
    if mode == "reflect" or mode == "circular":
        for k in range(pairs):
            n, d = value.shape[value.ndim - 1 - k], value.ndim - 1 - k
            low, high = pad[2 * k], pad[2 * k + 1]
            if mode == "reflect" and (low >= n or high >= n):
                raise RuntimeError(f"Argument #{4 + 2 * k}: Padding size should be less than the corresponding input "
                                   f"dimension, but got: padding ({low}, {high}) at dimension {d} of input "
                                   f"{list(value.shape)}")
            if mode == "circular" and (low > n or high > n):
                raise RuntimeError("Padding value causes wrapping around more than once.")
            if mode == "circular" and low + high + n < 0:
                raise RuntimeError("Negative padding value is resulting in an empty dimension")
    for k in range(pairs):
        d = value.ndim - 1 - k
        out = value.shape[d] + pad[2 * k] + pad[2 * k + 1]
        if out < 1 and mode != "circular":
            raise RuntimeError(f"input (dim {d}: {value.shape[d]}) is too small. Calculated output size: {out}")


@composite("pad(Tensor self, int[] pad, str mode='constant', float? value=None) -> Tensor", forms="function",
           namespace="nn.functional")
def pad(self, pad, mode="constant", value=None):
    """A margin around the last dimensions: constant, reflect, replicate or circular. Source: PyTorch, F.pad."""
    if mode == "constant":
        return call("constant_pad_nd", self, pad, 0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    pairs = len(pad) // 2
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    _check_length(pad, self)
    if not (1 <= pairs <= 3 and self.ndim in (pairs + 1, pairs + 2)):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {self.ndim}D input tensor.\nSupported combinations for non-constant "
            "padding:\n  - 2D or 3D input: padding size = 2 (pads last dimension)\n  - 3D or 4D input: padding size = 4 (pads last 2 "
            "dimensions)\n  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)")
    if 0 in self._size[-pairs:] or 0 in self._size[1:] and mode != "circular":
        raise RuntimeError(f"Expected {pairs + 1}D or {pairs + 2}D (batch mode) tensor with possibly 0 batch size and "
                           f"other non-zero dimensions for input, but got: {list(self._size)}")
    value = _mirrored(self.value, pad, mode)
    if value.requires_grad:
        names = {"reflect": "Reflection", "replicate": "Replication"}
        value.node.operator = "CopySlices" if mode == "circular" else f"{names[mode]}Pad{pairs}DBackward0"
    innermost = (mode != "circular" and self.ndim == 4 and pairs == 2
                 and geometry.suggests_channels_last(self._size, self._stride))
    made = Tensor._make(value, self._dtype, geometry.channels_last_stride(value.shape) if innermost else None)
    if mode == "circular":  # PyTorch copies the middle and each margin in place
        made._history.version.count = 1 + sum(p > 0 for p in pad)
    return made


def _mirrored(value, pad, mode):
    """A Value whose last dimensions go on beyond their ends: mirrored, repeated or around."""
    _check_margin(value, pad, mode)
    if mode == "circular" and min(pad) < 0:  # what is cut off is not wrapped around
        value = constant_pad(value, tuple([min(p, 0) for p in pad]), 0)
        pad = tuple([max(p, 0) for p in pad])
    for k in range(len(pad) // 2):
        low, high = pad[2 * k], pad[2 * k + 1]
        if low or high:
            axis = value.ndim - 1 - k
            index = value_of(_margin_index(value.shape[axis], low, high, mode).astype(np.int64))
            value = prims.gather(value, index, axis=axis)
    return copied(value) if not any(pad) else value


# ------------------------------------------------------------------------------------------------ sliding blocks
def _positions(size, kernel, dilation, padding, stride):
    """How many blocks fit along each axis."""
    return tuple([(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p,
                  s in zip(size, kernel, dilation, padding, stride)])


def _windows(kernel, dilation, stride, counts):
    """For each place in the block the slices of the padded image that it sees."""
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            yield i, j, (slice(None), slice(None),
                         slice(i * dilation[0], i * dilation[0] + stride[0] * counts[0], stride[0]),
                         slice(j * dilation[1], j * dilation[1] + stride[1] * counts[1], stride[1]))


def _to_columns(a, *, size, kernel, dilation, padding, stride):
    n, c = a.shape[:2]
    counts = _positions(size, kernel, dilation, padding, stride)
    wide = np.pad(a, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2)) if any(padding) else a
    out = np.empty((n, c, *kernel, *counts), a.dtype)
    for i, j, window in _windows(kernel, dilation, stride, counts):
        out[:, :, i, j] = wide[window]
    return out.reshape(n, c * kernel[0] * kernel[1], counts[0] * counts[1])


def _from_columns(columns, *, size, kernel, dilation, padding, stride):
    n = columns.shape[0]
    counts = _positions(size, kernel, dilation, padding, stride)
    blocks = columns.reshape(n, columns.shape[1] // (kernel[0] * kernel[1]), *kernel, *counts)
    wide = np.zeros((n, blocks.shape[1], size[0] + 2 * padding[0], size[1] + 2 * padding[1]), columns.dtype)
    for i, j, window in _windows(kernel, dilation, stride, counts):
        wide[window] += blocks[:, :, i, j]
    return wide[:, :, padding[0]:padding[0] + size[0], padding[1]:padding[1] + size[1]].copy()


to_columns = prims.host_call("unfold", _to_columns, vjp=[lambda g, out, a, **block: from_columns(g, **block)],
                             uses_output=False)
from_columns = prims.host_call("fold", _from_columns, vjp=[lambda g, out, a, **block: to_columns(g, **block)],
                               uses_output=False)


def _check_block(**parts):
    for name, values in parts.items():
        least = 0 if name == "padding" else 1
        if min(values) < least:
            raise RuntimeError(f"{name} should be {'non-negative' if name == 'padding' else 'greater than zero'}, but "
                               f"got {name}_height: {values[0]} {name}_width: {values[1]}")


@operator("unfold(Tensor self, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] stride=1) -> Tensor",
          forms="function", namespace="nn.functional", grad_name="Im2ColBackward0")
def unfold(self, kernel_size, dilation, padding, stride):
    """The blocks of (N, C, H, W) as columns: (N, C·kernel, blocks). Source: PyTorch, F.unfold."""
    kernel, dilation, padding, stride = map(_two, (kernel_size, dilation, padding, stride))
    _check_block(kernel=kernel, dilation=dilation, padding=padding, stride=stride)
    if self.ndim not in (3, 4) or 0 in self.shape[-3:]:
        raise RuntimeError("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
                           f"dimensions for input, but got: {list(self.shape)}")
    size = self.shape[-2:]
    counts = _positions(size, kernel, dilation, padding, stride)
    if min(counts) < 1:
        raise RuntimeError(f"Given input with spatial size {size}, kernel_size={kernel}, dilation={dilation}, "
                           f"padding={padding}, calculated shape of the array of sliding blocks as {counts}, but its "
                           "components must be at least one.")
    value = self if self.ndim == 4 else prims.reshape(self, shape=(1, *self.shape))
    out = to_columns(value, size=size, kernel=kernel, dilation=dilation, padding=padding, stride=stride)
    return out if self.ndim == 4 else prims.reshape(out, shape=out.shape[1:])


@operator("fold(Tensor self, int[2] output_size, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] "
          "stride=1) -> Tensor",
          forms="function", namespace="nn.functional", grad_name="Col2ImBackward0")
def fold(self, output_size, kernel_size, dilation, padding, stride):
    """Columns (N, C·kernel, blocks) added up to images (N, C, H, W). Source: PyTorch, F.fold."""
    size, kernel, dilation, padding, stride = map(_two, (output_size, kernel_size, dilation, padding, stride))
    _check_block(kernel=kernel, dilation=dilation, padding=padding, stride=stride)
    if self.ndim not in (2, 3) or 0 in self.shape[-2:]:
        raise RuntimeError("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero "
                           f"dimensions for input, but got: {list(self.shape)}")
    channels, blocks = self.shape[-2:]
    area = kernel[0] * kernel[1]
    if channels % area:
        raise RuntimeError("Expected size of input's dimension 1 to be divisible by the product of kernel_size, but "
                           f"got input.size(1)={channels} and kernel_size={kernel}.")
    counts = _positions(size, kernel, dilation, padding, stride)
    if counts[0] * counts[1] != blocks or min(counts) < 1:
        raise RuntimeError(f"Given output_size={size}, kernel_size={kernel}, dilation={dilation}, padding={padding}, "
                           f"stride={stride}, expected size of input's dimension 2 to match the calculated number of "
                           f"sliding blocks {counts[0]} * {counts[1]} = {counts[0] * counts[1]}, but got "
                           f"input.size(2)={blocks}.")
    value = self if self.ndim == 3 else prims.reshape(self, shape=(1, *self.shape))
    out = from_columns(value, size=size, kernel=kernel, dilation=dilation, padding=padding, stride=stride)
    return out if self.ndim == 3 else prims.reshape(out, shape=out.shape[1:])


def _two(x):
    return (x, x) if isinstance(x, int) else tuple(x) if len(x) == 2 else (x[0], x[0])
