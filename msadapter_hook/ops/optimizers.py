"""Fused updates of optimizers on the host: in blocks that stay in the processor's cache, small parameters many at a time.

Called by the served optimizers through their seam: a function gives True when it has done the step, False where the case
(dtype, device, tensors as hyperparameters) is not its own. Arithmetic is PyTorch's, in its order, in the parameter's dtype.
Parameters and state are overwritten where nothing else refers to their memory, and get new arrays where something does: what a
graph or a user still holds does not change.
"""

import math
import threading

import numpy as np

from msadapter_hook.prims.kernels import update as kernels
from msadapter_hook.tensor import from_array

from .flat_memory import Flat

_BLOCK = 65536  # numbers that NumPy computes at a time: eight arrays of them fit into 2 MiB
_LARGE, _MANY = 1 << 17, 1 << 20  # a parameter from this size on is updated by itself; smaller ones together, up to so many numbers
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_own = threading.local()


def _plain(*hyper):
    return all(type(h) in (int, float, bool) for h in hyper)


def _fits(*groups):
    """Every tensor real floating point, with the dtype and size of its parameter."""
    for tensors in zip(*groups):
        first = tensors[0]
        if first._dtype.numpy not in _FLOATS:
            return False
        for t in tensors:
            if t._compound or t._dispatches or t._history.value.abstract or t._dtype is not first._dtype or t._size != first._size:
                return False
    return True


def _temporaries(dtype):
    """Two arrays of one block that each step in this thread may use."""
    found = _own.__dict__.get(dtype)
    if found is None:
        found = _own.__dict__[dtype] = np.empty(_BLOCK, dtype), np.empty(_BLOCK, dtype)
    return found


def _batches(sizes, keys):
    """Numbers of parameters that are updated together: the large ones alone, the small ones of one key many at a time."""
    found, open_ones = [], {}
    for i, (size, key) in enumerate(zip(map(math.prod, sizes), keys)):
        if size >= _LARGE:
            found.append([i])
            continue
        have = open_ones.get(key)
        if have is None or have[0] + size > _MANY:
            have = open_ones[key] = [0, []]
            found.append(have[1])
        have[0] += size
        have[1].append(i)
    return found


def _sweep(params, keys, rule):
    """Update the parameters batch by batch, one key for each.

    `rule(first)` gives, for a batch that begins with that parameter, the lists of tensors to read, the places in it of those to
    write, and `update(reads, writes)` over flat arrays: element by element, since what is written may be what is read.
    """
    for batch in _batches([p._size for p in params], keys):
        reads, writes, update = rule(batch[0])
        found = [Flat([tensors[i] for i in batch]) for tensors in reads]
        written = [found[place] for place in writes]
        made = [flat.room() for flat in written]
        update([flat.array for flat in found], made)
        for flat, new in zip(written, made):
            flat.take(new)


def _in_blocks(compute, reads, writes):
    """`compute(reads, writes, t, u)` block by block; `t` and `u` are free to use."""
    t, u = _temporaries(reads[0].dtype)
    for a in range(0, reads[0].size, _BLOCK):
        block = slice(a, a + _BLOCK)
        of_block = [flat[block] for flat in writes]
        count = of_block[0].size
        compute([flat[block] for flat in reads], of_block, t[:count], u[:count])


