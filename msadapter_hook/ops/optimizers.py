"""Fused updates of optimizers on the host: one pass over each parameter, in blocks that stay in the processor's cache.

Called by the served optimizers through their seam: a function gives True when it has done the step, False where the case
(dtype, device, tensors as hyperparameters) is not its own. Arithmetic is PyTorch's, in its order, in the parameter's dtype.
Parameters and state get new arrays: what a graph or a user still holds is never overwritten.
"""

import math

import numpy as np

from msadapter_hook.tape import value_of

_BLOCK = 65536
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
        for t in tensors[1:]:
            if t._compound or t._dtype is not first._dtype or t._size != first._size:
                return False
    return True


def _temporaries(dtype, count):
    found = _scratch.get(dtype)
    if found is None or len(found) < count:
        found = _scratch[dtype] = [np.empty(_BLOCK, dtype) for _ in range(count)]
    return found


def _flat(tensor):
    return tensor.value.numpy.reshape(-1)


def _put(tensor, flat):
    tensor._write(value_of(flat.reshape(tensor._size)))


def sgd_step(params, grads, buffers, *, weight_decay, momentum, lr, dampening, nesterov, maximize):
    """SGD with momentum, decay and Nesterov's form. Source: PyTorch, torch.optim.SGD."""
    if not _plain(weight_decay, momentum, lr, dampening) or not _fits(params, grads):
        return False
    if any(b is not None and (b._dtype is not p._dtype or b._size != p._size) for b, p in zip(buffers, params)):
        return False
    for i, (param, grad) in enumerate(zip(params, grads)):
        p, g = _flat(param), _flat(grad)
        kind = p.dtype.type
        decay, mu, rate, fresh = kind(weight_decay), kind(momentum), kind(lr), kind(1 - dampening)
        out = np.empty_like(p)
        old = buffers[i]
        first = momentum != 0 and old is None
        m = _flat(old) if old is not None and momentum != 0 else None
        new = np.empty_like(p) if momentum != 0 else None
        t, u = _temporaries(p.dtype, 2)[:2]
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
        _put(param, out)
        if first:
            from msadapter_hook.tensor import from_array

            buffers[i] = from_array(new.reshape(param._size))
        elif momentum != 0:
            _put(old, new)
    return True


def adam_step(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, *, amsgrad, beta1, beta2, lr, weight_decay, eps,
              maximize, decoupled_weight_decay=False):
    """Adam and AdamW, with AMSGrad. Source: PyTorch, torch.optim.Adam."""
    groups = [params, grads, exp_avgs, exp_avg_sqs] + ([max_exp_avg_sqs] if amsgrad else [])
    if not _plain(beta1, beta2, lr, weight_decay, eps) or not _fits(*groups):
        return False
    for i, (param, grad, avg, square, step) in enumerate(zip(params, grads, exp_avgs, exp_avg_sqs, steps)):
        count = step.value.numpy + 1
        step._write(value_of(np.asarray(count, step._dtype.numpy)))
        n = count.item()
        size, root = lr / (1 - beta1 ** n), math.sqrt(1 - beta2 ** n)
        p, g, m, v = _flat(param), _flat(grad), _flat(avg), _flat(square)
        kind = p.dtype.type
        top = _flat(max_exp_avg_sqs[i]) if amsgrad else None
        out, m2, v2 = np.empty_like(p), np.empty_like(p), np.empty_like(p)
        top2 = np.empty_like(p) if amsgrad else None
        t, u = _temporaries(p.dtype, 2)[:2]
        w1, b2, w2 = kind(1 - beta1), kind(beta2), kind(1 - beta2)
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
            np.divide(ua, kind(root), out=ua)
            np.add(ua, kind(eps), out=ua)
            np.divide(ma, ua, out=ta)
            np.multiply(ta, kind(size), out=ta)
            np.subtract(pa, ta, out=out[a:b])
        _put(param, out)
        _put(avg, m2)
        _put(square, v2)
        if amsgrad:
            _put(max_exp_avg_sqs[i], top2)
    return True
