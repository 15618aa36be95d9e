"""Reading and writing at index tensors: gather and scatter, index_*, take and put, masks, nonzero."""

import warnings

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import constant, value_of
from msadapter_hook.tensor import Tensor, cast_value, detached, dtypes, from_array, geometry
from msadapter_hook.tensor.formats import like_geometry
from msadapter_hook.tensor.geometry import wrap_dim

from . import expanded, kept
from .indexing import get_index, index_arrays, result_shape
from .promotion import dtype_of, is_integral
from .registry import composite, operator, plain, warn_once
from .tables import METHODS
from .writing import check_inplace, refuse_overlap

ALL = "function method inplace out"


# ------------------------------------------------------------------------------------------------ checks
def _index(index, name, kinds=("int64", "int32")):
    if index.dtype.name not in kinds:
        raise RuntimeError(f"{name}(): Expected dtype int64 for index" if kinds == ("int64",) else
                           f"{name}(): Expected dtype int32/int64 for index")
    return index if index.dtype == np.int64 else value_of(index.numpy.astype(np.int64))


def _within(index, n, d, negative=False):
    """The index wrapped, where it lies within a dimension of length `n`."""
    a = index.numpy
    if a.size:
        low, high = a.min(), a.max()
        if high >= n or low < (-n if negative else 0):
            bad = high if high >= n else low
            if negative:
                raise IndexError("index out of range in self")
            raise RuntimeError(f"index {bad} is out of bounds for dimension {d} with size {n}")
        if low < 0:
            return value_of(np.where(a < 0, a + n, a))
    return index


def _same_dtype(name, a, b, words="self and source"):
    if a.dtype != b.dtype:
        raise RuntimeError(f"{name}(): Expected {words} to have the same dtype, but got {dtype_of(a).scalar_name} and "
                           f"{dtype_of(b).scalar_name}")


def _fitting(value, index, d, name, src=None):
    """PyTorch's shape rules of gather and scatter: equal ranks, the index no larger than the tensor except at `d`."""
    ranks = [max(v.ndim, 1) for v in (value, index) if v is not None]
    if index.size == 0:
        return
    if ranks[0] != ranks[1]:
        owner = "input" if name == "gather" else "self"
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {owner} tensor")
    shape, at = value.shape or (1,), index.shape or (1,)
    for k in range(len(at)):
        if k != d and at[k] > shape[k]:
            if name == "gather":
                raise RuntimeError(f"Size does not match at dimension {k} expected index {list(index.shape)} to be no "
                                   f"larger than self {list(value.shape)} apart from dimension {d}")
            raise RuntimeError(f"Expected index {list(index.shape)} to be no larger than self {list(value.shape)} "
                               "apart from dimension "
                               f"{d}" + (f" and to be no larger size than src {list(src.shape)}" if src is not None
                                         else ""))
    if src is not None:
        if max(src.ndim, 1) != ranks[1]:
            raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
        have = src.shape or (1,)
        if any(n > m for n, m in zip(at, have)):
            raise RuntimeError(f"Expected index {list(index.shape)} to be no larger than self {list(value.shape)} "
                               f"apart from dimension {d} and to be no larger size than src {list(src.shape)}")


# ------------------------------------------------------------------------------------------------ gather
@operator("gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", forms="function method "
                                                                                                   "out",
          saves="index", overlap="any")
def gather(self, dim, index, sparse_grad=False):
    """out[i][j] = self[index[i][j]][j] for dim 0. Source: PyTorch, torch.gather."""
    d = wrap_dim(dim, self.ndim)
    if index.size == 0:  # nothing is looked up, so neither the dtype nor the values of the index matter
        return prims.reshape(prims.gather(prims.reshape(self, shape=(self.size,)), value_of(np.empty(0, np.int64)),
                                          axis=0),
                             shape=index.shape)
    index = _index(index, "gather")
    _fitting(self, index, d, "gather")
    index = _within(index, self.shape[d] if self.ndim else 1, d)
    if self.ndim == 0 or index.ndim == 0:
        flat = prims.reshape(self, shape=(self.size,))
        return prims.reshape(prims.take_along(flat, prims.reshape(index, shape=(index.size,)), axis=0),
                             shape=index.shape)
    return (prims.sparse_gather if sparse_grad else prims.take_along)(self, index, axis=d)