def sgd_step(params, grads, buffers, *, weight_decay, momentum, lr, dampening, nesterov, maximize):
    """SGD with momentum, decay and Nesterov's form. Source: PyTorch, torch.optim.SGD."""
    if not _plain(weight_decay, momentum, lr, dampening) or not _fits(params, grads):
        return False
    if any(b is not None and (b._dtype is not p._dtype or b._size != p._size) for b, p in zip(buffers, params)):
        return False
    fresh = [b is None for b in buffers]
    for i, p in enumerate(params):
        if fresh[i] and momentum != 0:
            buffers[i] = from_array(np.empty(p._size, p._dtype.numpy))

    def rule(number):
        kind = params[number]._dtype.numpy.type
        decay, mu, rate, share = kind(weight_decay), kind(momentum), kind(lr), kind(1 - dampening)
        first = fresh[number]
        simple = momentum != 0 and not (first or weight_decay or dampening or nesterov or maximize)

        def update(reads, writes):
            if not (simple and kernels.momentum(*reads, *writes, mu=momentum, lr=lr)):
                _in_blocks(compute, reads, writes)

        def compute(reads, writes, t, u):
            p, g = reads[0], reads[1]
            if maximize:
                g = np.negative(g, out=u)
            if weight_decay != 0:
                g = np.add(g, np.multiply(p, decay, out=t), out=u)
            if momentum != 0:
                m = writes[1]
                if first:
                    m[...] = g
                else:
                    np.multiply(reads[2], mu, out=m)
                    np.add(m, g if dampening == 0 else np.multiply(g, share, out=t), out=m)
                g = np.add(g, np.multiply(m, mu, out=t), out=u) if nesterov else m
            np.subtract(p, np.multiply(g, rate, out=t), out=writes[0])

        if momentum == 0:
            return [params, grads], (0,), update
        return [params, grads, buffers], (0, 2), update

    _sweep(params, [(p._dtype.numpy, first) for p, first in zip(params, fresh)], rule)
    return True


def adam_step(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, *, amsgrad, beta1, beta2, lr, weight_decay, eps,
              maximize, decoupled_weight_decay=False):
    """Adam and AdamW, with AMSGrad. Source: PyTorch, torch.optim.Adam."""
    state = [exp_avgs, exp_avg_sqs] + ([max_exp_avg_sqs] if amsgrad else [])
    if not _plain(beta1, beta2, lr, weight_decay, eps) or not _fits(params, grads, *state) or len({s._dtype for s in steps}) > 1:
        return False
    counted = Flat(steps)
    counts = np.add(counted.array, 1, out=counted.room())
    counted.take(counts)
    counts = counts.tolist()

    def rule(number):
        n, kind = counts[number], params[number]._dtype.numpy.type
        size, root = lr / (1 - beta1 ** n), math.sqrt(1 - beta2 ** n)
        w1, b2, w2, over, small, by = map(kind, (1 - beta1, beta2, 1 - beta2, root, eps, size))
        simple = not (amsgrad or maximize or weight_decay and not decoupled_weight_decay)

        def update(reads, writes):
            if not (simple and kernels.adam(*reads, *writes, beta1=beta1, beta2=beta2, root=root, eps=eps, size=size,
                                            kept=1 - lr * weight_decay)):
                _in_blocks(compute, reads, writes)

        def compute(reads, writes, t, u):
            (p, g, m_old, v_old), (out, m, v) = reads[:4], writes[:3]
            if maximize:
                g = np.negative(g)
            if weight_decay != 0:
                if decoupled_weight_decay:
                    p = np.multiply(p, kind(1 - lr * weight_decay), out=out)
                else:
                    g = g + p * kind(weight_decay)
            np.subtract(g, m_old, out=t)
            np.multiply(t, w1, out=t)
            np.add(m_old, t, out=m)
            np.multiply(g, g, out=t)
            np.multiply(t, w2, out=t)
            np.multiply(v_old, b2, out=v)
            np.add(v, t, out=v)
            np.sqrt(np.maximum(reads[4], v, out=writes[3]) if amsgrad else v, out=u)
            np.divide(u, over, out=u)
            np.add(u, small, out=u)
            np.divide(m, u, out=t)
            np.multiply(t, by, out=t)
            np.subtract(p, t, out=out)

        return [params, grads, *state], (0, *range(2, 2 + len(state))), update

    _sweep(params, [(p._dtype.numpy, n) for p, n in zip(params, counts)], rule)
    return True
