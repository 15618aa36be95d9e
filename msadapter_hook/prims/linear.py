"""Products of matrices."""

import math

import numpy as np

from msadapter_hook.backend import primitive
from msadapter_hook.tape import Primitive
from msadapter_hook.tape.primitive import PREFER_HOST

from .movement import reshape, sum_to, transpose
from .pointwise import conj_of
from .reduction import sum as reduce_sum

__all__ = ["affine", "affine_map", "bias_add", "matmul"]


def _matmul(a, b, *, transpose_b=False):
    if a.dtype.itemsize < 4 and a.dtype.kind in "fV":
        return _matmul(a.astype(np.float32), b.astype(np.float32), transpose_b=transpose_b).astype(a.dtype)
    return np.matmul(a, b.swapaxes(-1, -2) if transpose_b else b)


def _guard(a, b, *, transpose_b=False):
    if a.ndim < 2 or b.ndim < 2 or a.size == 0 or b.size == 0:
        return False
    return a.ndim == b.ndim and a.shape[:-2] == b.shape[:-2]


def _product(*, transpose_b=False):
    two, many = primitive("MatMul", False, transpose_b), primitive("BatchMatMul", False, transpose_b)
    return lambda a, b: (two if len(a.shape) == 2 else many)(a, b)


def _swap(v):
    return transpose(v, axes=tuple(range(v.ndim - 2)) + (v.ndim - 1, v.ndim - 2))


def _da(g, out, a, b, *, transpose_b=False):
    return sum_to(matmul(g, conj_of(b), transpose_b=not transpose_b), shape=a.shape)


def _db(g, out, a, b, *, transpose_b=False):
    if transpose_b:
        return sum_to(matmul(_swap(g), conj_of(a)), shape=b.shape)
    return sum_to(matmul(_swap(conj_of(a)), g), shape=b.shape)


matmul = Primitive(  # batches broadcast; both have at least two dimensions
    "matmul", host=_matmul, mindspore=_product, vjp=[_da, _db], uses_output=False, guard=_guard)



def bias_gradient(g, out, a, *rest, **attributes):
    """The cotangent of a bias along axis 1."""
    return reduce_sum(g, axes=tuple(i for i in range(g.ndim) if i != 1), keepdims=False)


_SMALL = 2048  # elements up to which Add, broadcasting, costs less than to leave MindSpore's fast way of calling for BiasAdd


def _mindspore_bias_add():
    plain, along = primitive("Add"), primitive("BiasAdd")
    return lambda a, b: (plain if a.size <= _SMALL and len(a.shape) == 2 else along)(a, b)


bias_add = Primitive(  # a bias along axis 1
    "bias_add", host=lambda a, b: a + b.reshape((1, -1) + (1,) * (a.ndim - 2)),
    mindspore=_mindspore_bias_add, vjp=[lambda g, out, a, b: g, bias_gradient],
    uses_output=False, guard=lambda a, b: a.size > 0 and a.ndim in (2, 4))


def _rows(v):
    return reshape(v, shape=(math.prod(v.shape[:-1]), v.shape[-1]))


def _affine(x, w, b=None):
    y = _matmul(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), w, transpose_b=True)
    return (y if b is None else y + b).reshape(x.shape[:-1] + w.shape[:1])


def _mindspore_affine():
    shape, product, add = primitive("Reshape"), primitive("MatMul", False, True), primitive("BiasAdd")

    def run(x, w, *b):
        y = product(shape(x, (-1, x.shape[-1])), w)
        return shape(add(y, *b) if b else y, (*x.shape[:-1], w.shape[0]))

    return run


affine_map = Primitive(  # x (…, I), w (O, I) and a bias (O,) or none: x @ w.T + b
    "affine_map", host=_affine, mindspore=_mindspore_affine, uses_output=False, guard=lambda x, w, *b: x.size > 0 and w.size > 0,
    vjp=[lambda g, out, x, w, *b: reshape(matmul(_rows(g), conj_of(w)), shape=x.shape),
         lambda g, out, x, w, *b: matmul(_swap(_rows(g)), conj_of(_rows(x))),
         lambda g, out, x, w, b: reduce_sum(_rows(g), axes=(0,), keepdims=False)])


def affine(x, w, b):
    """x @ w.T + b for x (…, I), w (O, I), b (O,) or None: one node where host kernels are preferred."""
    if PREFER_HOST and x.ndim > 1:
        return affine_map(x, w) if b is None else affine_map(x, w, b)
    made = matmul(x if x.ndim == 2 else _rows(x), w, transpose_b=True)
    if b is not None:
        made = bias_add(made, b)
    return made if x.ndim == 2 else reshape(made, shape=x.shape[:-1] + w.shape[:1])
