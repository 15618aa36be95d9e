"""Primitives that move elements: reshape, transpose, slice, broadcast, concatenate, gather and scatter."""

import numpy as np

from msadapter_hook.backend import moving, primitive
from msadapter_hook.tape import Primitive, value_of
from msadapter_hook.tape.primitive import FLOATS

__all__ = ["as_strided", "as_strided_scatter", "broadcast_to", "cast", "concat", "copy", "flip", "gather", "graft",
           "index_get", "origin", "renewed",
           "beside", "index_put", "index_add", "overwrite", "pad", "reshape", "slice_scatter", "split", "stack",
           "strided_slice", "sum_to", "take_along",
           "put_along", "add_along", "masked_fill", "transpose", "zeros_like"]


# ------------------------------------------------------------------------------------------------ shape
reshape = Primitive(
    "reshape",
    host=lambda a, *, shape: a.reshape(shape),
    mindspore=lambda *, shape: _with(primitive("Reshape"), shape),
    vjp=[lambda g, out, a, *, shape: reshape(g, shape=a.shape)], uses_output=False, dtypes=FLOATS,
    guard=lambda a, *, shape: a.size > 0,
)
transpose = Primitive(
    "transpose",
    host=lambda a, *, axes: a.transpose(axes),
    mindspore=lambda *, axes: moving(
        _with(primitive("Transpose"), axes), lambda a: a.transpose(axes), lambda shapes, g: g.transpose(_inverse(axes))),
    vjp=[lambda g, out, a, *, axes: transpose(g, axes=_inverse(axes))], uses_output=False, dtypes=FLOATS,
    guard=lambda a, *, axes: a.size > 0 and a.ndim > 0,
)
broadcast_to = Primitive(
    "broadcast_to",
    host=lambda a, *, shape: np.broadcast_to(a, shape),
    mindspore=lambda *, shape: primitive("BroadcastTo", shape),
    vjp=[lambda g, out, a, *, shape: sum_to(g, shape=a.shape)], uses_output=False, dtypes=FLOATS,
    guard=lambda a, *, shape: a.size > 0 and 0 not in shape and len(shape) > 0,
)


def _sum_to(a, *, shape):
    lead = a.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(i + lead for i, s in enumerate(shape) if s == 1 and a.shape[i + lead] != 1)
    if not axes:
        return a
    return np.add.reduce(a, axis=axes, keepdims=True, dtype=a.dtype).reshape(shape)


sum_to = Primitive(  # the transpose of broadcasting
    "sum_to", host=_sum_to,
    vjp=[lambda g, out, a, *,
         shape: broadcast_to(reshape(g, shape=(1,) * (a.ndim - len(shape)) + shape), shape=a.shape)],
    uses_output=False,
)


def _slice(a, *, start, stop, step):
    return a[tuple(map(slice, start, stop, step))]


strided_slice = Primitive(
    "strided_slice", host=_slice,
    mindspore=lambda *, start, stop, step: _with(primitive("StridedSlice"), start, stop, step),
    vjp=[lambda g, out, a, *, start, stop, step: slice_scatter(zeros_like(a), g, start=start, stop=stop, step=step)],
    uses_output=False, dtypes=FLOATS,
    guard=lambda a, *, start, stop, step: _slice_guard(a.shape, start, stop, step),
)


def _slice_guard(shape, start, stop, step):
    """MindSpore's gradient fails where the last axis is whole and an axis before it has a step."""
    if not 0 < len(shape) <= 8 or min(step) < 1 or not all(b > s for s, b in zip(start, stop)):
        return False
    return max(step) == 1 or start[-1] != 0 or stop[-1] != shape[-1] or max(step[:-1], default=1) == 1


def _slice_scatter(base, new, *, start, stop, step):
    out = base.copy()
    out[tuple(map(slice, start, stop, step))] = new
    return out


slice_scatter = Primitive(  # base with a window replaced by `new`
    "slice_scatter", host=_slice_scatter,
    vjp=[lambda g, out, base, new, **window: slice_scatter(g, zeros_like(new), **window),
         lambda g, out, base, new, **window: strided_slice(g, **window)],
    uses_output=False,
)


def zeros_like(a):
    """Zeros with the shape and dtype of a Value, whose data are not read."""
    if a.abstract:
        return a.filled(0)
    return value_of(np.zeros(a.shape, a.dtype))


flip = Primitive("flip", host=lambda a, *, axes: np.flip(a, axes), vjp=[lambda g, out, a, *, axes: flip(g, axes=axes)],
                 uses_output=False)


def _as_strided(a, *, size, stride, offset):
    flat = np.ascontiguousarray(a).reshape(-1)
    item = flat.itemsize
    return np.lib.stride_tricks.as_strided(flat[offset:], size, [s * item for s in stride]).copy()


