"""Losses over classes and probabilities: cross entropy, negative log likelihood, binary cross entropy, divergences."""

import warnings

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import Value, constant, grad_enabled, value_of
from msadapter_hook.tensor import Size
from msadapter_hook.tensor.geometry import broadcast_shapes

from ._contract import expanded, shaped
from .promotion import dtype_of, floating, is_floating, is_integral, promote, to
from .registry import operator

LEGACY = "bool? size_average=None, bool? reduce=None, str reduction='mean'"
LOSS = {"namespace": "nn.functional", "forms": "function"}


# ------------------------------------------------------------------------------------------------ reductions of losses
def chosen(reduction, size_average=None, reduce=None):
    """`reduction`, or what the two older arguments mean; ValueError for an unknown word."""
    if size_average is not None or reduce is not None:
        average, one = size_average is not False, reduce is not False
        reduction = "mean" if average and one else "sum" if one else "none"
        warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
                      stacklevel=7)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def not_variable(name, **arguments):
    """RuntimeError where an argument without a gradient of its own requires one."""
    for label, v in arguments.items():
        if v is not None and v.requires_grad and grad_enabled():
            raise RuntimeError(f"The function '{name}' is not differentiable with respect to argument '{label}'. This input cannot "
                               "have requires_grad True.")


def reduced(v, reduction):
    """`v`, its mean or its sum."""
    if reduction == "none":
        return v
    axes = tuple(range(v.ndim))
    if reduction == "sum":
        return prims.sum(v, axes=axes, keepdims=False)
    if is_integral(v):
        raise RuntimeError("mean(): could not infer output dtype. Input dtype must be either a floating point or "
                           "complex dtype. "
                           f"Got: {dtype_of(v).scalar_name}")
    return prims.mean(v, axes=axes, keepdims=False)


def warn_sizes(input, target):
    """PyTorch's warning where a loss broadcasts."""
    if input.shape != target.shape:
        warnings.warn(f"Using a target size ({Size(target.shape)}) that is different to the input size "
                      f"({Size(input.shape)}). This "
                      "will likely lead to incorrect results due to broadcasting. Please ensure they have the same "
                      "size.",
                      stacklevel=7)


def together(input, target):
    """Two Values of one dtype and shape; RuntimeError where the shapes do not broadcast."""
    a, b = promote(input, target)
    if a.shape != b.shape:
        shape = broadcast_shapes(a.shape, b.shape)
        a, b = expanded(a, shape), expanded(b, shape)
    return a, b


# ------------------------------------------------------------------------------------------------ classes
def _class_axis(v):
    return 0 if v.ndim == 1 else 1


def _safe_classes(target, classes, ignore_index):
    """Class indices with the ignored ones as 0, and the mask of those that count (None: all). IndexError out of
    range.
    """
    t = target.numpy
    keep = t != ignore_index
    every = bool(keep.all())
    if not every:
        t = np.where(keep, t, 0)
    if t.size:
        bad = (t < 0) | (t >= classes)
        if bad.any():
            raise IndexError(f"Target {int(t[bad].flat[0])} is out of bounds.")
    return t.astype(np.int64, copy=False), None if every else keep


def _weighted_sum(values, weights, reduction, dtype):
    """Losses by element, their sum, or their sum over the sum of weights; weights is an array or None."""
    if weights is not None:
        values = values * value_of(weights.astype(dtype))
    if reduction == "none":
        return values
    axes = tuple(range(values.ndim))
    if reduction == "sum":
        return prims.sum(values, axes=axes, keepdims=False)
    if weights is None:
        return prims.mean(values, axes=axes, keepdims=False)
    return prims.sum(values, axes=axes, keepdims=False) / value_of(np.asarray(weights.sum(), dtype))


def _picked_weights(t, keep, weight):
    """The weight of each target: of its class, 0 where it is ignored; None where all are 1."""
    if weight is None and keep is None:
        return None
    w = weight.numpy[t] if weight is not None else np.ones(t.shape, np.float64)
    return w if keep is None else np.where(keep, w, 0)


def nll_values(logs, target, weight, ignore_index, reduction):
    """Negative log likelihood of classes: logs (C), (N, C) or (N, C, d…), target without the class axis."""
    axis = _class_axis(logs)
    t, keep = _safe_classes(target, logs.shape[axis], ignore_index)
    index = value_of(np.expand_dims(t, axis))
    picked = prims.neg(shaped(prims.take_along(logs, index, axis=axis), t.shape))
    return _weighted_sum(picked, _picked_weights(t, keep, weight), reduction, logs.dtype)


