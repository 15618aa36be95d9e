"""Normalization over the batch, the last dimensions, groups of channels, instances and neighbouring channels."""

import math

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import no_grad, value_of
from msadapter_hook.tensor import Size, from_value
from msadapter_hook.tensor.core import DTYPE_OF

from ._contract import shaped
from .promotion import dtype_of, floating, is_floating, promote, to
from .registry import composite, operator, plain
from .tables import call

NORM = {"namespace": "nn.functional", "forms": "function"}


# ------------------------------------------------------------------------------------------------ batch
def _constant_vector(n, number, dtype):
    return value_of(np.full(n, number, dtype))


def _wide(v):
    """Half precision computes in float32."""
    if v is not None and v.dtype.itemsize < 4:
        return prims.cast(v, dtype=np.dtype(np.float32))
    return v


def _affine(v, number, channels, like):
    return _constant_vector(channels, number, like.dtype) if v is None else to(v, dtype_of(like))


@operator("_batch_norm_train(Tensor input, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
          forms="function", saves="input weight", grad_name="NativeBatchNormBackward0", layout="channels")
def _batch_norm_train(input, weight, bias, eps):
    x = _wide(input)
    channels = x.shape[1]
    y, middle, spread = prims.batch_norm(x, _affine(weight, 1, channels, x), _affine(bias, 0, channels, x), eps=eps)
    return to(y, dtype_of(input)), middle.detach(), spread.detach()


def _per_channel(v, x):
    return shaped(v, (1, v.shape[0]) + (1,) * (x.ndim - 2))


def scaled_channels(x, scale, shift):
    """x * scale + shift, both (C,); either may be None."""
    if scale is not None:
        x = x * _per_channel(scale, x)
    return x if shift is None else prims.bias_add(x, shift)


@operator("_batch_norm_eval(Tensor input, Tensor running_mean, Tensor running_var, Tensor? weight, Tensor? bias, "
          "float eps) -> Tensor",
          forms="function", saves="input weight", grad_name="NativeBatchNormBackward0", layout="channels")
def _batch_norm_eval(input, running_mean, running_var, weight, bias, eps):
    x = _wide(input)
    mean, var = to(running_mean, dtype_of(x)), to(running_var, dtype_of(x))
    if prims.PREFER_HOST and x.dtype.kind == "f" and not (mean.requires_grad or var.requires_grad):
        channels = x.shape[1]
        made = prims.fixed_norm(x, _affine(weight, 1, channels, x), _affine(bias, 0, channels, x), mean, var, eps=eps)
        return to(made, dtype_of(input))
    scale = prims.rsqrt(var + eps)
    if weight is not None:
        scale = scale * to(weight, dtype_of(x))
    shift = prims.neg(mean * scale)
    if bias is not None:
        shift = shift + to(bias, dtype_of(x))
    return to(scaled_channels(x, scale, shift), dtype_of(input))


def _check_mixed(x, *parameters):
    """Parameters have the dtype of the input; to an input of two bytes they may be float32."""
    given = [p for p in parameters if p is not None]
    if all(p.dtype == x.dtype for p in given):
        return
    if any(dtype_of(p).scalar_name != "Float" for p in given):
        raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
    if dtype_of(x).scalar_name not in ("Half", "BFloat16"):
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def _check_channels(x, **named):
    channels = x.shape[1] if x.dim() > 1 else 0
    for name in ("running_mean", "running_var", "weight", "bias"):
        t = named.get(name)
        if t is not None and t.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {t.numel()}")


def _moved(kept, batch, *, momentum, factor):
    with np.errstate(all="ignore"):
        batch = (batch * np.float64(factor)).astype(kept.dtype)
    return kept * kept.dtype.type(1 - momentum) + batch * kept.dtype.type(momentum)


moved_statistic = prims.host_call("moved_statistic", _moved, differentiable=False, static=True)


def update_running(tensor, batch, momentum, factor=1.0):
    """Move a running statistic towards `factor` times the batch's (a Tensor), in place and outside of the tape; late
    where the batch's statistic is."""
    with no_grad():
        tensor._write(moved_statistic(tensor.value, batch.value, momentum=momentum, factor=factor))


@composite("batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, Tensor? "
           "bias=None, "
           "bool training=False, float momentum=0.1, float eps=1e-5) -> Tensor", **NORM)
