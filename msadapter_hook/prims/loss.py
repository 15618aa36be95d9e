"""Loss kernels that are one primitive: fused cross entropy, binary cross entropy."""

import numpy as np

from msadapter_hook.backend import from_numpy, primitive
from msadapter_hook.tape import Primitive, Value, constant

from .pointwise import absolute, less, log, log1p, maximum, neg, sgn, sigmoid, sub, where
from .reduction import _log_softmax, softmax

__all__ = ["binary_cross_entropy", "sigmoid_cross_entropy", "smooth_l1", "sparse_cross_entropy"]


def one_hot(index, classes, dtype) -> Value:
    """Rows of the unit matrix at an integer vector."""
    made = np.zeros((index.shape[0], classes), dtype)
    made[np.arange(index.shape[0]), index.numpy] = 1
    return Value(made.shape, made.dtype, made)


def _sparse(a, target):
    picked = _log_softmax(a, axis=1)[np.arange(a.shape[0]), target]
    return np.asarray(-picked.mean(dtype=a.dtype), a.dtype)


def _sparse_vjp(g, out, a, target):
    return sub(softmax(a, axis=1), one_hot(target, a.shape[1], a.dtype)) * (g / a.shape[0])


sparse_cross_entropy = Primitive(  # mean of -log softmax of (N, C) at classes (N,), all of them in range
    "sparse_cross_entropy", host=_sparse, mindspore=lambda: primitive("SparseSoftmaxCrossEntropyWithLogits", False),
    vjp=[_sparse_vjp, None], uses_output=False)


def _bce(x, t):
    low = np.asarray(-100, x.dtype)
    made = (t - 1) * np.maximum(np.log1p(-x), low) - t * np.maximum(np.log(x), low)
    return made.astype(x.dtype, copy=False)  # zero-dim arrays and Python numbers make float64


def _bce_input(g, out, x, t):
    return g * ((x - t) / maximum(x * (1 - x), constant(1e-12, x.dtype)))


def _mindspore_bce():
    """MindSpore's kernel has the gradient, but adds 1e-12 to what it takes the logarithm of."""
    kernel, log_, low = primitive("BinaryCrossEntropy", "none"), primitive("Log"), primitive("Maximum")
    add, sub_, mul, stop = map(primitive, ("Add", "Sub", "Mul", "StopGradient"))
    one, least = (from_numpy(np.array(number, np.float32)) for number in (1, -100))

    def run(x, t):
        rough = kernel(x, t, None)
        exact = sub_(mul(sub_(t, one), low(log_(sub_(one, x)), least)), mul(t, low(log_(x), least)))
        return add(rough, stop(sub_(exact, rough)))

    return run


binary_cross_entropy = Primitive(  # elementwise; logarithms end at -100, their gradients at 1e12
    "binary_cross_entropy", host=_bce, uses_output=False, mindspore=_mindspore_bce,
    guard=lambda x, t: x.size > 0 and not t.requires_grad,
    vjp=[_bce_input, lambda g, out, x, t: g * (log1p(neg(x)) - log(x))])


def _sigmoid_cross_entropy(x, t):
    made = np.maximum(x, np.zeros((), x.dtype)) - x * t + np.log1p(np.exp(-np.abs(x)))
    return made.astype(x.dtype, copy=False)


sigmoid_cross_entropy = Primitive(  # -t log s(x) - (1 - t) log(1 - s(x)), without overflow
    "sigmoid_cross_entropy", host=_sigmoid_cross_entropy, uses_output=False,
    mindspore=lambda: primitive("SigmoidCrossEntropyWithLogits"),
    guard=lambda x, t: x.size > 0 and x.shape == t.shape and not t.requires_grad,
    vjp=[lambda g, out, x, t: g * (sigmoid(x) - t), lambda g, out, x, t: neg(g * x)])


def _smooth_l1(a, b, *, beta):
    size = np.abs(a - b)
    made = np.where(size < beta, size * size * a.dtype.type(0.5 / beta), size - a.dtype.type(0.5 * beta))
    return made.astype(a.dtype, copy=False)


def _smooth_l1_slope(g, a, b, beta):
    diff = a - b
    near = less(absolute(diff), constant(beta, a.dtype))
    return g * where(near, diff / beta, sgn(diff))


smooth_l1 = Primitive(  # elementwise: squared below beta, absolute above
    "smooth_l1", host=_smooth_l1, uses_output=False, mindspore=lambda *, beta: primitive("SmoothL1Loss", beta, "none"),
    guard=lambda a, b, *, beta: a.size > 0 and a.ndim > 0 and a.shape == b.shape,
    vjp=[lambda g, out, a, b, *, beta: _smooth_l1_slope(g, a, b, beta),
         lambda g, out, a, b, *, beta: neg(_smooth_l1_slope(g, a, b, beta))])
