"""Losses over differences, margins and distances, and connectionist temporal classification."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import value_of
from msadapter_hook.tensor import Size, Tensor
from msadapter_hook.tensor.geometry import broadcast_shapes

from ._contract import expanded, shaped
from .loss import LEGACY, LOSS, check_floating, chosen, not_variable, reduced, together, warn_sizes
from .promotion import dtype_of, floating, is_integral, promote
from .registry import composite, operator, plain
from .tables import call


def above(v, low=0):
    """max(v, low), NaN where v is; the gradient passes where v >= low, as PyTorch's clamp."""
    x = v.numpy
    return prims.where(value_of(x >= low), v, value_of(np.where(x != x, x, np.asarray(low, x.dtype))))


def filled(v, number):
    """A Value shaped and typed as `v`, all of it `number`."""
    return value_of(np.full(v.shape, number, v.dtype))


# ------------------------------------------------------------------------------------------------ differences
@operator(f"mse_loss(Tensor input, Tensor target, {LEGACY}, Tensor? weight=None) -> Tensor", saves="input target",
          grad_name="MseLossBackward0", **LOSS)
def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Squared difference. Source: PyTorch, torch.nn.functional.mse_loss."""
    warn_sizes(input, target)
    reduction = chosen(reduction, size_average, reduce)
    a, b = together(input, target)
    if is_integral(a):
        raise NotImplementedError(f"\"mse_cpu\" not implemented for '{dtype_of(a).scalar_name}'")
    if weight is not None:
        if weight.shape != input.shape:
            raise ValueError("Weights and input must have the same size.")
        made = prims.square(a - b) * weight
        if reduction == "mean":
            return reduced(made, "sum") / reduced(weight, "sum")
        return reduced(made, reduction)
    return reduced(prims.square(a - b), reduction)


@operator(f"l1_loss(Tensor input, Tensor target, {LEGACY}, Tensor? weight=None) -> Tensor", saves="input target", **LOSS)
def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Absolute difference. Source: PyTorch, torch.nn.functional.l1_loss."""
    warn_sizes(input, target)
    reduction = chosen(reduction, size_average, reduce)
    a, b = together(input, target)
    made = prims.absolute(a - b)
    if weight is not None:
        if weight.shape != input.shape:
            raise ValueError("Weights and input must have the same size.")
        made = made * weight
        if reduction == "mean":
            return reduced(made, "sum") / reduced(weight, "sum")
    return reduced(made, reduction)


@operator(f"smooth_l1_loss(Tensor input, Tensor target, {LEGACY}, float beta=1.0) -> Tensor", saves="input target",
          grad_name="SmoothL1LossBackward0", **LOSS)
def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """Squared below `beta`, absolute above. Source: PyTorch, torch.nn.functional.smooth_l1_loss."""
    warn_sizes(input, target)
    reduction = chosen(reduction, size_average, reduce)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    a, b = together(input, target)
    if beta == 0:
        return reduced(prims.absolute(a - b), reduction)
    check_floating(a, "smooth_l1_cpu")
    return reduced(prims.smooth_l1(a, b, beta=float(beta)), reduction)


@operator("huber_loss(Tensor input, Tensor target, str reduction='mean', float delta=1.0, Tensor? weight=None) -> "
          "Tensor",
          saves="input target", grad_name="HuberLossBackward0", **LOSS)
def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Half the square below `delta`, delta times the absolute above.

    Source: PyTorch, torch.nn.functional.huber_loss.
    """
    warn_sizes(input, target)
    reduction = chosen(reduction)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    a, b = together(input, target)
    check_floating(a, "huber_cpu")
    made = prims.smooth_l1(a, b, beta=float(delta))
    made = made * delta if delta != 1 else made
    if weight is not None:
        if weight.shape != input.shape:
            raise ValueError("Weights and input must have the same size.")
        made = made * weight
        if reduction == "mean":
            return reduced(made, "sum") / reduced(weight, "sum")
    return reduced(made, reduction)


@operator(f"soft_margin_loss(Tensor input, Tensor target, {LEGACY}) -> Tensor", saves="input target",
          grad_name="SoftMarginLossBackward0", **LOSS)
def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-target * input)). Source: PyTorch, torch.nn.functional.soft_margin_loss."""
    reduction = chosen(reduction, size_average, reduce)
    not_variable("soft_margin_loss", target=target)
    a, b = together(input, target)
    return reduced(prims.log1p(prims.exp(prims.neg(b * a))), reduction)


