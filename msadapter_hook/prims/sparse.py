"""Products of a sparse matrix, given by the places and the values of its elements, and the gradient of each written with the
other."""

import numpy as np

from msadapter_hook.tape import value_of
from msadapter_hook.tape.recording import state
from msadapter_hook.tape.sparse import SparseValue

from .host import host_call
from .movement import add_along, index_add, take_along, zeros_like
from .pointwise import conj

__all__ = ["sampled_product", "sparse_gather", "sparse_lookup", "sparse_product"]

_LOW = ("float16", "bfloat16")
_BLOCK = 1 << 20  # numbers gathered at a time


def _conj(v):
    return conj(v) if v.dtype.kind == "c" else v


def _sparse_product(places, values, dense, *, rows):
    from scipy.sparse import csr_matrix

    dtype = dense.dtype
    if dtype.name in _LOW:
        values, dense = values.astype(np.float32), dense.astype(np.float32)
    if dtype.kind not in "fciu":
        out = np.zeros((rows, dense.shape[1]), dense.dtype)
        np.add.at(out, places[0], values[:, None] * dense[places[1]])
        return out.astype(dtype)
    matrix = csr_matrix((values, (places[0], places[1])), shape=(rows, dense.shape[0]))
    return np.ascontiguousarray(matrix @ dense).astype(dtype, copy=False)


def _sampled_product(places, a, b):
    out = np.empty(places.shape[1], a.dtype)
    step = max(1, _BLOCK // max(1, a.shape[1]))
    for at in range(0, out.size, step):
        row, column = places[:, at:at + step]
        out[at:at + step] = np.einsum("ij,ij->i", a[row], b[column])
    return out


def _turned(places):
    return value_of(np.ascontiguousarray(places.numpy[::-1]))


#: out[r] = sum of values[e] * dense[c] over the elements e at places (r, c): places (2, n) int64, values (n,), dense (k, m)
sparse_product = host_call(
    "sparse_product", _sparse_product, uses_output=False,
    vjp=[None,
         lambda g, out, places, values, dense, *, rows: sampled_product(places, g, _conj(dense)),
         lambda g, out, places, values, dense, *, rows: sparse_product(_turned(places), _conj(values), g, rows=dense.shape[0])])

#: out[e] = a[r] . b[c] for each place e = (r, c): a (p, m), b (q, m)
sampled_product = host_call(
    "sampled_product", _sampled_product, uses_output=False,
    vjp=[None,
         lambda g, out, places, a, b: sparse_product(places, g, _conj(b), rows=a.shape[0]),
         lambda g, out, places, a, b: sparse_product(_turned(places), g, _conj(a), rows=b.shape[0])])


# ------------------------------------------------------------------------------------------------ lookups with a sparse gradient
def _lookup_vjp(g, out, a, index, *, padding, scaled):
    if scaled:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    at = index.numpy.reshape(-1).astype(np.int64)
    if state.enabled:  # the gradient is itself recorded: a dense one
        if padding >= 0 and (at == padding).any():
            keep = np.flatnonzero(at != padding)
            rows = take_along(g.reshape(at.size, -1), value_of(np.repeat(keep[:, None], a.shape[1], 1)), axis=0)
            return index_add(zeros_like(a), value_of(at[keep]), rows, axis=0)
        return index_add(zeros_like(a), value_of(at), g.reshape(at.size, *a.shape[1:]), axis=0)
    rows = g.numpy.reshape(at.size, *a.shape[1:])
    if padding >= 0:
        keep = at != padding
        at, rows = at[keep], rows[keep]
    return SparseValue(a.shape, at[None], rows)


#: rows of a table at an integer index of any shape; the gradient is sparse, and the row `padding` gets none
sparse_lookup = host_call("sparse_lookup", lambda a, index, *, padding, scaled: np.take(a, index, 0), uses_output=False,
                          vjp=[_lookup_vjp, None])


def _gather_vjp(g, out, a, index, *, axis):
    if state.enabled:
        return add_along(zeros_like(a), index, g, axis=axis)
    at = np.indices(index.shape).reshape(index.ndim, -1)
    at[axis] = index.numpy.reshape(-1)
    return SparseValue(a.shape, at.astype(np.int64, copy=False), g.numpy.reshape(-1))


#: take_along with a sparse gradient
sparse_gather = host_call("sparse_gather", lambda a, index, *, axis: np.take_along_axis(a, index, axis), uses_output=False,
                          vjp=[_gather_vjp, None])