def strided_indices(size, stride, offset):
    """Flat positions that a strided window over a flat array reads; shape `size`, int64."""
    at = np.full(size, offset, np.int64)
    for d, (n, s) in enumerate(zip(size, stride)):
        at += (np.arange(n, dtype=np.int64) * s).reshape((n,) + (1,) * (len(size) - d - 1))
    return at


def _as_strided_scatter(base, new, *, size, stride, offset):
    flat = base.reshape(-1).copy()
    flat[strided_indices(size, stride, offset)] = new
    return flat.reshape(base.shape)


def _as_strided_add(new, *, shape, size, stride, offset):
    flat = np.zeros(int(np.prod(shape, dtype=np.int64)), new.dtype)
    np.add.at(flat, strided_indices(size, stride, offset), new)
    return flat.reshape(shape)


as_strided = Primitive(
    "as_strided", host=_as_strided,
    vjp=[lambda g, out, a, **window: as_strided_add(g, shape=a.shape, **window)], uses_output=False,
)
as_strided_add = Primitive(  # the transpose of as_strided: windows that overlap add up
    "as_strided_add", host=_as_strided_add,
    vjp=[lambda g, out, new, *, shape, **window: as_strided(g, **window)], uses_output=False,
)
as_strided_scatter = Primitive(
    "as_strided_scatter", host=_as_strided_scatter,
    vjp=[lambda g, out, base, new, **window: as_strided_scatter(g, zeros_like(new), **window),
         lambda g, out, base, new, **window: as_strided(g, **window)],
    uses_output=False,
)


def _cast(a, *, dtype):
    if a.dtype.kind == "c" and dtype.kind != "c":
        a = a.real
    return a.astype(dtype)


def _cast_vjp(g, out, a, *, dtype):
    return cast(g, dtype=a.dtype)


# NumPy's cast costs less than 10 µs, MindSpore's Cast 700 to 1,000 µs whatever the size.
cast = Primitive("cast", host=_cast, vjp=[_cast_vjp], uses_output=False)

copy = Primitive(  # memory of its own
    "copy", host=lambda a: a.copy(), mindspore=lambda: primitive("Identity"), vjp=[lambda g, out, a: g],
    uses_output=False,
    dtypes=FLOATS, guard=lambda a: a.size > 0,
)

# New data under the history of an old value: what a write without recording leaves behind.
graft = Primitive("graft", host=lambda old, data: data, vjp=[lambda g, out, old, data: g, None], uses_output=False)

# The same where the tensor stays what it was to autograd: its gradients and hooks are those of the old value (see `origin`).
renewed = Primitive("graft", host=lambda old, data: data, vjp=[lambda g, out, old, data: g, None], uses_output=False)


def origin(value):
    """The Value that stands for `value` in the graph: the one before its data were replaced without recording."""
    while value.node is not None and value.node.primitive is renewed:
        value = value.node.inputs[0]
    return value


# `kept` itself; what stands beside it has no part in the result, so its gradient is zero, not absent.
beside = Primitive("beside", host=lambda kept, *others: kept.copy(), uses_output=False,
                   joint_vjp=lambda grads, outs, needs, kept, *others: [grads[0] if needs[0] else None] + [
                       zeros_like(v) if need else None for v, need in zip(others, needs[1:])])

# A write that leaves nothing of the old value: its gradient is zero, not absent.
overwrite = Primitive("overwrite", host=lambda old, new: new,
                      vjp=[lambda g, out, old, new: zeros_like(old), lambda g, out, old, new: g], uses_output=False)


# ------------------------------------------------------------------------------------------------ joining and splitting
def _concat_vjp(grads, outs, needs, *inputs, axis):
    g, at, result = grads[0], 0, []
    for v, need in zip(inputs, needs):
        n = v.shape[axis]
        if need:
            start = (0,) * axis + (at,) + (0,) * (v.ndim - axis - 1)
            stop = v.shape[:axis] + (at + n,) + v.shape[axis + 1:]
            result.append(strided_slice(g, start=start, stop=stop, step=(1,) * v.ndim))
        else:
            result.append(None)
        at += n
    return result


concat = Primitive(
    "concat", host=lambda *a, axis: np.concatenate(a, axis),
    mindspore=lambda *, axis: moving(
        _tuple_first(primitive("Concat", axis)), lambda *a: np.concatenate(a, axis),
        lambda shapes, g: np.split(g, np.cumsum([s[axis] for s in shapes[:-1]]), axis)),
    joint_vjp=_concat_vjp, uses_output=False, dtypes=FLOATS,
    guard=lambda *a, axis: all(v.size > 0 for v in a),
)
stack = Primitive(
    "stack", host=lambda *a, axis: np.stack(a, axis),
    mindspore=lambda *, axis: moving(
        _tuple_first(primitive("Stack", axis)), lambda *a: np.stack(a, axis), lambda shapes, g: list(np.moveaxis(g, axis, 0))),
    joint_vjp=lambda grads, outs, needs, *inputs, axis: [
        reshape(strided_slice(grads[0],
                              start=(0,) * axis + (i,) + (0,) * (v.ndim - axis),
                              stop=v.shape[:axis] + (i + 1,) + v.shape[axis:], step=(1,) * (v.ndim + 1)), shape=v.shape)
        if need else None for i, (v, need) in enumerate(zip(inputs, needs))],
    uses_output=False, guard=lambda *a, axis: a[0].size > 0,
)


