"""Attention by products over the strided views that heads are; results lie in memory as (N, L, heads, D), as their users want them."""

from functools import partial

import numpy as np

from msadapter_hook.backend import threads
from msadapter_hook.tape.kernel import Kernel

from .. import movement, reduction
from ..attention import attention
from .activation import softmax_operation
from .layout import has_nan, spread_out
from .linear import FLOATS

_HALVES = 1 << 15  # weights from which on a second processor pays


def _heads_last(shape, dtype):
    """An empty array (N, heads, L, D) that lies in memory as (N, L, heads, D); of another rank as it comes."""
    if len(shape) != 4:
        return np.empty(shape, dtype)
    n, heads, length, width = shape
    return np.empty((n, length, heads, width), dtype).transpose(0, 2, 1, 3)


def _halves(stacks, elements):
    """The parts of the first axis that are computed side by side: two where there is much to do."""
    middle = stacks - stacks // 2
    return [slice(0, middle), slice(middle, stacks)] if stacks > 1 and elements >= _HALVES else [slice(0, stacks)]


def _part_of(mask, cut, ndim):
    return mask[cut] if mask is not None and mask.ndim == ndim and mask.shape[0] > 1 else mask


def _softmax_of(scores):
    return softmax_operation(scores.size // scores.shape[-1], scores.shape[-1]) if scores.dtype == np.float32 else None


def _attention(keep, q, k, v, mask=None, *, scale):
    weights = np.empty((*q.shape[:-1], k.shape[-2]), q.dtype)
    if not weights.size or not v.size or q.ndim < 3:
        return None
    y, plain = _heads_last((*q.shape[:-1], v.shape[-1]), q.dtype), []

    def part(cut):
        scores = weights[cut]
        np.matmul(q[cut], k[cut].swapaxes(-1, -2), out=scores)
        scores *= q.dtype.type(scale)
        if mask is not None:
            scores += _part_of(mask, cut, q.ndim)
        made = _softmax_of(scores)
        if made is None or has_nan(scores):
            scores[...] = reduction.softmax.host(scores, axis=-1)
            plain.append(cut)
        else:
            made.forward(scores, scores)
        np.matmul(scores, v[cut], out=y[cut])

    cuts = _halves(q.shape[0], weights.size)
    threads.each([partial(part, cut) for cut in cuts])
    return y, (cuts, not plain, weights)


def _attention_back(kept, grads, needs, q, k, v, mask=None, *, scale):
    cuts, by_library, weights = kept
    g = spread_out(grads[0])
    masked, scored = mask is not None and needs[3], needs[0] or needs[1] or mask is not None and needs[3]
    found = [_heads_last(a.shape, a.dtype) if need else None for a, need in zip((q, k, v), needs)]
    slopes = np.empty(weights.shape, weights.dtype) if scored else None

    def part(cut):
        w = weights[cut]
        if needs[2]:
            np.matmul(w.swapaxes(-1, -2), g[cut], out=found[2][cut])
        if not scored:
            return
        slope = np.matmul(g[cut], v[cut].swapaxes(-1, -2), out=slopes[cut])
        made = _softmax_of(w) if by_library else None
        if made is not None:
            made.backward(w, slope, slope)
        else:
            slope *= w
            slope -= w * np.add.reduce(slope, -1, keepdims=True)
        scaled = slope * q.dtype.type(scale) if masked else np.multiply(slope, q.dtype.type(scale), out=slope)
        if needs[0]:
            np.matmul(scaled, k[cut], out=found[0][cut])
        if needs[1]:
            np.matmul(scaled.swapaxes(-1, -2), q[cut], out=found[1][cut])

    threads.each([partial(part, cut) for cut in cuts])
    if mask is None:
        return found
    return [*found, np.array(movement.sum_to.host(slopes, shape=mask.shape)) if masked else None]


KERNELS = {
    attention: Kernel(_attention, _attention_back, dtypes=FLOATS),
}