def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """(N, C, …) normalized by channel with the batch's statistics (training) or the running ones.

    ValueError for one value per channel in training. Source: PyTorch, torch.nn.functional.batch_norm.
    """
    if training:
        count = math.prod(input.shape[:1] + input.shape[2:]) if input.dim() > 1 else 0
        if input.dim() > 1 and count == 1:
            raise ValueError("Expected more than 1 value per channel when training, got input size "
                             f"{Size(input.shape)}")
    return _batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)[0]


def _batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps):
    if not training:
        for name, t in (("running_mean", running_mean), ("running_var", running_var)):
            if t is None:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
    _check_channels(input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"\"batch_norm\" not implemented for '{input.dtype.scalar_name}'")
    if input.dim() < 2:  # nothing to normalize: one without channels has no elements
        return input.clone(), None, None
    _check_mixed(input.value, *[t.value for t in (weight, bias, running_mean, running_var) if t is not None])
    if not training:
        return call("_batch_norm_eval", input, running_mean, running_var, weight, bias, eps), None, None
    out, mean, var = call("_batch_norm_train", input, weight, bias, eps)
    if running_mean is not None and input.numel():
        count = input.numel() // input.shape[1]
        update_running(running_mean, mean, momentum)
        update_running(running_var, var, momentum, count / (count - 1) if count > 1 else float("nan"))
    return out, mean, var


@composite("batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
           "training, "
           "float momentum, float eps, bool cudnn_enabled) -> Tensor", forms="function")
def torch_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """As nn.functional.batch_norm, in the order of arguments of the core. Source: PyTorch, torch.batch_norm."""
    return _batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)[0]


def _native(input, weight, bias, running_mean, running_var, training, momentum, eps):
    out, mean, var = _batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if mean is None:
        empty = call("empty", 0, dtype=input.dtype)
        return out, empty, empty.clone()
    return out, mean, call("rsqrt", var + eps)


@composite("native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
           "bool training, "
           "float momentum, float eps) -> (Tensor, Tensor, Tensor)", forms="function out")
def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """Batch norm with the mean and inverse deviation that it used. Source: PyTorch, torch.native_batch_norm."""
    return _native(input, weight, bias, running_mean, running_var, training, momentum, eps)


@composite("_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
           "running_var, "
           "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)", forms="function out")
def native_batch_norm_legit(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """As native_batch_norm. Source: PyTorch, torch._native_batch_norm_legit."""
    return _native(input, weight, bias, running_mean, running_var, training, momentum, eps)


@composite("_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float "
           "momentum, float eps) "
           "-> (Tensor, Tensor, Tensor)", forms="function out")
def native_batch_norm_legit_no_stats(input, weight, bias, training, momentum, eps):
    """As native_batch_norm, without running statistics. Source: PyTorch, torch._native_batch_norm_legit."""
    return _native(input, weight, bias, None, None, training, momentum, eps)


@composite("_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
           "running_var, "
           "float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)", forms="function")
def batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps):
    """As native_batch_norm in training, with a reserved tensor. Source: PyTorch, torch._batch_norm_with_update."""
    made = _native(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*made, call("empty", 0, dtype=call_dtype("uint8")))


def call_dtype(name):
    return DTYPE_OF[np.dtype(name)]


# ------------------------------------------------------------------------------------------------ last dimensions
def _check_shape(x, shape, weight, bias, star):
    if not shape:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
                           "element, but got "
                           "normalized_shape = []")
    for name, v in (("weight", weight), ("bias", bias)):
        if v is not None and v.shape != shape:
            raise RuntimeError(f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                               f"{list(v.shape)} and "
                               f"normalized_shape = {list(shape)}")
    if x.shape[-len(shape):] != shape:
        inner = ", ".join(map(str, shape))
        raise RuntimeError(f"Given normalized_shape={list(shape)}, expected input with shape [*{star}{inner}], but "
                           "got input of size"
                           f"{list(x.shape)}")