@composite("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", forms="function method out")
def take_along_dim(self, indices, dim=None):
    """gather with broadcasting; over all elements where `dim` is None. Source: PyTorch, torch.take_along_dim."""
    if indices._dtype is not dtypes.int64:
        raise RuntimeError("torch.take_along_dim(): dtype of indices should be Long but got "
                           f"{indices._dtype.scalar_name}")
    if dim is None:
        return self.reshape((-1,)).gather(0, indices.reshape((-1,)))
    if self.dim() != indices.dim():
        raise RuntimeError("torch.take_along_dim(): input and indices should have the same number of dimensions, but "
                           f"got {self.dim()} dimensions for input, and {indices.dim()} dimensions for indices")
    d = wrap_dim(dim, self.ndim)
    head = geometry.broadcast_shapes(self._size[:d] + (1,) + self._size[d + 1:],
                                     indices._size[:d] + (1,) + indices._size[d + 1:])
    wide = self.expand(head[:d] + (self._size[d],) + head[d + 1:])
    n = self._size[d]
    place = detached(indices).numpy
    if place.size and place.min() < 0:
        indices = from_array(np.where(place < 0, place + n, place))
    return wide.gather(d, indices.expand(head[:d] + (indices._size[d],) + head[d + 1:]))


@operator("index_select(Tensor self, int dim, Tensor index) -> Tensor", forms="function method out", saves="index",
          overlap="any")
def index_select(self, dim, index):
    """The positions `index` along `dim`. Source: PyTorch, torch.index_select."""
    d = wrap_dim(dim, self.ndim)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype.name not in ("int64", "int32"):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    n = self.shape[d] if self.ndim else 1
    if index.size and not n:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    if index.size and (index.numpy.min() < 0 or index.numpy.max() >= n):
        if d == 1:  # PyTorch has a kernel of its own for the second dimension, with an error of its own
            wrong = index.numpy[(index.numpy < 0) | (index.numpy >= n)].reshape(-1)[0]
            raise RuntimeError(f"INDICES element is out of DATA bounds, id={wrong} axis_dim={n}")
        raise IndexError("index out of range in self")
    if self.ndim == 0:
        if index.size != 1:
            raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)")
        return prims.reshape(prims.gather(prims.reshape(self, shape=(1,)), prims.reshape(index, shape=(1,)), axis=0),
                             shape=())
    return prims.gather(self, prims.reshape(index, shape=(index.size,)), axis=d)


@operator("take(Tensor self, Tensor index) -> Tensor", forms="function method out", saves="index", overlap="any")
def take(self, index):
    """Elements by their place in the flattened tensor. Source: PyTorch, torch.take."""
    if index.dtype != np.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {dtype_of(index).scalar_name}")
    if self.size == 0 and index.size:
        raise IndexError("take(): tried to take from an empty tensor")
    index = _flat_index(index, self.size)
    return prims.reshape(prims.gather(prims.reshape(self, shape=(self.size,)),
                                      prims.reshape(index, shape=(index.size,)), axis=0),
                         shape=index.shape)


def _flat_index(index, n):
    a = index.numpy
    if a.size and (a.min() < -n or a.max() >= n):
        bad = a.max() if a.max() >= n else a.min()
        raise IndexError(f"out of range: tried to access index {bad} on a tensor of {n} elements.")
    return value_of(np.where(a < 0, a + n, a)) if a.size and a.min() < 0 else index


# ------------------------------------------------------------------------------------------------ scatter
def _whole(number, like, name):
    """A number as a zero-dim Value of a tensor's dtype; RuntimeError where it cannot be one."""
    kind = like.dtype.kind
    if isinstance(number, complex) and kind != "c":
        raise RuntimeError(f"value cannot be converted to type {dtype_of(like).scalar_name.lower()} without overflow")
    return constant(number, like.dtype)


