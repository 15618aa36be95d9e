"""Fused updates of optimizers on the host: in blocks that stay in the processor's cache, small parameters many at a time.

Called by the served optimizers through their seam: a function gives True when it has done the step, False where the case
(dtype, device, tensors as hyperparameters) is not its own. Arithmetic is PyTorch's, in its order, in the parameter's dtype.
Parameters and state get new arrays: what a graph or a user still holds is never overwritten.
"""

import math

import numpy as np

from msadapter_hook.tape import value_of

_BLOCK = 32768  # elements: eight arrays of them fit into 1 MiB [measured: faster than 8,192 and 65,536]
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_scratch = {}


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


def _temporaries(dtype, count):
    """Arrays of one block that every step may use."""
    found = _scratch.setdefault(dtype, [])
    while len(found) < count:
        found.append(np.empty(_BLOCK, dtype))
    return found


def _flat(tensor):
    return tensor.value.numpy.reshape(-1)


def _put(tensor, flat):
    tensor._write(value_of(flat.reshape(tensor._size)))


def _batches(params, keys):
    """Numbers of parameters that are updated together: the large ones alone, the small ones of one key up to a block at a time."""
    found, open_ones = [], {}
    for i, (p, key) in enumerate(zip(params, keys)):
        size = p._size.numel()
        if size >= _BLOCK:
            found.append([i])
            continue
        have = open_ones.get(key)
        if have is None or have[0] + size > _BLOCK:
            have = open_ones[key] = [0, []]
            found.append(have[1])
        have[0] += size
        have[1].append(i)
    return found


def _gather(tensors, batch, scratch):
    """The elements of a batch of tensors in one flat array."""
    if len(batch) == 1:
        return _flat(tensors[batch[0]])
    parts = [_flat(tensors[i]) for i in batch]
    return np.concatenate(parts, out=scratch[:sum([p.size for p in parts])])


def _scatter(tensors, batch, flat):
    """Give each tensor of a batch its part of a new flat array."""
    at = 0
    for i in batch:
        tensor = tensors[i]
        end = at + tensor._size.numel()
        _put(tensor, flat[at:end])
        at = end


def sgd_step(params, grads, buffers, *, weight_decay, momentum, lr, dampening, nesterov, maximize):
    """SGD with momentum, decay and Nesterov's form. Source: PyTorch, torch.optim.SGD."""
    if not _plain(weight_decay, momentum, lr, dampening) or not _fits(params, grads):
        return False
    if any(b is not None and (b._dtype is not p._dtype or b._size != p._size) for b, p in zip(buffers, params)):
        return False
    for batch in _batches(params, [(p._dtype.numpy, b is None) for p, b in zip(params, buffers)]):
        dtype, first = params[batch[0]]._dtype.numpy, buffers[batch[0]] is None
        t, u, *scratch = _temporaries(dtype, 5)
        kind = dtype.type
        decay, mu, rate, fresh = kind(weight_decay), kind(momentum), kind(lr), kind(1 - dampening)
        p, g = _gather(params, batch, scratch[0]), _gather(grads, batch, scratch[1])
        m = _gather(buffers, batch, scratch[2]) if momentum != 0 and not first else None
        out = np.empty_like(p)
        new = np.empty_like(p) if momentum != 0 else None
        for a in range(0, p.size, _BLOCK):
            b = min(a + _BLOCK, p.size)
            pa, ga, ta, ua = p[a:b], g[a:b], t[:b - a], u[:b - a]
            if maximize:
                ga = np.negative(ga, out=ua)
            if weight_decay != 0:
                np.multiply(pa, decay, out=ta)
                ga = np.add(ga, ta, out=ua)
            if momentum != 0:
                ma = new[a:b]
                if first:
                    ma[...] = ga
                else:
                    np.multiply(m[a:b], mu, out=ma)
                    if dampening == 0:
                        np.add(ma, ga, out=ma)
                    else:
                        np.add(ma, np.multiply(ga, fresh, out=ta), out=ma)
                if nesterov:
                    ga = np.add(ga, np.multiply(ma, mu, out=ta), out=ua)
                else:
                    ga = ma
            np.subtract(pa, np.multiply(ga, rate, out=ta), out=out[a:b])
        _scatter(params, batch, out)
        if momentum != 0:
            if first:
                _new_buffers(buffers, params, batch, new)
            else:
                _scatter(buffers, batch, new)
    return True


def _new_buffers(buffers, params, batch, flat):
    from msadapter_hook.tensor import from_array

    at = 0
    for i in batch:
        end = at + params[i]._size.numel()
        buffers[i] = from_array(flat[at:end].reshape(params[i]._size))
        at = end


def adam_step(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, *, amsgrad, beta1, beta2, lr, weight_decay, eps,
              maximize, decoupled_weight_decay=False):
    """Adam and AdamW, with AMSGrad. Source: PyTorch, torch.optim.Adam."""
    groups = [params, grads, exp_avgs, exp_avg_sqs] + ([max_exp_avg_sqs] if amsgrad else [])
    if not _plain(beta1, beta2, lr, weight_decay, eps) or not _fits(*groups):
        return False
    counts = []
    for step in steps:
        count = step.value.numpy + 1
        step._write(value_of(np.asarray(count, step._dtype.numpy)))
        counts.append(count.item())
    for batch in _batches(params, [(p._dtype.numpy, n) for p, n in zip(params, counts)]):
        n, dtype = counts[batch[0]], params[batch[0]]._dtype.numpy
        size, root = lr / (1 - beta1 ** n), math.sqrt(1 - beta2 ** n)
        t, u, *scratch = _temporaries(dtype, 7)
        kind = dtype.type
        p, g, m, v = (_gather(group, batch, s) for group, s in zip(groups[:4], scratch))
        top = _gather(max_exp_avg_sqs, batch, scratch[4]) if amsgrad else None
        out, m2, v2 = np.empty_like(p), np.empty_like(p), np.empty_like(p)
        top2 = np.empty_like(p) if amsgrad else None
        w1, b2, w2, over, small, by = map(kind, (1 - beta1, beta2, 1 - beta2, root, eps, size))
        for a in range(0, p.size, _BLOCK):
            b = min(a + _BLOCK, p.size)
            pa, ga, ma, va, ta, ua = p[a:b], g[a:b], m2[a:b], v2[a:b], t[:b - a], u[:b - a]
            if maximize:
                ga = np.negative(ga)
            if weight_decay != 0:
                if decoupled_weight_decay:
                    pa = np.multiply(pa, kind(1 - lr * weight_decay), out=out[a:b])
                else:
                    ga = ga + pa * kind(weight_decay)
            np.subtract(ga, m[a:b], out=ta)
            np.multiply(ta, w1, out=ta)
            np.add(m[a:b], ta, out=ma)
            np.multiply(ga, ga, out=ta)
            np.multiply(ta, w2, out=ta)
            np.multiply(v[a:b], b2, out=va)
            np.add(va, ta, out=va)
            second = va
            if amsgrad:
                second = np.maximum(top[a:b], va, out=top2[a:b])
            np.sqrt(second, out=ua)
            np.divide(ua, over, out=ua)
            np.add(ua, small, out=ua)
            np.divide(ma, ua, out=ta)
            np.multiply(ta, by, out=ta)
            np.subtract(pa, ta, out=out[a:b])
        _scatter(params, batch, out)
        _scatter(exp_avgs, batch, m2)
        _scatter(exp_avg_sqs, batch, v2)
        if amsgrad:
            _scatter(max_exp_avg_sqs, batch, top2)
    return True