def _check_classes(input, target, weight):
    if input.ndim == 1 and target.ndim == 1 and target.size != 1:
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.size}")
    if input.ndim == 0:
        raise ValueError(f"Expected 1 or more dimensions (got {input.ndim})")
    if input.ndim != 1 and target.ndim and input.shape[0] != target.shape[0]:
        raise ValueError(f"Expected input batch_size ({input.shape[0]}) to match target batch_size "
                         f"({target.shape[0]}).")
    classes = input.shape[_class_axis(input)]
    if weight is not None and (weight.ndim != 1 or weight.shape[0] != classes):
        raise RuntimeError(f"weight tensor should be defined either for all {classes} classes or no classes but got "
                           "weight tensor of "
                           f"shape: {list(weight.shape)}")
    if target.dtype.kind not in "iu" or target.dtype.name not in ("int64", "uint8"):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {dtype_of(target).scalar_name}")
    if weight is not None and weight.dtype != input.dtype:
        raise RuntimeError(f"expected scalar type {dtype_of(input).scalar_name} but found "
                           f"{dtype_of(weight).scalar_name}")


@operator("nll_loss(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, "
          "bool? reduce=None, str reduction='mean') -> Tensor", saves="input", grad_name="NllLossBackward0", **LOSS)
def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Negative log likelihood: input (N, C, …) of log-probabilities, target (N, …) of classes, int64 or uint8.

    IndexError for a class out of range. Source: PyTorch, torch.nn.functional.nll_loss.
    """
    reduction = chosen(reduction, size_average, reduce)
    _check_classes(input, target, weight)
    if input.ndim <= 2 and target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if not is_floating(input):
        raise NotImplementedError(f"\"nll_loss_out_frame\" not implemented for '{dtype_of(input).scalar_name}'")
    if input.ndim > 2 and target.shape != input.shape[:1] + input.shape[2:]:
        if input.ndim == 4:
            raise RuntimeError(f"size mismatch (got input: {list(input.shape)} , target: {list(target.shape)}")
        raise RuntimeError(f"Expected target size {list(input.shape[:1] + input.shape[2:])}, got {list(target.shape)}")
    not_variable("nll_loss", weight=weight)
    return nll_values(input, target, weight, ignore_index, reduction)


@operator("cross_entropy(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int "
          "ignore_index=-100, "
          "bool? reduce=None, str reduction='mean', float label_smoothing=0.0) -> Tensor", grad_name="NllLossBackward0", **LOSS)
def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                  label_smoothing=0.0):
    """Cross entropy of logits (N, C, …) with classes (N, …) or with probabilities (N, C, …).

    Source: PyTorch, torch.nn.functional.cross_entropy.
    """
    reduction = chosen(reduction, size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    axis = _class_axis(input)
    if input.ndim and not is_floating(input):
        if target.shape == input.shape and not is_floating(target):
            raise RuntimeError("Expected floating point type for target with class probabilities, got "
                               f"{dtype_of(target).scalar_name}")
        raise NotImplementedError("\"log_softmax_lastdim_kernel_impl\" not implemented for "
                                  f"'{dtype_of(input).scalar_name}'")
    if input.shape == target.shape and input.ndim:
        if not is_floating(target):
            raise RuntimeError("Expected floating point type for target with class probabilities, got "
                               f"{dtype_of(target).scalar_name}")
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing, axis)
    if input.ndim and input.ndim <= 2 and target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    _check_classes(input, target, weight)
    expected = input.shape[:1] + input.shape[2:] if input.ndim > 1 else ()
    if target.shape != expected and not (input.ndim == 1 and target.shape == (1,)):
        raise RuntimeError(f"Expected target size {list(expected)}, got {list(target.shape)}")
    if label_smoothing == 0.0:
        if (input.ndim == 2 and reduction == "mean" and weight is None and input.shape[0]
                and _safe_classes(target, input.shape[1], ignore_index)[1] is None):
            return prims.sparse_cross_entropy(input, target)
        return nll_values(prims.log_softmax(input, axis=axis), target, weight, ignore_index, reduction)
    return _smoothed(prims.log_softmax(input, axis=axis), target, weight, ignore_index, reduction, label_smoothing, axis)


def _smoothed(logs, target, weight, ignore_index, reduction, label_smoothing, axis):
    classes = logs.shape[axis]
    t, keep = _safe_classes(target, classes, ignore_index)
    hard = nll_values(logs, target, weight, ignore_index, reduction)
    spread = logs
    if weight is not None:
        shape = [1] * logs.ndim
        shape[axis] = classes
        spread = spread * shaped(weight, shape)
    smooth = prims.neg(prims.sum(spread, axes=(axis,), keepdims=False))
    if target.shape != smooth.shape:
        smooth = shaped(smooth, target.shape)
    if keep is not None:
        smooth = smooth * value_of(keep.astype(logs.dtype))
    if reduction != "none":
        smooth = prims.sum(smooth, axes=tuple(range(smooth.ndim)), keepdims=False)
    if reduction == "mean":
        weights = _picked_weights(t, keep, weight)
        total = t.size if weights is None else weights.sum()
        smooth = smooth / value_of(np.asarray(total, logs.dtype))
    return hard * (1 - label_smoothing) + smooth * (label_smoothing / classes)


def _soft_cross_entropy(input, target, weight, reduction, label_smoothing, axis):
    classes = input.shape[axis]
    if weight is not None and (weight.ndim != 1 or weight.shape[0] != classes):
        raise RuntimeError(f"cross_entropy: weight tensor should be defined either for all {classes} classes or no "
                           "classes but got "
                           f"weight tensor of shape: {list(weight.shape)}")
    logs = prims.log_softmax(input, axis=axis)
    if target.dtype != logs.dtype:
        logs, target = promote(logs, target)
    if label_smoothing > 0.0:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    made = logs * target
    if weight is not None:
        shape = [1] * input.ndim
        shape[axis] = classes
        made = made * shaped(weight, shape)
    if reduction == "none":
        return prims.neg(prims.sum(made, axes=(axis,), keepdims=False))
    total = prims.neg(prims.sum(made, axes=tuple(range(made.ndim)), keepdims=False))
    if reduction == "sum":
        return total
    return total / value_of(np.asarray(input.size / max(classes, 1), made.dtype))


# ------------------------------------------------------------------------------------------------ binary classes
def _is_probability(v):
    """Whether a value is known to lie between 0 and 1 by what made it, so that it need not be looked at (and computed) now."""
    node = v.node
    while node is not None and node.primitive.name in ("reshape", "transpose", "strided_slice", "copy"):
        node = node.inputs[0].node
    return node is not None and node.primitive.name in ("sigmoid", "softmax")


@operator(f"binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, {LEGACY}) -> Tensor", saves="input target",
          grad_name="BinaryCrossEntropyBackward0", **LOSS)
def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Cross entropy of probabilities in [0, 1] with targets of the same shape.

    RuntimeError for a probability out of range. Source: PyTorch, torch.nn.functional.binary_cross_entropy.
    """
    reduction = chosen(reduction, size_average, reduce)
    if input.shape != target.shape:
        raise ValueError(f"Using a target size ({Size(target.shape)}) that is different to the input size "
                         f"({Size(input.shape)}) is "
                         "deprecated. Please ensure they have the same size.")
    if input.dtype != target.dtype:
        raise RuntimeError(f"Found dtype {dtype_of(target).scalar_name} but expected {dtype_of(input).scalar_name}")
    not_variable("binary_cross_entropy", weight=weight)
    if not _is_probability(input):
        x = input.numpy
        if x.size and not bool(((x >= 0) & (x <= 1) | (x != x)).all()):
            raise RuntimeError("all elements of input should be between 0 and 1")
    made = prims.binary_cross_entropy(input, target)
    if weight is not None:
        made = made * to(weight, dtype_of(made))
    return reduced(made, reduction)