def _scatter(self, d, index, src, how="replace", include_self=True, name="scatter"):
    if index.size == 0:
        return prims.beside(self, src)
    index = _index(index, name)
    _fitting(self, index, d, name, src if src.ndim or not self.ndim else None)
    index = _within(index, self.shape[d] if self.ndim else 1, d)
    if self.ndim == 0 or index.ndim == 0:
        flat = _scatter(prims.reshape(self, shape=(self.size,)), 0, prims.reshape(index, shape=(index.size,)),
                        prims.reshape(src, shape=(src.size,)), how, include_self, name)
        return prims.reshape(flat, shape=self.shape)
    if src.shape != index.shape:
        if src.ndim == 0:
            src = prims.broadcast_to(src, shape=index.shape)
        else:
            src = prims.strided_slice(src, start=(0,) * src.ndim, stop=index.shape, step=(1,) * src.ndim)
    if how == "replace":
        return prims.put_along(self, index, src, axis=d)
    if how == "sum" and include_self:
        return prims.add_along(self, index, src, axis=d)
    return scatter_reduced(self, index, src, axis=d, how=how, include_self=include_self)


_REDUCE = {"add": "sum", "multiply": "prod"}


@operator("scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor", forms=ALL,
          saves="index", overlap="any")
@operator("scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor", forms=ALL,
          saves="index", overlap="any")
@operator("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", forms=ALL, saves="index",
          overlap="any")
@operator("scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", forms=ALL, saves="index",
          overlap="any")
def scatter(self, dim, index, src, reduce=None):
    """self[index[i][j]][j] = src[i][j] for dim 0. Source: PyTorch, Tensor.scatter_."""
    d = wrap_dim(dim, self.ndim)
    if reduce is not None and hasattr(src, "shape"):
        warn_once("The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future "
                  "PyTorch release. Use torch.scatter_reduce instead for more reduction options.")
    if not hasattr(src, "shape"):
        src = _whole(src, self, "scatter")
    else:
        if src.dtype != self.dtype:
            raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if reduce is None:
        return _scatter(self, d, index, src)
    if reduce not in _REDUCE:
        raise RuntimeError("reduce argument must be either add or multiply.")
    return _without_gradient(_scatter(self, d, index, src, _REDUCE[reduce]))


def _refuse_gradient(grads, outs, needs, *inputs):
    raise RuntimeError("derivative for aten::scatter is not implemented")


_without_gradient = prims.host_call("scatter_combined", lambda a: a, joint_vjp=_refuse_gradient, uses_output=False)


@operator("scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", forms=ALL, saves="index",
          overlap="any")
def scatter_add(self, dim, index, src):
    """self[index[i][j]][j] += src[i][j] for dim 0. Source: PyTorch, Tensor.scatter_add_."""
    d = wrap_dim(dim, self.ndim)
    if src.dtype != self.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    return _scatter(self, d, index, src, "sum")


@operator("scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) "
          "-> Tensor",
          forms=ALL, saves="index", overlap="any")
def scatter_reduce(self, dim, index, src, reduce, include_self=True):
    """What meets at an index combined by sum, prod, mean, amax or amin. Source: PyTorch, Tensor.scatter_reduce_."""
    d = wrap_dim(dim, self.ndim)
    if reduce not in _COMBINE:
        raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got " + reduce)
    if src.dtype != self.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    return _scatter(self, d, index, src, reduce, include_self, "scatter_reduce")


def _start(how, dtype):
    """The neutral element of a combination."""
    if how in ("sum", "mean"):
        return np.zeros((), dtype)
    if how == "prod":
        return np.ones((), dtype)
    if dtype.kind == "b":
        return np.array(how == "amin")
    if dtype.kind in "iu":
        return np.array(np.iinfo(dtype).min if how == "amax" else np.iinfo(dtype).max, dtype)
    return np.array(-np.inf if how == "amax" else np.inf).astype(dtype)


_COMBINE = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def _key(index, axis):
    key = list(np.ogrid[tuple(map(slice, index.shape))])
    key[axis] = index
    return tuple(key)