# ------------------------------------------------------------------------------------------------ margins
@operator(f"hinge_embedding_loss(Tensor input, Tensor target, float margin=1.0, {LEGACY}) -> Tensor", aliases=(), **LOSS)
def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """`input` where the target is 1, max(margin - input, 0) where it is -1.

    Source: PyTorch, torch.nn.functional.hinge_embedding_loss.
    """
    reduction = chosen(reduction, size_average, reduce)
    shape = broadcast_shapes(input.shape, target.shape)
    input = expanded(input, shape)
    t = np.broadcast_to(target.numpy, shape)
    zero = filled(input, 0)
    far = prims.where(value_of(t == 1), zero, above(margin - input))
    near = prims.where(value_of(t == -1), zero, input)
    return reduced(far + near, reduction)


@operator(f"margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, {LEGACY}) -> Tensor", **LOSS)
def margin_ranking_loss(input1, input2, target, margin=0.0, size_average=None, reduce=None, reduction="mean"):
    """max(0, -target * (input1 - input2) + margin). Source: PyTorch, torch.nn.functional.margin_ranking_loss."""
    reduction = chosen(reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
                           f"{Size(input1.shape)}, input2: {Size(input2.shape)}, target: {Size(target.shape)} ")
    broadcast_shapes(target.shape, broadcast_shapes(input1.shape, input2.shape))
    a, b, t = promote(input1, input2, target)
    made = above(floating(prims.neg(t) * (a - b)) + margin)
    return reduced(made, reduction)


@operator("multi_margin_loss(Tensor input, Tensor target, Scalar p=1, Scalar margin=1.0, Tensor? weight=None, "
          f"{LEGACY}) -> Tensor",
          saves="input", grad_name="MultiMarginLossBackward0", **LOSS)