def _check_logits(input, target):
    """PyTorch computes in the memory of `1 - target`: what is no floating number has no place there."""
    if input.dtype.kind in "iubc":
        raise NotImplementedError(f"\"log_sigmoid_cpu\" not implemented for '{dtype_of(input).scalar_name}'")
    if target.dtype.kind == "b":
        raise RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator "
                           "instead.")
    if target.dtype.kind in "iu":
        raise RuntimeError(f"result type {dtype_of(input).scalar_name} can't be cast to the desired output type "
                           f"{dtype_of(target).scalar_name}")


@operator("binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, bool? "
          "size_average=None, "
          "bool? reduce=None, str reduction='mean', Tensor? pos_weight=None) -> Tensor", saves="input target",
          grad_name="BinaryCrossEntropyWithLogitsBackward0", **LOSS)
def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean",
                                     pos_weight=None):
    """Binary cross entropy of logits, computed without overflow.

    Source: PyTorch, torch.nn.functional.binary_cross_entropy_with_logits.
    """
    reduction = chosen(reduction, size_average, reduce)
    if input.shape != target.shape:
        raise ValueError(f"Target size ({Size(target.shape)}) must be the same as input size ({Size(input.shape)})")
    not_variable("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    _check_logits(input, target)
    x, t = promote(input, target)
    if pos_weight is None:
        made = prims.sigmoid_cross_entropy(x, t)
    else:
        below = prims.softplus(prims.neg(x))  # -log(sigmoid(x))
        made = (1 - t) * x + below * ((to(pos_weight, dtype_of(x)) - 1) * t + 1)
    if weight is not None:
        made = prims.mul(*promote(made, weight))
    return reduced(to(made, dtype_of(target)) if made.dtype != target.dtype and target.dtype.kind != "c" else made, reduction)


# ------------------------------------------------------------------------------------------------ divergences
def xlogy(x, y):
    """x * log(y), 0 where x is 0 (and y not NaN)."""
    return _xlogy(x, y)


def _masked_log(g, out, x, y):
    empty = value_of((x.numpy == 0) & (y.numpy <= 0))
    zero = constant(0, x.dtype)
    return prims.where(empty, zero, g * prims.log(y))


def _xlogy_host(x, y):
    return np.where(y != y, y, np.where(x == 0, np.zeros((), x.dtype), x * np.log(y))).astype(x.dtype)


_xlogy = prims.host_call("xlogy_same", _xlogy_host, vjp=[_masked_log, lambda g, out, x, y: g * x / y], uses_output=False)


@operator(f"kl_div(Tensor input, Tensor target, {LEGACY}, bool log_target=False) -> Tensor", **LOSS)
def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """Pointwise target * (log target - input); `batchmean` divides the sum by the batch size.

    Source: PyTorch, torch.nn.functional.kl_div.
    """
    batch = reduction == "batchmean"
    if batch and size_average is None and reduce is None:
        reduction = "sum"
    else:
        reduction = chosen(reduction, size_average, reduce)
        if reduction == "mean":
            warnings.warn("reduction: 'mean' divides the total loss by both the batch size and the support size."
                          "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
                          "'mean' will be changed to behave the same as 'batchmean' in the next major release.", stacklevel=6)
    for label, what in (("c", "Complex"), ("iub", "Integral")):
        if any(v.dtype.kind in label for v in (input, target)):
            raise RuntimeError(f"kl_div: {what} inputs not supported.")
    broadcast_shapes(target.shape, input.shape)
    x, t = promote(input, target)
    if log_target:
        made = prims.exp(t) * (t - x)
    else:
        made = xlogy(t, t) - t * x
    made = reduced(made, reduction)
    return made / input.shape[0] if batch and input.ndim else made


@operator("poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, bool full=False, bool? "
          "size_average=None, "
          "float eps=1e-8, bool? reduce=None, str reduction='mean') -> Tensor", **LOSS)
def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
    """Negative log likelihood of counts under a Poisson rate. Source: PyTorch, torch.nn.functional.poisson_nll_loss."""
    reduction = chosen(reduction, size_average, reduce)
    x, t = together(floating(input), floating(target))
    made = prims.exp(x) - t * x if log_input else x - t * prims.log(x + eps)
    if full:
        stirling = t * prims.log(t) - t + 0.5 * prims.log(2 * np.pi * t)
        made = made + prims.where(value_of(t.numpy <= 1), constant(0, t.dtype), stirling)
    return reduced(made, reduction)


@operator("gaussian_nll_loss(Tensor input, Tensor target, Operand var, bool full=False, float eps=1e-6, str "
          "reduction='mean') "
          "-> Tensor", **LOSS)
def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """Negative log likelihood under a normal distribution with variance `var`.

    Source: PyTorch, torch.nn.functional.gaussian_nll_loss.
    """
    if not isinstance(var, Value):
        var = value_of(np.full(input.shape, var, input.dtype))
    if (var.numpy < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = shaped(var, var.shape + (1,))
        elif not (input.ndim == var.ndim and sum(y for x, y in zip(input.shape, var.shape) if x != y) == 1):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    low = prims.maximum(var, constant(eps, var.dtype)).detach() if var.dtype.kind == "f" else var
    var = prims.graft(var, low) if var.requires_grad else low  # the clamp passes its gradient on unchanged
    if not input.shape == target.shape == var.shape:
        broadcast_shapes(input.shape, target.shape, var.shape)
    diff = input - target
    made = 0.5 * (prims.log(var) + diff * diff / var)
    if full:
        made = made + 0.5 * float(np.log(2 * np.pi))
    return reduced(made, reduction)


def check_floating(v, name):
    if not is_floating(v):
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype_of(v).scalar_name}'")