def _reduced(a, index, src, *, axis, how, include_self, stepwise=False):
    """`stepwise`: numbers of two bytes are rounded after each step (index_reduce), not in the end (scatter_reduce)."""
    low = a.dtype.itemsize < 4 and a.dtype.kind in "fV" and not stepwise
    out = a.astype(np.float32) if low else a.copy()
    key = _key(index, axis)
    if not include_self:
        out[key] = _start(how, out.dtype)
    src = src.astype(out.dtype) if low else src
    if a.dtype.kind == "b" and how in ("sum", "prod"):
        (np.logical_or if how == "sum" else np.logical_and).at(out, key, src)
    else:
        _COMBINE[how].at(out, key, src)
    if how == "mean":
        count = np.full(a.shape, 1 if include_self else 0, np.int64)
        np.add.at(count, key, 1)
        count = np.maximum(count, 1)
        if a.dtype.kind in "iu":
            out = np.floor_divide(out, count.astype(a.dtype))
        else:
            out = out.astype(a.dtype) / count.astype(a.dtype)
    return out.astype(a.dtype)


def _untouched(a, index, axis):
    """True where no index points."""
    free = np.ones(a.shape, bool)
    free[_key(index.numpy, axis)] = False
    return free


def _as_number(mask, dtype):
    return value_of(mask.astype(dtype))


def _reduced_vjp(grads, outs, needs, a, index, src, *, axis, how, include_self, stepwise=False):
    g, out = grads[0], outs[0]
    kept = _as_number(_untouched(a, index, axis), a.dtype)  # where the result is self although include_self is false
    if how in ("sum", "mean"):
        if how == "mean":
            count = np.full(a.shape, 1 if include_self else 0, np.int64)
            np.add.at(count, _key(index.numpy, axis), 1)
            g = g / value_of(np.maximum(count, 1).astype(a.dtype))
        da = g if include_self else g * kept
        ds = prims.take_along(g, index, axis=axis)
    elif how == "prod":
        da, ds = _product_cotangents(g, out, a, index, src, axis, include_self, kept)
    else:
        at = prims.take_along(out, index, axis=axis)
        self_hit = prims.cast(prims.equal(a, out), dtype=a.dtype)
        if not include_self:
            self_hit = self_hit * kept
        src_hit = prims.cast(prims.equal(src, at), dtype=a.dtype)
        shares = prims.add_along(self_hit, index, src_hit, axis=axis)
        shares = prims.where(prims.equal(shares, constant(0, a.dtype)), constant(1, a.dtype), shares)
        each = g / shares
        da, ds = self_hit * each, src_hit * prims.take_along(each, index, axis=axis)
    return [da if needs[0] else None, None, ds if needs[2] else None]


def _product_cotangents(g, out, a, index, src, axis, include_self, kept):
    """Of each factor the product of all the others: by division, and where a factor is zero, by leaving it out."""
    one, zero = constant(1, a.dtype), constant(0, a.dtype)
    start = a if include_self else prims.where(value_of(kept.numpy.astype(bool)), a, one)
    start_zero, src_zero = prims.equal(start, zero), prims.equal(src, zero)
    zeros = np.array(start_zero.numpy, np.int64)
    np.add.at(zeros, _key(index.numpy, axis), src_zero.numpy)
    safe_start, safe_src = prims.where(start_zero, one, start), prims.where(src_zero, one, src)
    nonzero = scatter_reduced(safe_start, index, safe_src, axis=axis, how="prod", include_self=True)
    none, single = _as_number(zeros == 0, a.dtype), _as_number(zeros == 1, a.dtype)

    def others(factor, safe, is_zero, product, no_zero, one_zero):
        share = product / safe
        return prims.where(is_zero, product * one_zero, share * no_zero)

    da = g * prims.conj_of(others(start, safe_start, start_zero, nonzero, none, single))
    if not include_self:
        da = da * kept
    picked = [prims.take_along(v, index, axis=axis) for v in (nonzero, none, single, g)]
    ds = picked[3] * prims.conj_of(others(src, safe_src, src_zero, *picked[:3]))
    return da, ds


scatter_reduced = prims.host_call("scatter_reduce", _reduced, joint_vjp=_reduced_vjp)


