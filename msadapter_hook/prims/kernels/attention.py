"""Attention by products over the strided views that heads are; results lie in memory as (N, L, heads, D), as their users want them."""

import numpy as np

from msadapter_hook.tape.kernel import Kernel

from .. import movement, reduction
from ..attention import attention
from .activation import softmax_operation
from .layout import has_nan, spread_out
from .linear import FLOATS


def _heads_last(shape, dtype):
    """An empty array (N, heads, L, D) that lies in memory as (N, L, heads, D); of another rank as it comes."""
    if len(shape) != 4:
        return np.empty(shape, dtype)
    n, heads, length, width = shape
    return np.empty((n, length, heads, width), dtype).transpose(0, 2, 1, 3)


def _attention(keep, q, k, v, mask=None, *, scale):
    scores = np.matmul(q, k.swapaxes(-1, -2))
    if not scores.size or not v.size:
        return None
    scores *= q.dtype.type(scale)
    if mask is not None:
        scores += mask
    made = softmax_operation(scores.size // scores.shape[-1], scores.shape[-1]) if scores.dtype == np.float32 else None
    if made is None or has_nan(scores):
        made, scores = None, reduction.softmax.host(scores, axis=-1)
    else:
        made.forward(scores, scores)
    y = _heads_last((*q.shape[:-1], v.shape[-1]), q.dtype)
    np.matmul(scores, v, out=y)
    return y, (made, scores)


def _attention_back(kept, grads, needs, q, k, v, mask=None, *, scale):
    made, weights = kept
    g, found = spread_out(grads[0]), [None] * len(needs)
    if needs[2]:
        found[2] = np.matmul(weights.swapaxes(-1, -2), g, out=_heads_last(v.shape, v.dtype))
    if not (needs[0] or needs[1] or mask is not None and needs[3]):
        return found
    slope = np.matmul(g, v.swapaxes(-1, -2))
    if made is not None:
        made.backward(weights, slope, slope)
    else:
        slope *= weights
        slope -= weights * np.add.reduce(slope, -1, keepdims=True)
    if mask is not None and needs[3]:
        found[3] = np.array(movement.sum_to.host(slope, shape=mask.shape))  # a copy: `slope` is used on
    slope *= q.dtype.type(scale)
    if needs[0]:
        found[0] = np.matmul(slope, k, out=_heads_last(q.shape, q.dtype))
    if needs[1]:
        found[1] = np.matmul(slope.swapaxes(-1, -2), q, out=_heads_last(k.shape, k.dtype))
    return found


KERNELS = {
    attention: Kernel(_attention, _attention_back, dtypes=FLOATS),
}
