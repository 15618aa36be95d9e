"""segment_reduce: a dimension cut into pieces of given lengths, each reduced to one number."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import constant, value_of

from .promotion import dtype_of
from .registry import operator

_REDUCE = {"sum": np.add, "mean": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
_NAMES = {"amax": "max", "amin": "min"}
_START = {"sum": 0, "mean": 0, "prod": 1, "max": -np.inf, "min": np.inf}


def _owners(bounds, n):
    """For each position (rows, n) the segment it belongs to, -1 where none."""
    at = np.arange(n)
    found = np.full((len(bounds), n), -1, np.int64)
    for row, b in enumerate(bounds):
        inside = (at >= b[0]) & (at < b[-1])
        found[row, inside] = np.searchsorted(b, at[inside], "right") - 1
    return found


def _reduced(data, bounds, *, how, initial):
    wide = data.astype(np.float32) if data.dtype.itemsize < 4 else data
    rows, segments = len(bounds), bounds.shape[1] - 1
    out = np.full((rows, segments, data.shape[2]), _START[how] if initial is None else initial, wide.dtype)
    for row, b in enumerate(bounds):
        for k in range(segments):
            part = wide[row, b[k]:b[k + 1]]
            if len(part):
                out[row, k] = _REDUCE[how](out[row, k], _REDUCE[how].reduce(part, axis=0))
                if how == "mean":
                    out[row, k] /= len(part)
            elif how == "mean" and initial is None:
                out[row, k] = np.nan
    return out.astype(data.dtype)


def _reduced_vjp(grads, outs, needs, data, bounds, *, how, initial):
    if not needs[0]:
        return [None, None]
    g, out = grads[0], outs[0]
    owner = _owners(bounds.numpy, data.shape[1])
    covered = value_of(np.broadcast_to((owner >= 0)[..., None], data.shape).astype(data.dtype))
    index = value_of(np.ascontiguousarray(np.broadcast_to(np.maximum(owner, 0)[..., None], data.shape)))
    if how == "mean":
        lengths = np.maximum(np.diff(bounds.numpy, axis=1), 1)[..., None]
        g = g / value_of(np.broadcast_to(lengths, g.shape).astype(g.dtype))
    each = prims.take_along(g, index, axis=1) * covered
    if how in ("sum", "mean"):
        return [each, None]
    reached = prims.take_along(out, index, axis=1)
    if how == "prod":
        return [each * _others(data, out, index, reached, initial), None]
    zero = constant(0, data.dtype)
    chosen = prims.equal(data, reached).numpy | np.isnan(data.numpy) & np.isnan(reached.numpy)  # NaN is both ends
    hit = value_of(chosen.astype(data.dtype)) * covered
    shares = prims.add_along(prims.zeros_like(out), index, hit, axis=1)
    shares = prims.where(prims.equal(shares, zero), constant(1, data.dtype), shares)
    return [each * hit / prims.take_along(shares, index, axis=1), None]


def _others(data, out, index, reached, initial):
    """For each element the product of all others of its segment: by division, and for zero and NaN without it."""
    zero, one = constant(0, data.dtype), constant(1, data.dtype)
    array = data.numpy.astype(np.float32) if data.dtype.itemsize < 4 else data.numpy
    empty, unknown = array == 0, np.isnan(array)
    key = list(np.ogrid[tuple(map(slice, index.shape))])
    key[1] = index.numpy
    key = tuple(key)

    def of_segment(values, start, gather):
        made = np.full(out.shape, start, array.dtype)
        gather.at(made, key, values)
        return made[key]

    zeros, unknowns = of_segment(empty, 0, np.add), of_segment(unknown, 0, np.add)
    ordinary = of_segment(np.where(empty | unknown, 1, array), 1 if initial is None else initial, np.multiply)
    of_zero = np.where(unknowns > 0, np.nan, np.where(zeros > 1, 0, ordinary))
    of_unknown = np.where(unknowns > 1, np.nan, np.where(zeros > 0, 0, ordinary))
    lone = value_of(np.where(unknown, of_unknown, of_zero).astype(data.dtype))
    alone = value_of(empty | unknown)
    return prims.where(alone, lone, reached / prims.where(prims.equal(data, zero), one, data))


segment_reduced = prims.host_call("segment_reduce", _reduced, joint_vjp=_reduced_vjp)


@operator("segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, "
          "Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor", forms="function",
          aliases=("_segment_reduce",))
def segment_reduce(data, reduce, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    """Pieces of `lengths` (or between `offsets`) along `axis` reduced by sum, mean, prod, max or min.

    `lengths`: (*data.shape[:axis], segments), integers. Source: PyTorch, torch.segment_reduce.
    """
    how = _NAMES.get(reduce, reduce)
    if how not in _REDUCE:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if data.dtype.kind not in "fV":
        raise NotImplementedError(f'"_segment_reduce_cpu" not implemented for \'{dtype_of(data).scalar_name}\'')
    given = offsets if offsets is not None else lengths
    axis += data.ndim if axis < 0 else 0
    if given.dtype.name not in ("int32", "int64"):
        raise NotImplementedError(f'"_segment_reduce_lengths_cpu_kernel1" not implemented for '
                                  f"'{dtype_of(given).scalar_name}'")
    if axis != given.ndim - 1:
        raise RuntimeError("segment_reduce(): Expected axis to be the last dimension of offsets but got "
                           f"{axis}." if offsets is not None else
                           f"segment_reduce(): Expected axis to be the last dimension of lengths but got {axis}.")
    rows = int(np.prod(data.shape[:axis], dtype=np.int64))
    table = given.numpy.reshape(rows, given.shape[-1])
    if offsets is None:
        if not unsafe and table.size and table.min() < 0:
            raise RuntimeError("lengths contains negative value!")
        if not unsafe and (table.sum(1) != data.shape[axis]).any():
            raise RuntimeError("segment_reduce(): Expected all rows of lengths along axis to sum to "
                               "data.size(lengths.dim()-1) when !unsafe.")
        table = np.concatenate([np.zeros((rows, 1), table.dtype), np.cumsum(table, 1)], 1)
    flat = prims.reshape(data, shape=(rows, data.shape[axis], int(np.prod(data.shape[axis + 1:], dtype=np.int64))))
    out = segment_reduced(flat, value_of(table.astype(np.int64)), how=how,
                          initial=None if initial is None else float(initial))
    return prims.reshape(out, shape=data.shape[:axis] + (table.shape[1] - 1,) + data.shape[axis + 1:])