# ------------------------------------------------------------------------------------------------ index_*
def _vector(index, name):
    if index.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
                         f"{dtype_of(index).scalar_name} and size: {list(index.shape)}")
    return prims.reshape(_index(index, name), shape=(index.size,))


def _along(self, d, index, source, name):
    """Checks of index_add, index_copy and index_reduce; gives index and source with at least one dimension."""
    index = _vector(index, name)
    have = source.shape[d] if 0 < source.ndim and d < source.ndim else 1
    if index.size != have and name != "index_copy":
        raise RuntimeError(f"{name}_(): Number of indices ({index.size}) should be equal to source.size(dim): "
                           f"({have}), for dim: {d}")
    if source.ndim and source.ndim != self.ndim and self.ndim:
        raise RuntimeError(f"{name}(): When source and destination are not scalars, their dimensionality must match. "
                           f"Source dimensionality ({source.ndim}), destination dimensionality ({self.ndim})"
                           if name == "index_copy" else
                           f"{name}(): source tensor shape must match self tensor shape, excluding the specified "
                           "dimension. Got "
                           f"self.shape = {list(self.shape)} source.shape = {list(source.shape)}")
    if index.size != have:
        raise IndexError(f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) "
                         f"({have})")
    if self.ndim and source.ndim:
        mine, theirs = list(self.shape), list(source.shape)
        del mine[d], theirs[d]
        if mine != theirs:
            raise RuntimeError(f"{name}(): source tensor shape must match self tensor shape, excluding the specified "
                               f"dimension. Got self.shape = {list(self.shape)} source.shape = {list(source.shape)}"
                               if name != "index_copy" else
                               "index_copy(): Source/destination tensor must have same slice shapes. Destination "
                               f"slice shape: {mine} "
                               f"at dimension {d} and source slice shape: {theirs} at dimension 0.")
    n = self.shape[d] if self.ndim else 1
    a = index.numpy
    if a.size and (a.min() < 0 or a.max() >= n):
        bad = a.max() if a.max() >= n else a.min()
        if name == "index_add":
            if self.ndim > 1 and d in (0, self.ndim - 1):
                raise RuntimeError(f"index {bad} is out of bounds for dimension {d} with size {n}")
            raise IndexError("index out of range in self")
        raise IndexError("index out of range in self" if name == "index_reduce" else
                         f"index_copy_(): index {bad} is out of bounds for dimension {d} with size {n}")
    return index, source


def _on_vectors(self, source, work):
    """Run `work(self, source)` with zero-dim tensors as vectors of one element."""
    flat = prims.reshape(self, shape=(1,)) if not self.ndim else self
    if not source.ndim:
        source = prims.reshape(source, shape=(1,) * max(flat.ndim, 1))
    elif not self.ndim:
        source = prims.reshape(source, shape=(source.size,))
    return prims.reshape(work(flat, source), shape=self.shape) if not self.ndim else work(flat, source)


@operator("index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", forms=ALL,
          saves="index", overlap="any")
def index_add(self, dim, index, source, alpha=1):
    """`alpha * source` added at positions along `dim`. Source: PyTorch, Tensor.index_add_."""
    d = wrap_dim(dim, self.ndim)
    if self.dtype != source.dtype:
        raise RuntimeError(f"index_add_(): self ({dtype_of(self).scalar_name}) and source "
                           f"({dtype_of(source).scalar_name}) must have the same scalar type")
    index, source = _along(self, d, index, source, "index_add")
    if alpha != 1:
        source = source * (int(alpha) if is_integral(self) else constant(alpha, self.dtype))
    return _on_vectors(self, source, lambda a, s: prims.index_add(a, index, s, axis=d))


@operator("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", forms=ALL, saves="index",
          overlap="any")
def index_copy(self, dim, index, source):
    """`source` put at positions along `dim`. Source: PyTorch, Tensor.index_copy_."""
    d = wrap_dim(dim, self.ndim)
    if self.dtype != source.dtype:
        raise RuntimeError("index_copy_(): self and source expected to have the same dtype, but got (self) "
                           f"{dtype_of(self).scalar_name} and (source) {dtype_of(source).scalar_name}")
    index, source = _along(self, d, index, source, "index_copy")
    return _on_vectors(self, source, lambda a, s: prims.index_put(a, s, index, axes=(d,), accumulate=False))


