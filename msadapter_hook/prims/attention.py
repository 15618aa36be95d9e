"""Scaled dot product attention as one primitive, for host kernels; elsewhere operators compose it."""

import numpy as np

from msadapter_hook.backend import primitive
from msadapter_hook.tape import Primitive

from .linear import matmul
from .movement import sum_to, transpose
from .reduction import _softmax, _softmax_vjp, softmax

__all__ = ["attention"]


def _scores(q, k, mask, scale):
    scores = np.matmul(q, k.swapaxes(-1, -2))
    scores *= q.dtype.type(scale)
    if mask is not None:
        scores += mask
    return scores


def _attention(q, k, v, mask=None, *, scale):
    return np.matmul(_softmax(_scores(q, k, mask, scale), axis=-1), v)


def _swap(v):
    return transpose(v, axes=(*range(v.ndim - 2), v.ndim - 1, v.ndim - 2))


def _vjp(grads, outs, needs, q, k, v, mask=None, *, scale):
    scores = matmul(q, k, transpose_b=True) * scale
    weights = softmax(scores if mask is None else scores + mask, axis=q.ndim - 1)
    g = grads[0]
    slope = _softmax_vjp(matmul(g, v, transpose_b=True), weights, scores, axis=q.ndim - 1)
    scaled = slope * scale
    return [matmul(scaled, k), matmul(_swap(scaled), q), matmul(_swap(weights), g),
            None if mask is None else sum_to(slope, shape=mask.shape)][:len(needs)]


def _mindspore_attention(*, scale):
    left, right = primitive("BatchMatMul", False, True), primitive("BatchMatMul")
    mul, add, log, power = primitive("Mul"), primitive("Add"), primitive("LogSoftmax", -1), primitive("Exp")

    def run(q, k, v, *mask):
        scores = mul(left(q, k), scale)
        return right(power(log(add(scores, *mask) if mask else scores)), v)

    return run


# q (…, L, E), k (…, S, E), v (…, S, D) of one dtype and the same leading shape, and a mask to add that broadcasts to
# (…, L, S) or none: softmax(q @ k.T * scale + mask) @ v
attention = Primitive("attention", host=_attention, mindspore=_mindspore_attention, joint_vjp=_vjp, uses_output=False)