def _layer_norm(input, shape, weight, bias, eps):
    _check_shape(input, shape, weight, bias, ", ")
    _check_mixed(input, weight, bias)
    if not is_floating(input):
        raise NotImplementedError(f"\"LayerNormKernelImpl\" not implemented for '{dtype_of(input).scalar_name}'")
    x = _wide(input)
    width = math.prod(shape)
    if prims.PREFER_HOST and len(shape) == 1 < x.ndim:
        rows = x
    else:
        rows = shaped(x, (x.size // max(width, 1) if width else math.prod(x.shape[:-len(shape)]), width))
    w = _affine(None if weight is None else shaped(weight, (width,)), 1, width, x)
    b = _affine(None if bias is None else shaped(bias, (width,)), 0, width, x)
    return rows, to(shaped(prims.row_norm(rows, w, b, eps=eps), input.shape), dtype_of(input))


@operator("layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
          "bool cudnn_enable=True) -> Tensor", saves="input weight", grad_name="NativeLayerNormBackward0", aliases=("layer_norm",),
          **NORM)
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    """Normalized over the last dimensions, of shape `normalized_shape`.

    Source: PyTorch, torch.nn.functional.layer_norm.
    """
    return _layer_norm(input, tuple(normalized_shape), weight, bias, eps)[1]


def _row_statistics(rows, eps):
    last = (rows.ndim - 1,)
    mean = prims.mean(rows, axes=last, keepdims=True)
    centred = rows - mean
    return mean, prims.rsqrt(prims.mean(prims.square(centred), axes=last, keepdims=True) + eps)


@operator("native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
          "(Tensor, Tensor, Tensor)", forms="function", saves="input weight")
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """Layer norm with the mean and inverse deviation that it used. Source: PyTorch, torch.native_layer_norm."""
    shape = tuple(normalized_shape)
    rows, out = _layer_norm(input, shape, weight, bias, eps)
    mean, inverse = (v.detach() for v in _row_statistics(rows, eps))  # only `out` carries a gradient
    kept = input.shape[:-len(shape)] + (1,) * len(shape)
    return out, shaped(mean, kept), shaped(inverse, kept)


@operator("rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor", saves="input weight",
          aliases=("rms_norm",), layout="self", **NORM)
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Divided by the root mean square over the last dimensions. Source: PyTorch, torch.nn.functional.rms_norm."""
    shape = tuple(normalized_shape)
    _check_shape(input, shape, weight, None, "")
    if input.dtype.kind in "iub":
        raise NotImplementedError(f"\"rms_norm\" not implemented for '{dtype_of(input).scalar_name}'")
    x = _wide(input)
    if eps is None:
        eps = float(np.finfo(x.dtype).eps)
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    made = x * prims.rsqrt(prims.mean(prims.square(x), axes=axes, keepdims=True) + eps)
    if weight is not None:
        made = prims.mul(*promote(made, weight))
    return to(made, dtype_of(input))


# ------------------------------------------------------------------------------------------------ groups and instances
def _group_rows(input, groups):
    x = _wide(input)
    n, c = x.shape[:2]
    return x, shaped(x, (n * groups, c // groups * math.prod(x.shape[2:])))


def _group_norm(input, groups, weight, bias, eps):
    x, rows = _group_rows(input, groups)
    width = rows.shape[1]
    if prims.PREFER_HOST and x.size:
        channels = x.shape[1]
        made = prims.group_norm(x, _affine(weight, 1, channels, x), _affine(bias, 0, channels, x), groups=groups, eps=eps)
        return rows, to(made, dtype_of(input))
    unit = prims.row_norm(rows, _constant_vector(width, 1, x.dtype), _constant_vector(width, 0, x.dtype), eps=eps)
    made = scaled_channels(shaped(unit, x.shape), None if weight is None else to(weight, dtype_of(x)),
                           None if bias is None else to(bias, dtype_of(x)))
    return rows, to(made, dtype_of(input))


def _check_groups(input, groups, weight, bias):
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    if groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {groups}")
    if input.shape[1] % groups:
        raise RuntimeError("Expected number of channels in input to be divisible by num_groups, but got input of shape "
                           f"{list(input.shape)} and num_groups={groups}")
    for name, v in (("weight", weight), ("bias", bias)):
        if v is not None and (v.ndim != 1 or v.shape[0] != input.shape[1]):
            raise RuntimeError(f"Expected {name} to be a vector of size equal to the number of channels in input, but "
                               f"got {name} of "
                               f"shape {list(v.shape)} and input of shape {list(input.shape)}")
    _check_mixed(input, weight, bias)
    if not is_floating(input):
        raise NotImplementedError(f"\"GroupNormKernelImpl\" not implemented for '{dtype_of(input).scalar_name}'")


@operator("group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-5) -> Tensor",
          saves="input weight", grad_name="NativeGroupNormBackward0", layout="channels", **NORM)
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """(N, C, …) normalized within groups of channels. Source: PyTorch, torch.nn.functional.group_norm."""
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    if num_groups > 0 and input.shape[0] * input.shape[1] // num_groups * math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(input.shape)}")
    _check_groups(input, num_groups, weight, bias)
    return _group_norm(input, num_groups, weight, bias, eps)[1]


@operator("group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-5, "
          "bool cudnn_enabled=True) -> Tensor", forms="function", saves="input weight",
          grad_name="NativeGroupNormBackward0", layout="channels")
def torch_group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    """As nn.functional.group_norm. Source: PyTorch, torch.group_norm."""
    _check_groups(input, num_groups, weight, bias)
    return _group_norm(input, num_groups, weight, bias, eps)[1]


@operator("native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) "
          "-> "
          "(Tensor, Tensor, Tensor)", forms="function", saves="input weight")
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """Group norm with the mean and inverse deviation that it used. Source: PyTorch, torch.native_group_norm."""
    _check_groups(input, group, weight, bias)
    rows, out = _group_norm(input, group, weight, bias, eps)
    mean, inverse = _row_statistics(rows, eps)
    return out, shaped(mean, (N, group)), shaped(inverse, (N, group))


@composite("instance_norm(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, Tensor? weight=None, "
           "Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, float eps=1e-5) -> Tensor", **NORM)
def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1,
                  eps=1e-5):
    """(N, C, …) normalized within each sample and channel. Source: PyTorch, torch.nn.functional.instance_norm."""
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {Size(input.shape)}")
    return _instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


@composite("instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
           "bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor", forms="function")
def torch_instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """As nn.functional.instance_norm, in the order of arguments of the core. Source: PyTorch, torch.instance_norm."""
    return _instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def _instance_statistics(x):
    flat = x.reshape(*x.shape[:2], math.prod(x.shape[2:])).astype(np.float64)
    return flat.mean(2).mean(0), flat.var(2, ddof=1).mean(0)


instance_statistics = prims.host_call("instance_statistics", _instance_statistics, differentiable=False, outputs=2, static=True)


def _instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps):
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
        return call("_batch_norm_eval", input, running_mean, running_var, weight, bias, eps)
    if running_mean is not None:
        with no_grad():
            mean, var = instance_statistics(input.value)
            update_running(running_mean, from_value(mean), momentum)
            update_running(running_var, from_value(var), momentum)
    return call("_instance_norm_input", input, weight, bias, eps)


@operator("_instance_norm_input(Tensor input, Tensor? weight, Tensor? bias, float eps) -> Tensor", forms="function",
          saves="input weight", grad_name="ViewBackward0")
def _instance_norm_input(input, weight, bias, eps):
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    if not is_floating(input):
        raise NotImplementedError(f"\"batch_norm\" not implemented for '{dtype_of(input).scalar_name}'")
    _check_mixed(input, weight, bias)
    return _group_norm(input, input.shape[1], weight, bias, eps)[1]


# ------------------------------------------------------------------------------------------------ neighbours
@operator("local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1.0) -> Tensor", layout="channels",
          **NORM)
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Divided by (k + alpha * mean square over `size` neighbouring channels) ** beta.

    Source: PyTorch, torch.nn.functional.local_response_norm.
    """
    if input.ndim < 3:
        raise ValueError("Expected 3D or higher dimensionality                          input (got "
                         f"{input.ndim} dimensions)")
    if input.size == 0:
        return input
    if size <= 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got kH: {size} kW: 1")
    n, c = input.shape[:2]
    power = shaped(prims.square(input), (n, 1, c, math.prod(input.shape[2:])))
    before, after = size // 2, (size - 1) // 2
    wide = prims.pad(power, before=(0, 0, before, 0), after=(0, 0, after, 0), value=0)
    mean = prims.avg_pool(wide, kernel=(size, 1), stride=(1, 1), padding=(0, 0), out=(c, power.shape[3]), count_padding=True,
                          divisor=0)
    scale = floating(shaped(mean, input.shape)) * alpha + k
    input = floating(input)
    return input / prims.pow(scale, value_of(np.asarray(beta, input.dtype)))


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """Divided by its p-norm along `dim`, at least eps. Source: PyTorch, torch.nn.functional.normalize."""
    size = call("linalg.vector_norm", input, p, dim, True).clamp_min(eps).expand_as(input)
    return call("div", input, size, out=out)


plain(normalize, name="nn.functional.normalize")