@operator("index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", forms=ALL, saves="index",
          layout="self", overlap="any")
@operator("index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor", forms=ALL, saves="index",
          layout="self", overlap="any")
def index_fill(self, dim, index, value):
    """One number at positions along `dim`. Source: PyTorch, Tensor.index_fill_."""
    d = wrap_dim(dim, self.ndim)
    if hasattr(value, "shape"):
        if value.ndim:
            raise RuntimeError("index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                               f"{value.ndim} dimension(s).")
        value = cast_value(value, dtype_of(self))
    else:
        if isinstance(value, complex) and self.dtype.kind != "c":
            raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
        value = constant(value, self.dtype)
    if index.dtype != np.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise IndexError("Index has to be a vector/scalar")
    index = prims.reshape(index, shape=(index.size,))
    n = self.shape[d] if self.ndim else 1
    a = index.numpy
    if a.size and (a.min() < -n or a.max() >= n):
        raise IndexError(f"index {a.max() if a.max() >= n else a.min()} is out of bounds for dimension {d} with size "
                         f"{n}")
    index = value_of(np.unique(np.where(a < 0, a + n, a)))  # once each, so that `value` is not credited twice
    flat = prims.reshape(self, shape=(1,)) if not self.ndim else self
    return prims.reshape(prims.index_put(flat, value, index, axes=(d,), accumulate=False), shape=self.shape)


@operator("index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> "
          "Tensor",
          forms=ALL, saves="index", overlap="any")
def index_reduce(self, dim, index, source, reduce, include_self=True):
    """What meets at positions along `dim` combined by prod, mean, amax or amin. Source: PyTorch,
    Tensor.index_reduce_."""
    warn_once("index_reduce() is in beta and the API may change at any time.")
    d = wrap_dim(dim, self.ndim)
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    if self.dtype != source.dtype:
        raise RuntimeError("index_reduce(): self and source expected to have the same dtype, but got (self) "
                           f"{dtype_of(self).scalar_name} and (source) {dtype_of(source).scalar_name}")
    index, source = _along(self, d, index, source, "index_reduce")
    if not index.size:
        return prims.cast(self, dtype=self.dtype)

    def work(a, s):
        shape = [1] * a.ndim
        shape[d] = index.size
        wide = value_of(np.ascontiguousarray(np.broadcast_to(index.numpy.reshape(shape), s.shape)))
        return scatter_reduced(a, wide, s, axis=d, how=reduce, include_self=include_self, stepwise=True)

    return _on_vectors(self, source, work)


@composite("index_put(Tensor self, OptionalTensor[] indices, Tensor values, bool accumulate=False) -> Tensor")
def index_put(self, indices, values, accumulate=False):
    """A copy with `values` at index tensors. Source: PyTorch, torch.index_put."""
    return Tensor._make(_put_at(self, indices, values, accumulate), self._dtype, like_geometry(self, None))


def _put_at(self, indices, values, accumulate):
    """The Value of `self` with `values` at index tensors."""
    if len(indices) > self.dim():
        raise IndexError(f"too many indices for tensor of dimension {self.dim()} (got {len(indices)})")
    if values._dtype is not self._dtype:
        raise RuntimeError(f"Index put requires the source and destination dtypes match, got {self._dtype.scalar_name} "
                           f"for the destination and {values._dtype.scalar_name} for the source.")
    index, d = [], 0
    for t in indices:
        if t is None:
            d += 1
            continue
        if t._dtype in (dtypes.bool_, dtypes.uint8):
            if t._dtype is dtypes.uint8:
                warnings.warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
                              "instead.",
                              UserWarning, stacklevel=4)
            for k in range(t.dim()):
                if self._size[d + k] != t._size[k]:
                    raise IndexError(f"The shape of the mask {list(t._size)} at index {k} does not match the shape of "
                                     f"the indexed tensor {list(self._size)} at index {d + k}")
            for k, part in enumerate(np.nonzero(detached(t).numpy)):
                index.append((d + k, from_array(part)))
            d += t.dim()
            continue
        if t._dtype not in (dtypes.int64, dtypes.int32, dtypes.int16, dtypes.int8):
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        index.append((d, t))
        d += 1
    if not index:
        raise RuntimeError("at least one index must be provided")
    arrays = index_arrays(self._size, index)
    axes = tuple([k for k, _ in index])
    shape = result_shape(self._size, arrays, axes)
    try:
        fits = geometry.broadcast_shapes(values._size, shape) == tuple(shape)
    except RuntimeError:
        fits = False
    if not fits:
        raise RuntimeError(f"shape mismatch: value tensor of shape {list(values._size)} cannot be broadcast to "
                           f"indexing result of shape {list(shape)}")
    value = prims.index_put(self.value, values.value, *arrays, axes=axes, accumulate=bool(accumulate))
    if value.requires_grad:
        value.node.operator, value.node.saved = "IndexPutBackward0", kept.versions_of(indices)
    return value