def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Mean over classes of max(0, margin - x[target] + x[class]) ** p.

    Source: PyTorch, torch.nn.functional.multi_margin_loss.
    """
    reduction = chosen(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    single = input.ndim < 2
    x = shaped(input, (1, input.size)) if single else input
    if input.ndim > 2 or x.shape[1] == 0:
        raise RuntimeError("Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
                           f"{list(input.shape)}")
    n, classes = x.shape
    if target.ndim > 1 or target.size != n:
        raise RuntimeError("multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
                           "samples (batch "
                           f"size). Expected target size [{n}], but got {list(target.shape)}. Input has shape "
                           f"{list(input.shape)}.")
    check_floating(x, "multi_margin_loss")
    t = target.numpy.reshape(n)
    if t.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {dtype_of(target).scalar_name}")
    if ((t < 0) | (t >= classes)).any():
        raise RuntimeError("target out of range")
    own = prims.take_along(x, value_of(t[:, None]), axis=1)
    z = margin - own + x
    made = prims.where(value_of(z.numpy > 0), z, filled(z, 0))
    if p == 2:
        made = made * made
    scale = np.ones((n, classes), x.dtype)
    if weight is not None:
        scale *= weight.numpy[t][:, None]
    scale[np.arange(n), t] = 0
    made = prims.sum(made * value_of(scale), axes=(1,), keepdims=False) / classes
    if single and (reduction != "none" or target.ndim == 0):
        made = shaped(made, ())
        return made
    return reduced(made, reduction)


@operator(f"multilabel_margin_loss(Tensor input, Tensor target, {LEGACY}) -> Tensor", saves="input",
          grad_name="MultilabelMarginLossBackward0", **LOSS)
def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Sum over labels j (up to the first -1) and other classes i of max(0, 1 - (x[j] - x[i])), over the number of
    classes.

    Source: PyTorch, torch.nn.functional.multilabel_margin_loss.
    """
    reduction = chosen(reduction, size_average, reduce)
    if input.ndim > 2 or (input.ndim and input.shape[-1] == 0):
        raise RuntimeError("Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
                           f"{list(input.shape)}")
    if target.shape != input.shape and not (input.ndim < 2 and target.ndim < 2 and target.size == input.size):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    if target.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {dtype_of(target).scalar_name}")
    classes = input.shape[-1] if input.ndim else 1
    x = shaped(input, (input.size // classes, classes))
    t = target.numpy.reshape(x.shape)
    if t.size and (t.min() < -1 or t.max() >= classes):
        raise RuntimeError("argument #2 'target' is out of range")
    n = x.shape[0]
    valid = np.cumsum(t < 0, 1) == 0
    labels = np.where(valid, t, 0)
    mine = np.zeros((n, classes), bool)
    rows = np.broadcast_to(np.arange(n)[:, None], labels.shape)
    mine[rows[valid], labels[valid]] = True
    own = prims.take_along(x, value_of(labels), axis=1)
    z = 1 - shaped(own, (n, classes, 1)) + shaped(x, (n, 1, classes))
    counts = value_of((valid[:, :, None] & ~mine[:, None, :] & (z.numpy > 0)).astype(x.dtype))
    made = prims.sum(z * counts, axes=(1, 2), keepdims=False) / classes
    if input.ndim < 2:
        return shaped(made, ())
    return reduced(made, reduction)


@operator(f"multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, {LEGACY}) -> Tensor", **LOSS)
def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Mean over classes of the binary cross entropy of logits.

    Source: PyTorch, torch.nn.functional.multilabel_soft_margin_loss.
    """
    reduction = chosen(reduction, size_average, reduce)
    x, t = together(input, target)
    made = prims.sigmoid_cross_entropy(x, t)
    if weight is not None:
        made = made * weight
    made = prims.sum(made, axes=(made.ndim - 1,), keepdims=False) / input.shape[-1]
    return reduced(made, reduction)


# ------------------------------------------------------------------------------------------------ distances
@operator(f"cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, {LEGACY}) -> Tensor", **LOSS)
def cosine_embedding_loss(input1, input2, target, margin=0.0, size_average=None, reduce=None, reduction="mean"):
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1.

    Source: PyTorch, torch.nn.functional.cosine_embedding_loss.
    """
    reduction = chosen(reduction, size_average, reduce)
    dims = target.ndim
    if dims not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if dims == 1 and not (input1.ndim == input2.ndim == 2):
        raise RuntimeError("1D target tensor expects 2D input tensors, but found inputs with sizes "
                           f"{list(input1.shape)} and "
                           f"{list(input2.shape)}.")
    if dims == 0 and not (input1.ndim == input2.ndim == 1):
        raise RuntimeError("0D target tensor expects 1D input tensors, but found inputs with sizes "
                           f"{list(input1.shape)} and "
                           f"{list(input2.shape)}.")
    broadcast_shapes(input1.shape, input2.shape)
    a, b = promote(input1, input2)
    a, b = floating(a), floating(b)
    axes = (dims,)
    eps = 1e-12

    def total(v):
        return prims.sum(v, axes=axes, keepdims=False)

    cos = total(a * b) / prims.sqrt((total(a * a) + eps) * (total(b * b) + eps))
    broadcast_shapes(target.shape, cos.shape)
    t = np.broadcast_to(target.numpy, cos.shape)
    zero = filled(cos, 0)
    near = prims.where(value_of(t == 1), 1 - cos, zero)
    far = prims.where(value_of(t == -1), above(cos - margin), zero)
    return reduced(near + far, reduction)


@composite("triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float "
           "eps=1e-06, "
           f"bool swap=False, {LEGACY}) -> Tensor", **LOSS)
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None,
                        reduction="mean"):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin).

    Source: PyTorch, torch.nn.functional.triplet_margin_loss.
    """
    reduction = chosen(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the same number of "
                           "dimensions, but got: "
                           f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs")

    def distance(x, y):
        return call("nn.functional.pairwise_distance", x, y, p, eps)

    return _triplet(anchor, positive, negative, distance, margin, swap, reduction)


def _triplet(anchor, positive, negative, distance, margin, swap, reduction):
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = call("minimum", far, distance(positive, negative))
    return call("_hinge", near - far + margin, reduction)


@operator("_hinge(Tensor self, str reduction) -> Tensor", forms="function")
def _hinge(self, reduction):
    return reduced(above(floating(self)), reduction)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False,
                                      reduction="mean"):
    """As triplet_margin_loss, with a distance of the caller's: a function of two tensors.

    Source: PyTorch, torch.nn.functional.triplet_margin_with_distance_loss.
    """
    reduction = chosen(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the same number of "
                           "dimensions, but got: "
                           f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs")
    if distance_function is None:
        def distance_function(x, y):
            return call("nn.functional.pairwise_distance", x, y)

    return _triplet(anchor, positive, negative, distance_function, margin, swap, reduction)


plain(triplet_margin_with_distance_loss, name="nn.functional.triplet_margin_with_distance_loss")


# ------------------------------------------------------------------------------------------------ unaligned sequences
def _extended(targets, lengths, blank):
    """Labels with blanks between and around, padded: (N, 2L+1); and where a step may skip the blank before it."""
    n, longest = len(lengths), max([*lengths, 0])
    labels = np.full((n, 2 * longest + 1), blank, np.int64)
    at = 0
    for b, k in enumerate(lengths):
        row = targets[b, :k] if targets.ndim == 2 else targets[at:at + k]
        labels[b, 1:2 * k:2] = row
        at += k
    skip = np.zeros(labels.shape, bool)
    skip[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    return labels, skip


def _logsum(*parts):
    top = np.maximum.reduce(parts)
    safe = np.where(np.isneginf(top), 0, top)
    return np.where(np.isneginf(top), -np.inf, safe + np.log(sum(np.exp(p - safe) for p in parts)))


def _ctc_alpha(logs, labels, skip, input_lengths, target_lengths):
    """Forward log probabilities of every extended label at every step (T, N, S), and the loss of each sample."""
    steps, n, _ = logs.shape
    width = labels.shape[1]
    emitted = np.take_along_axis(logs, np.broadcast_to(labels[None], (steps, n, width)), 2).astype(np.float64)
    inside = np.arange(width)[None] < 2 * target_lengths[:, None] + 1
    emitted = np.where(inside[None], emitted, -np.inf)
    alpha = np.full((steps, n, width), -np.inf)
    if steps:
        alpha[0, :, :2] = emitted[0, :, :2]
    for t in range(1, steps):
        before = alpha[t - 1]
        one = np.full_like(before, -np.inf)
        one[:, 1:] = before[:, :-1]
        two = np.full_like(before, -np.inf)
        two[:, 2:] = before[:, :-2]
        alpha[t] = _logsum(before, one, np.where(skip, two, -np.inf)) + emitted[t]
    rows = np.arange(n)
    loss = np.empty(n)
    for b in rows:
        last, k = input_lengths[b] - 1, target_lengths[b]
        if last < 0:
            loss[b] = 0.0 if k == 0 else np.inf
            continue
        ends = [alpha[last, b, 2 * k]] + ([alpha[last, b, 2 * k - 1]] if k else [])
        loss[b] = -_logsum(*[np.asarray(e) for e in ends])
    return alpha, emitted, loss


def _ctc(logs, targets, *, input_lengths, target_lengths, blank, zero_infinity):
    labels, skip = _extended(targets, target_lengths, blank)
    loss = _ctc_alpha(logs, labels, skip, np.array(input_lengths), np.array(target_lengths))[2].astype(logs.dtype)
    return np.where(np.isinf(loss), np.zeros((), loss.dtype), loss) if zero_infinity else loss


def _ctc_gradient(g, logs, targets, *, input_lengths, target_lengths, blank, zero_infinity):
    labels, skip = _extended(targets, target_lengths, blank)
    inputs, lengths = np.array(input_lengths), np.array(target_lengths)
    alpha, emitted, loss = _ctc_alpha(logs, labels, skip, inputs, lengths)
    steps, n, classes = logs.shape
    width = labels.shape[1]
    beta = np.full((steps, n, width), -np.inf)
    columns = np.arange(width)[None]
    ends = (columns == 2 * lengths[:, None]) | (columns == 2 * lengths[:, None] - 1)
    for t in range(steps - 1, -1, -1):
        if t < steps - 1:
            after = beta[t + 1]
            one = np.full_like(after, -np.inf)
            one[:, :-1] = after[:, 1:]
            two = np.full_like(after, -np.inf)
            two[:, :-2] = np.where(skip[:, 2:], after[:, 2:], -np.inf)
            row = _logsum(after, one, two) + emitted[t]
        else:
            row = np.full((n, width), -np.inf)
        last = (inputs - 1 == t)[:, None]
        row = np.where(last, np.where(ends, emitted[t], -np.inf), np.where((inputs - 1 > t)[:, None], row, -np.inf))
        beta[t] = row
    joint = alpha + beta
    occupied = np.full((steps, n, classes), -np.inf)
    for s in range(width):
        rows = np.arange(n)
        c = labels[:, s]
        occupied[:, rows, c] = _logsum(occupied[:, rows, c], joint[:, :, s])
    wide = logs.astype(np.float64)
    with np.errstate(all="ignore"):
        out = (np.exp(wide) - np.exp(occupied + loss[None, :, None] - wide)) * g[None, :, None]
    out[np.arange(steps)[:, None] >= inputs[None, :]] = 0
    if zero_infinity:
        out[:, np.isinf(loss)] = 0
    return out.astype(logs.dtype)


_ctc_gradient_call = prims.host_call("ctc_loss_gradient", _ctc_gradient, differentiable=False)


def _ctc_vjp(g, out, logs, targets, **attributes):
    return _ctc_gradient_call(g, logs, targets, **attributes)


_ctc_call = prims.host_call("ctc_loss", _ctc, vjp=[_ctc_vjp, None], uses_output=False)


@operator("_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank, str "
          "reduction, "
          "bool zero_infinity) -> Tensor", forms="function", grad_name="CtcLossBackward0")
def _ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    single = log_probs.ndim == 2
    logs = shaped(log_probs, (log_probs.shape[0], 1, log_probs.shape[1])) if single else log_probs
    if logs.dtype.name not in ("float32", "float64"):
        raise NotImplementedError(f"\"ctc_loss_cpu\" not implemented for '{dtype_of(logs).scalar_name}'")
    steps, n, classes = logs.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if len(lengths) != n:
            raise RuntimeError(f"{name} must be of size batch_size")
        for k in lengths:
            if k < 0:
                raise RuntimeError(f"{name} must be non-negative" if name == "target_lengths" else
                                   f"Expected {name} to have value at least 0, but got value {k} (while checking "
                                   "arguments for "
                                   "ctc_loss_allocate_outputs)")
    for k in input_lengths:
        if k > steps:
            raise RuntimeError(f"Expected input_lengths to have value at most {steps}, but got value {k} (while "
                               "checking arguments "
                               "for ctc_loss_allocate_outputs)")
    t = targets.numpy.astype(np.int64, copy=False)
    if single and t.ndim == 1:
        t = t[None]
    if t.ndim == 1 and t.shape[0] != sum(target_lengths):
        raise RuntimeError(f"Expected tensor to have size {sum(target_lengths)} at dimension 0, but got size "
                           f"{t.shape[0]} for "
                           "argument #2 'targets' (while checking arguments for ctc_loss_allocate_outputs)")
    if t.ndim == 2 and (t.shape[0] != n or t.shape[1] < max([*target_lengths, 0])):
        raise RuntimeError(f"Expected tensor to have size at least {max(target_lengths)} at dimension 1, but got size "
                           f"{t.shape[1]} "
                           "for argument #2 'targets' (while checking arguments for ctc_loss_allocate_outputs)")
    made = _ctc_call(logs, value_of(t), input_lengths=tuple(input_lengths), target_lengths=tuple(target_lengths), blank=blank,
                     zero_infinity=zero_infinity)
    if reduction == "mean":
        made = made / value_of(np.maximum(np.array(target_lengths), 1).astype(made.dtype))
    if single and reduction == "none":
        return shaped(made, ())
    return reduced(made, reduction)


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """Connectionist temporal classification: log_probs (T, N, C) or (T, C), targets (N, S) or concatenated, lengths
    per sample.

    Source: PyTorch, torch.nn.functional.ctc_loss.
    """
    def numbers(x):
        if isinstance(x, Tensor):
            if x.dtype.is_floating_point:
                raise RuntimeError("input_lengths must be integral")
            return x.reshape(-1).tolist()
        return list(x)

    return call("_ctc_loss", log_probs, targets, numbers(input_lengths), numbers(target_lengths), int(blank), chosen(reduction),
                bool(zero_infinity))


plain(ctc_loss, name="nn.functional.ctc_loss")