def _split_vjp(grads, outs, needs, a, *, axis, sizes):
    parts, at = [], 0
    for g, n in zip(grads, sizes):
        shape = a.shape[:axis] + (n,) + a.shape[axis + 1:]
        parts.append(g if g is not None else _zeros(shape, a.dtype))
        at += n
    return [concat(*parts, axis=axis)]


split = Primitive(
    "split", host=lambda a, *, axis, sizes: np.split(a, np.cumsum(sizes)[:-1], axis),
    mindspore=lambda *, axis, sizes: moving(
        primitive("Split", axis, len(sizes)), lambda a: np.split(a, len(sizes), axis), lambda shapes, *g: np.concatenate(g, axis)),
    guard=lambda a, *, axis, sizes: a.size > 0 and len(set(sizes)) == 1,
    joint_vjp=_split_vjp, outputs=None, uses_output=False,
)
strided_slice.merged = split


def _pad_vjp(g, out, a, *, before, after, value):
    return strided_slice(g, start=before, stop=tuple(b + n for b, n in zip(before, a.shape)), step=(1,) * a.ndim)


pad = Primitive(
    "pad", host=lambda a, *, before, after, value: np.pad(a, tuple(zip(before, after)), constant_values=value),
    vjp=[_pad_vjp], uses_output=False,
)


# ------------------------------------------------------------------------------------------------ gather and scatter
def _gather_vjp(g, out, a, index, *, axis):
    return index_add(zeros_like(a), index, g, axis=axis)


gather = Primitive(  # rows of `a` along `axis` at an integer index of any shape
    "gather", host=lambda a, index, *, axis: np.take(a, index, axis),
    mindspore=lambda *, axis: _with(primitive("Gather"), axis),
    vjp=[_gather_vjp, None], uses_output=False,
    guard=lambda a, index, *, axis: a.size > 0 and index.size > 0 and index.ndim > 0,
)


def _narrow(a):
    """Floating numbers of fewer than four bytes."""
    return a.dtype.itemsize < 4 and a.dtype.kind in "fV"


def _index_add(a, index, source, *, axis):
    if _narrow(a) and a.ndim > 1 and axis in (0, a.ndim - 1):  # PyTorch rounds once there, and after each addition elsewhere
        return _index_add(a.astype(np.float32), index, source.astype(np.float32), axis=axis).astype(a.dtype)
    out = np.moveaxis(a.copy(), axis, 0)
    moved = source
    if index.ndim != 1:
        axes = tuple(range(axis, axis + index.ndim)) + tuple(range(axis)) + tuple(range(axis + index.ndim, source.ndim))
        moved = source.transpose(axes).reshape((index.size,) + out.shape[1:])
        index = index.reshape(-1)
    else:
        moved = np.moveaxis(source, axis, 0)
    if out.ndim == 2 and out.dtype.kind == "f" and out.itemsize > 2 and out.shape[0] * index.size <= 1 << 22 and np.isfinite(moved).all():
        onehot = np.zeros((out.shape[0], index.size), out.dtype)  # a product beats add.at by far for small tables
        onehot[index, np.arange(index.size)] = 1
        out += onehot @ moved
    else:
        np.add.at(out, index, moved)
    return np.moveaxis(out, 0, axis)


index_add = Primitive(
    "index_add", host=_index_add,
    vjp=[lambda g, out, a, index, source, *, axis: g, None,
         lambda g, out, a, index, source, *, axis: gather(g, index, axis=axis)],
    uses_output=False,
)


def _index_get(a, *index, axes):
    return a[_full_index(a.ndim, index, axes)]


def _full_index(ndim, index, axes):
    key = [slice(None)] * ndim
    for i, axis in zip(index, axes):
        key[axis] = i
    return tuple(key)


def _index_get_vjp(grads, outs, needs, a, *index, axes):
    return [index_put(zeros_like(a), grads[0], *index, axes=axes, accumulate=True)] + [None] * len(index)


index_get = Primitive(  # NumPy's advanced indexing: integer arrays at `axes`, all other axes whole
    "index_get", host=_index_get, joint_vjp=_index_get_vjp, uses_output=False)