def index_put_(self, indices, values, accumulate=False):
    """`values` at index tensors, in place. Source: PyTorch, Tensor.index_put_."""
    if 0 in self._stride and expanded.is_expanded(self):
        return expanded.index_put_(self, indices, values, accumulate)
    check_inplace(self)
    refuse_overlap(self, values, True)
    self._write(_put_at(self, indices, values, accumulate))
    return self


METHODS["index_put_"] = index_put_
plain(index_put_)


@operator("_unsafe_index(Tensor self, OptionalTensor[] indices) -> Tensor", forms="function")
def _unsafe_index(self, indices):
    """self at index tensors. Source: PyTorch, torch._unsafe_index."""
    return get_index(self, [(d, t.numpy) for d, t in enumerate(indices) if t is not None])


@operator("_unsafe_masked_index(Tensor self, Tensor mask, OptionalTensor[] indices, Scalar fill) -> Tensor",
          forms="function")
def _unsafe_masked_index(self, mask, indices, fill):
    """self at index tensors where the mask holds, `fill` elsewhere. Source: PyTorch, torch._unsafe_masked_index."""
    found = get_index(self, _clamped(self, indices))
    return prims.where(prims.broadcast_to(mask, shape=found.shape), found, constant(fill, self.dtype))


def _clamped(self, indices):
    return [(d, np.clip(t.numpy, -self.shape[d], self.shape[d] - 1)) for d, t in enumerate(indices) if t is not None]


@operator("_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, OptionalTensor[] indices, Tensor values) -> "
          "Tensor",
          forms="function")
def _unsafe_masked_index_put_accumulate(self, mask, indices, values):
    """`values` added at index tensors where the mask holds. Source: PyTorch."""
    index = _clamped(self, indices)
    arrays = index_arrays(self.shape, index)
    values = prims.where(prims.broadcast_to(mask, shape=values.shape), values, constant(0, values.dtype))
    return prims.index_put(self, values, *arrays, axes=tuple([d for d, _ in index]), accumulate=True)


@operator("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", forms="function method "
                                                                                                  "inplace",
          saves="index", overlap="any")
def put(self, index, source, accumulate=False):
    """`source` at places of the flattened tensor. Source: PyTorch, Tensor.put_."""
    if index.dtype != np.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {dtype_of(index).scalar_name}")
    if self.dtype != source.dtype:
        raise RuntimeError("put_(): self and source expected to have the same dtype, but got self.dtype = "
                           f"{dtype_of(self).scalar_name} and source.dtype = {dtype_of(source).scalar_name}")
    if index.size != source.size:
        raise RuntimeError("put_(): Expected source and index to have the same number of elements, but got "
                           f"source.numel() = {source.size}, index.numel() = {index.size}")
    index = prims.reshape(_flat_index(index, self.size), shape=(index.size,))
    flat = prims.index_put(prims.reshape(self, shape=(self.size,)), prims.reshape(source, shape=(source.size,)), index,
                           axes=(0,),
                           accumulate=accumulate)
    return prims.reshape(flat, shape=self.shape)
