"""Contraction of two Values over named axes: what einsum, tensordot, matmul and bilinear forms come down to."""

import math

from msadapter_hook import prims


def permuted(v, axes):
    """`v` with its axes in this order; `v` itself where nothing moves."""
    return v if tuple(axes) == tuple(range(v.ndim)) else prims.transpose(v, axes=tuple(axes))


def shaped(v, shape):
    """`v` in this shape; `v` itself where it has it."""
    return v if v.shape == tuple(shape) else prims.reshape(v, shape=tuple(shape))


def expanded(v, shape):
    """`v` broadcast to this shape."""
    return v if v.shape == tuple(shape) else prims.broadcast_to(v, shape=tuple(shape))


def product(a, b, transpose_b=False):
    """Matrix product over the last two axes; leading axes broadcast. Both have at least two dimensions."""
    lead_a, lead_b = a.shape[:-2], b.shape[:-2]
    if not lead_b and lead_a:  # many matrices times one: a single product
        rows = shaped(a, (math.prod(lead_a) * a.shape[-2], a.shape[-1]))
        out = prims.matmul(rows, b, transpose_b=transpose_b)
        return shaped(out, a.shape[:-1] + out.shape[-1:])
    if lead_a != lead_b:
        import numpy as np

        lead = np.broadcast_shapes(lead_a, lead_b)
        a, b = expanded(a, lead + a.shape[-2:]), expanded(b, lead + b.shape[-2:])
    return prims.matmul(a, b, transpose_b=transpose_b)


def contract(a, names_a, b, names_b, out):
    """The sum over all axes that are missing in `out` of the products of two Values whose axes carry these names.

    Names are hashable and differ within one operand; sizes of equal names agree or are 1. The axes of the result
    are named `out`.
    """
    a, names_a = _sum_private(a, names_a, names_b, out)
    b, names_b = _sum_private(b, names_b, names_a, out)
    sizes = {}
    for v, names in ((a, names_a), (b, names_b)):
        for n, s in zip(names, v.shape):
            sizes[n] = s if sizes.get(n, 1) == 1 else sizes[n]
    shared = [n for n in names_a if n in names_b]
    batch = [n for n in shared if n in out]
    summed = [n for n in shared if n not in out]
    a = expanded(a, [sizes[n] if n in shared else s for n, s in zip(names_a, a.shape)])
    b = expanded(b, [sizes[n] if n in shared else s for n, s in zip(names_b, b.shape)])
    free_a = [n for n in names_a if n not in shared]
    free_b = [n for n in names_b if n not in shared]
    batch.sort(key=out.index)

    def volume(names):
        return math.prod(sizes[n] for n in names)

    if not summed and (not free_a or not free_b):  # a product element by element
        order = batch + free_a + free_b
        left = shaped(permuted(a, [names_a.index(n) for n in batch + free_a]),
                      [sizes[n] for n in batch + free_a] + [1] * len(free_b))
        right = shaped(permuted(b, [names_b.index(n) for n in batch + free_b]),
                       [sizes[n] for n in batch] + [1] * len(free_a) + [sizes[n] for n in free_b])
        result = left * right
        return permuted(result, [order.index(n) for n in out])
    lead = [volume(batch)] if batch else []
    left = shaped(permuted(a, [names_a.index(n) for n in batch + free_a + summed]), lead + [volume(free_a), volume(summed)])
    plain = [names_b.index(n) for n in batch + summed + free_b]
    if plain == list(range(b.ndim)):
        result = prims.matmul(left, shaped(b, lead + [volume(summed), volume(free_b)]))
    else:
        right = shaped(permuted(b, [names_b.index(n) for n in batch + free_b + summed]), lead + [volume(free_b), volume(summed)])
        result = prims.matmul(left, right, transpose_b=True)
    order = batch + free_a + free_b
    result = shaped(result, [sizes[n] for n in order])
    return permuted(result, [order.index(n) for n in out])


def _sum_private(v, names, others, out):
    """Sum over the axes that occur neither in the other operand nor in the result."""
    axes = tuple([i for i, n in enumerate(names) if n not in others and n not in out])
    if not axes:
        return v, list(names)
    return prims.sum(v, axes=axes, keepdims=False), [n for i, n in enumerate(names) if i not in axes]


tied = prims.host_call(  # the first Value; the second takes part in the graph with a gradient of zero
    "tied", lambda a, b: a, vjp=[lambda g, out, a, b: g, lambda g, out, a, b: prims.zeros_like(b)], uses_output=False)
