"""Losses: the exponentials of cross entropy's forward pass serve the gradient, smooth L1 knows no branches."""

import numpy as np

from msadapter_hook.tape.kernel import Kernel

from .. import loss
from .linear import FLOATS, row_sums


def _cross_entropy(keep, a, target):
    n = a.shape[0]
    powers = a - np.maximum.reduce(a, 1, keepdims=True)
    at = np.arange(n), target
    picked = powers[at]
    np.exp(powers, out=powers)
    total = row_sums(powers)
    return np.asarray((np.log(total) - picked).mean(dtype=a.dtype), a.dtype), (powers, total, at)


def _cross_entropy_back(kept, grads, needs, a, target):
    powers, total, at = kept
    each = grads[0] / a.dtype.type(a.shape[0])
    d = powers * (each / total)[:, None]
    d[at] -= each
    return [d, None]


def _smooth_l1(keep, a, b, *, beta):
    """With m the distance, limited to beta: m (distance - m / 2) / beta is squared below and straight above."""
    if a.shape != b.shape or not a.ndim:
        return None
    beta = a.dtype.type(beta)
    difference = a - b
    size = np.abs(difference)
    near = np.minimum(size, beta)
    size -= near * a.dtype.type(0.5)
    size *= near
    if beta != 1:
        size /= beta
    return size, (difference,)


def _smooth_l1_back(kept, grads, needs, a, b, *, beta):
    slope = kept[0] / a.dtype.type(beta)
    np.minimum(np.maximum(slope, a.dtype.type(-1), out=slope), a.dtype.type(1), out=slope)
    slope *= grads[0]
    return [slope if needs[0] else None, np.negative(slope) if needs[1] else None]


#: to PyTorch's last bit (beta 1), so this serves without the switch, too
EXACT = {
    loss.smooth_l1: Kernel(_smooth_l1, _smooth_l1_back, dtypes=FLOATS),
}
KERNELS = {
    **EXACT,
    loss.sparse_cross_entropy: Kernel(_cross_entropy, _cross_entropy_back, dtypes=FLOATS),
}