def _index_put(a, new, *index, axes, accumulate):
    out = a.copy()
    key = _full_index(a.ndim, index, axes)
    if accumulate:
        np.add.at(out, key, new)
    else:
        out[key] = new
    return out


def _index_put_vjp(grads, outs, needs, a, new, *index, axes, accumulate):
    g = grads[0]
    first = None
    if needs[0]:
        first = g if accumulate else index_put(g, zeros_like(new), *index, axes=axes, accumulate=False)
    second = sum_to(index_get(g, *index, axes=axes), shape=new.shape) if needs[1] else None
    return [first, second] + [None] * len(index)


index_put = Primitive("index_put", host=_index_put, joint_vjp=_index_put_vjp, uses_output=False)


def _along_key(a, index, axis):
    key = list(np.ogrid[tuple(map(slice, index.shape))]) if index.ndim else []
    if index.ndim:
        key[axis] = index
    return tuple(key)


def _take_along(a, index, *, axis):
    return a[_along_key(a, index, axis)] if a.ndim else a.reshape(index.shape)


take_along = Primitive(  # torch.gather: index may be smaller than `a` on the other axes
    "take_along", host=_take_along,
    mindspore=lambda *, axis: (lambda a, index, _p=primitive("GatherD"): _p(a, axis, index)),
    vjp=[lambda g, out, a, index, *, axis: add_along(zeros_like(a), index, g, axis=axis), None], uses_output=False,
    guard=lambda a, index, *, axis: a.ndim > 0 and a.size > 0 and index.size > 0,
)


def _put_along(a, index, new, *, axis):
    out = a.copy()
    if a.ndim == 0:
        return np.broadcast_to(new, a.shape).copy() if index.size else out
    new = np.broadcast_to(new, index.shape) if new.ndim == 0 else new[tuple(map(slice, index.shape))]
    out[_along_key(a, index, axis)] = new
    return out


def _put_along_vjp(grads, outs, needs, a, index, new, *, axis):
    g = grads[0]
    first = put_along(g, index, zeros_like(new), axis=axis) if needs[0] else None
    second = _to_source(take_along(g, index, axis=axis), new) if needs[2] else None
    return [first, None, second]


def _to_source(g, new):
    if g.shape == new.shape:
        return g
    if new.ndim == 0:
        return sum_to(g, shape=())
    return pad(g, before=(0,) * g.ndim, after=tuple(n - m for n, m in zip(new.shape, g.shape)), value=0)


put_along = Primitive("put_along", host=_put_along, joint_vjp=_put_along_vjp, uses_output=False)


def _add_along(a, index, new, *, axis):
    if _narrow(a):
        return _add_along(a.astype(np.float32), index, new.astype(np.float32), axis=axis).astype(a.dtype)
    out = a.copy()
    if a.ndim == 0:
        return out + new.reshape(()) if index.size else out
    new = new[tuple(map(slice, index.shape))] if new.ndim else new
    if index.shape[axis] == 1:  # no place is met twice; add.at is many times slower
        out[_along_key(a, index, axis)] += new
        return out
    np.add.at(out, _along_key(a, index, axis), new)
    return out


add_along = Primitive(
    "add_along", host=_add_along,
    joint_vjp=lambda grads, outs, needs, a, index, new, *, axis: [
        grads[0] if needs[0] else None, None,
        _to_source(take_along(grads[0], index, axis=axis), new) if needs[2] else None],
    uses_output=False,
)


def _masked_fill_vjp(grads, outs, needs, a, mask, value):
    g = grads[0]
    zero = _zeros((), g.dtype)
    first = sum_to(masked_fill(g, mask, zero), shape=a.shape) if needs[0] else None
    second = sum_to(masked_fill(g, _inverted(mask), zero), shape=()) if needs[2] else None
    return [first, None, second]


def _inverted(mask):
    from msadapter_hook.tape import value_of

    return value_of(~mask.numpy)


masked_fill = Primitive(  # `value`, zero-dim, where `mask` holds; `a` and `mask` broadcast
    "masked_fill", host=lambda a, mask, value: np.where(mask, value, a),
    mindspore=lambda: primitive("MaskedFill"),
    joint_vjp=_masked_fill_vjp, uses_output=False, dtypes=FLOATS,
    guard=lambda a, mask, value: a.size > 0 and mask.size > 0 and a.ndim > 0 and a.ndim >= mask.ndim
    and np.broadcast_shapes(a.shape, mask.shape) == a.shape,
)


# ------------------------------------------------------------------------------------------------ helpers
def _with(operation, *rest):
    return lambda a, *others: operation(a, *others, *rest)


def _tuple_first(operation):
    return lambda *a: operation(a)


def _inverse(axes):
    inverse = [0] * len(axes)
    for i, a in enumerate(axes):
        inverse[a] = i
    return tuple(inverse)


def _zeros(shape, dtype):
    return value_of(np.zeros(shape, dtype))
