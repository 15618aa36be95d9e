"""Sorting, selection of ranks, searching in sorted rows, distinct elements. NaN counts as the largest number."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import Value, value_of
from msadapter_hook.tensor.geometry import wrap_dim

from . import selection
from .promotion import dtype_of, is_complex, promote
from .reduction import _comparable, at_least_1d, axis_of, pick, require_length
from .refusals import not_implemented
from .registry import composite, operator
from .tables import PATH, call

ALL = "function method out"


def order(array, axis, descending=False):
    """Stable sorting positions along an axis, NaN last (first where descending)."""
    array = _comparable(array)
    if not descending:
        return np.argsort(array, axis, kind="stable")
    turned = np.argsort(np.flip(array, axis), axis, kind="stable")
    return array.shape[axis] - 1 - np.flip(turned, axis)


def _around(positions, axis, k):
    """The positions of the k-th element and its neighbours in the order."""
    n = positions.shape[axis]
    return np.take(positions, np.arange(max(k - 1, 0), min(k + 2, n)), axis)


def _resolved(array, axis, index, witnesses, select):
    """`index` with the rows settled by `select` where neighbours in the order (`witnesses`, positions) are equal."""
    array = _comparable(array)
    values = np.take_along_axis(array, witnesses, axis)
    n = values.shape[axis]
    before, after = np.take(values, np.arange(n - 1), axis), np.take(values, np.arange(1, n), axis)
    tie = before == after
    if array.dtype.kind == "f":
        tie = tie | (np.isnan(before) & np.isnan(after))
    tie = tie.any(axis)
    if not tie.any() or int(tie.sum()) * array.shape[axis] > selection.LIMIT:
        return index
    index = index.copy()
    rows, target = np.moveaxis(array, axis, -1), np.moveaxis(index, axis, -1)
    for at in zip(*np.nonzero(tie)) if tie.ndim else [()]:
        target[at] = select(rows[at])
    return index


# ------------------------------------------------------------------------------------------------ sorting
def _sorted(self, dim, descending):
    axis = axis_of(self, dim)
    if is_complex(self):
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    whole = at_least_1d(self)
    index = value_of(np.ascontiguousarray(order(whole.numpy, axis, descending)).astype(np.int64, copy=False))
    values = prims.take_along(whole, index, axis=axis)
    return (values, index) if self.ndim else (prims.reshape(values, shape=()), prims.reshape(index, shape=()))


@operator("sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", forms=ALL)
@operator(
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", forms=ALL
)
def sort(self, *arguments):
    """Sorted along a dimension, with the positions taken (int64); equal elements keep their order. Source: PyTorch, torch.sort."""
    return _sorted(self, *arguments[-2:])


@operator("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", forms="function method")
@operator("argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor", forms=ALL)
def argsort(self, *arguments):
    """The positions that sort along a dimension; int64. Source: PyTorch, torch.argsort."""
    return _sorted(self.detach(), *arguments[-2:])[1]


@operator("msort(Tensor self) -> Tensor", forms=ALL, grad_name="SortBackward0")
def msort(self):
    """Sorted along the first dimension. Source: PyTorch, torch.msort."""
    return _sorted(self, 0, False)[0]


@operator("topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)", forms=ALL,
          overlap="any")
def topk(self, k, dim=-1, largest=True, sorted=True):
    """The k largest (or smallest) along a dimension, in order, with their positions. Source: PyTorch, torch.topk."""
    axis = axis_of(self, dim)
    if not 0 <= k <= (self.shape[axis] if self.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if is_complex(self):
        raise RuntimeError(" topk does not support complex dtypes on CPU")
    if self.dtype.kind == "b":
        raise RuntimeError("topk does not support bool dtypes on CPU")
    array = at_least_1d(self).numpy
    index = _partitioned(array, k, axis, largest) if k * 8 < array.shape[axis] > 256 else None
    if index is None:
        positions = order(array, axis, largest)
        index = np.take(positions, np.arange(k), axis)
        witnesses = np.take(positions, np.arange(min(k + 1, array.shape[axis])), axis)
        if k:
            index = _resolved(array, axis, index, witnesses, lambda row: selection.top(row, k, largest, sorted))
    return pick(self, index, axis, True) if self.ndim else _zero_dim(self, k)


def _partitioned(array, k, axis, largest):
    """The top k of long rows without sorting them whole; None where equal elements or NaN make a difference."""
    array = _comparable(array)
    n = array.shape[axis]
    if not k or not array.size or array.dtype.kind == "f" and np.isnan(array.max()):
        return None
    chosen = np.argpartition(array, n - k, axis) if largest else np.argpartition(array, k - 1, axis)
    chosen = np.take(chosen, np.arange(n - k, n) if largest else np.arange(k), axis)
    values = np.take_along_axis(array, chosen, axis)
    inner = np.argsort(values, axis)
    inner = np.flip(inner, axis) if largest else inner
    values = np.take_along_axis(values, inner, axis)
    last = np.take(values, [k - 1], axis)
    if (np.take(values, np.arange(1, k), axis) == np.take(values, np.arange(k - 1), axis)).any():
        return None
    if ((array == last).sum(axis) > 1).any():
        return None
    return np.take_along_axis(chosen, inner, axis)


def _zero_dim(self, k):
    if k == 1:
        return pick(self, np.zeros(1, np.int64), 0, False)
    return value_of(np.zeros(0, self.dtype)), value_of(np.zeros(0, np.int64))


@operator("kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", forms=ALL, overlap="any")
def kthvalue(self, k, dim=-1, keepdim=False):
    """The k-th smallest along a dimension and its position. Source: PyTorch, torch.kthvalue."""
    axis = axis_of(self, dim)
    require_length("kthvalue", self, axis)
    if not 1 <= k <= (self.shape[axis] if self.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
    if self.dtype.kind in "bc":
        raise not_implemented("kthvalue_cpu", self)
    array = at_least_1d(self).numpy
    positions = order(array, axis)
    index = _resolved(
        array, axis, np.take(positions, [k - 1], axis), _around(positions, axis, k - 1), lambda row: [selection.kth(row, k - 1)]
    )
    return pick(self, index, axis, keepdim)


# ------------------------------------------------------------------------------------------------ medians and modes
def _median_index(array, axis, skip_nan):
    """Position of the lower median along an axis (kept), NaN first of all unless skipped."""
    positions = order(array, axis)
    n = array.shape[axis]
    k = (n - 1) // 2
    if array.dtype.kind not in "fV":
        return np.take(positions, [k], axis)
    missing = np.isnan(_comparable(array))
    if skip_nan:
        present = n - missing.sum(axis, keepdims=True)
        return np.take_along_axis(positions, np.maximum(present - 1, 0) // 2, axis)
    middle = np.take(positions, [k], axis)
    return np.where(missing.any(axis, keepdims=True), np.argmax(missing, axis, keepdims=True), middle)


def _evenly(g, out, a, *, skip_nan):
    """The gradient shared by all elements equal to the result."""
    whole = prims.broadcast_to(out, shape=a.shape)
    hit = prims.logical_or(prims.equal(a, whole), prims.logical_and(prims.isnan(a), prims.isnan(whole)))
    mask = prims.cast(hit, dtype=a.dtype)
    count = prims.sum(mask, axes=tuple(range(a.ndim)), keepdims=False)
    return prims.broadcast_to(g / count, shape=a.shape) * mask


def _median_all(a, *, skip_nan):
    flat = a.reshape(-1)
    if not flat.size:
        if a.dtype.kind == "f":
            return np.full((), np.nan, a.dtype)
        return np.asarray(np.iinfo(a.dtype).min if a.dtype.kind in "iu" else float("nan")).astype(a.dtype)
    if a.dtype.kind in "fiu" and not (a.dtype.kind == "f" and np.isnan(flat.max())):
        k = (flat.size - 1) // 2
        return np.partition(flat, k)[k]
    return flat[_median_index(flat, 0, skip_nan)[0]]


_median_whole = prims.host_call("median", _median_all, vjp=[_evenly])


def _declare_median(name, skip_nan):
    def whole(self):
        if self.dtype.kind in "bc":
            raise not_implemented("median_cpu", self)
        return _median_whole(self, skip_nan=skip_nan)

    def along(self, dim, keepdim=False):
        axis = axis_of(self, dim)
        require_length(name, self, axis)
        if self.dtype.kind in "bc":
            raise not_implemented("median_out", self)
        return pick(self, _median_index(at_least_1d(self).numpy, axis, skip_nan), axis, keepdim)

    whole.__doc__ = f"The lower median of all elements. Source: PyTorch, torch.{name}."
    along.__doc__ = f"The lower median along a dimension and its position. Source: PyTorch, torch.{name}."
    operator(f"{name}(Tensor self) -> Tensor", forms=ALL, saves="self result")(whole)
    operator(f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", forms=ALL)(along)


_declare_median("median", False)
_declare_median("nanmedian", True)


@operator("mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", forms=ALL, overlap="any")
def mode(self, dim=-1, keepdim=False):
    """The most frequent element along a dimension (the smallest of several) and its last position. Source: PyTorch, torch.mode."""
    axis = axis_of(self, dim)
    require_length("mode", self, axis)
    if is_complex(self):
        raise not_implemented("mode_cpu", self)
    array = _comparable(at_least_1d(self).numpy)
    unstable = array.size <= selection.LIMIT and (array.shape[axis] > 16 or array.dtype.kind == "f" and np.isnan(array).any())
    positions = np.apply_along_axis(selection.sorted_positions, axis, array) if unstable else order(array, axis)
    values = np.moveaxis(np.take_along_axis(array, positions, axis), axis, 0)
    runs = np.ones(values.shape, np.int64)
    for i in range(1, len(values)):
        runs[i] += np.where(values[i] == values[i - 1], runs[i - 1], 0)
    index = np.take_along_axis(positions, np.expand_dims(np.argmax(runs, 0), axis), axis)
    return pick(self, index, axis, keepdim)


# ------------------------------------------------------------------------------------------------ searching in sorted rows
def _bisect(rows, values, right):
    """Where to insert each value into its row, by halving as PyTorch does: also what rows give that are not sorted."""
    low = np.zeros(values.shape, np.int64)
    high = np.full(values.shape, rows.shape[-1], np.int64)
    for _ in range(int(rows.shape[-1]).bit_length()):
        middle = (low + high) >> 1
        open_ = low < high
        probe = np.minimum(middle, rows.shape[-1] - 1)
        found = np.take_along_axis(rows, probe, -1) if rows.ndim > 1 else rows[probe]
        after = open_ & ~(found > values if right else found >= values)
        low = np.where(after, middle + 1, low)
        high = np.where(open_ & ~after, middle, high)
    return low


def _search(boundaries, values, right):
    boundaries, values = _comparable(boundaries), _comparable(values)
    if not boundaries.shape[-1] or not values.size:
        return np.zeros(values.shape, np.int64)
    return _bisect(boundaries, values, right)


def _searchable(boundaries, value):
    """Boundaries and values as Values of one dtype that has an order."""
    boundaries, value = promote(boundaries, value)
    if boundaries.dtype.kind in "bc":
        raise not_implemented("searchsorted_out_cpu", boundaries)
    return boundaries, value


def _positions(found, out_int32):
    return value_of(np.asarray(found, np.int32 if out_int32 else np.int64))


def _side(side, right):
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError("torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True")
    return right or side == "right"


@operator(
    "searchsorted.Tensor(Tensor sorted_sequence, Operand self, *, bool out_int32=False, bool right=False, str? side=None, "
    "Tensor? sorter=None) -> Tensor",
    forms="function out",
)
def searchsorted(sorted_sequence, self, out_int32=False, right=False, side=None, sorter=None):
    """Where to insert into sorted rows; int64, or int32 when asked. Source: PyTorch, torch.searchsorted."""
    right = _side(side, right)
    if not sorted_sequence.ndim:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    if sorted_sequence.ndim != 1:
        if not isinstance(self, Value) or not self.ndim:
            raise RuntimeError(
                "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we "
                f"got boundaries tensor dim({sorted_sequence.ndim}) and input value's dim(0) numel(1)"
            )
        if sorted_sequence.shape[:-1] != self.shape[:-1]:
            raise RuntimeError(
                "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
                "and "
                f"input value tensor must match, but we got boundaries tensor {list(sorted_sequence.shape)} and input value tensor "
                f"{list(self.shape)}"
            )
    sequence, sought = _searchable(sorted_sequence, self)
    rows = sequence.numpy
    if sorter is not None:
        if sorter.shape != sorted_sequence.shape:
            raise RuntimeError(
                "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
                f"{list(sorted_sequence.shape)}and got sorter tensor {list(sorter.shape)}"
            )
        if sorter.dtype != np.int64:
            raise RuntimeError(
                f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {dtype_of(sorter).scalar_name}"
            )
        if sorter.size and (sorter.numpy.min() < 0 or sorter.numpy.max() >= rows.shape[-1]):
            raise RuntimeError("torch.searchsorted(): sorter index out of range")
        rows = np.take_along_axis(rows, sorter.numpy, -1)
    return _positions(_search(rows, sought.numpy, right), out_int32)


@operator(
    "bucketize.Tensor(Operand self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor", forms="function out"
)
def bucketize(self, boundaries, out_int32=False, right=False):
    """The bucket between sorted boundaries that an element falls into. Source: PyTorch, torch.bucketize."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    boundaries, sought = _searchable(boundaries, self)
    return _positions(_search(boundaries.numpy, sought.numpy, right), out_int32)


# ------------------------------------------------------------------------------------------------ distinct elements
def _refuse_complex(value):
    if is_complex(value):
        raise not_implemented("unique", value)


def _distinct(value, places):
    """Sorted distinct elements, the place of each element among them, and how often they occur; the latter two only when
    `places`."""
    array = value.numpy
    flat = _comparable(array).reshape(-1)
    if not places:
        return np.unique(flat, equal_nan=False).astype(array.dtype), np.zeros(0), np.zeros(0)
    found, inverse, counts = np.unique(flat, return_inverse=True, return_counts=True, equal_nan=False)
    return found.astype(array.dtype), inverse.reshape(array.shape), counts


def _distinct_rows(array, axis):
    """Distinct slices along an axis in sorted order, the place of each slice, and how often they occur."""
    rows = np.moveaxis(array, axis, 0)
    if not len(rows):
        return array, np.zeros(0, np.int64), np.zeros(0, np.int64)
    flat = _comparable(np.ascontiguousarray(rows).reshape(len(rows), -1))
    if flat.shape[1] == 1 and flat.dtype.kind == "f" and np.isnan(flat).any():  # NaN is neither less nor greater and stays put
        sequence = np.array(selection.sorted_positions(flat[:, 0]))
    else:
        sequence = np.lexsort(flat.T[::-1]) if flat.shape[1] else np.arange(len(flat))
    sorted_rows = flat[sequence]
    fresh = np.ones(len(flat), bool)
    fresh[1:] = (sorted_rows[1:] != sorted_rows[:-1]).any(1)
    inverse = np.empty(len(flat), np.int64)
    inverse[sequence] = np.cumsum(fresh) - 1
    starts = np.flatnonzero(fresh)
    counts = np.diff(np.append(starts, len(flat)))
    return np.moveaxis(rows[sequence[starts]], 0, axis), inverse, counts


def _consecutive(array, axis):
    """As `_distinct_rows`, of neighbours only and in the order they stand."""
    rows = np.moveaxis(array, axis, 0)
    if not len(rows):
        return array, np.zeros(0, np.int64), np.zeros(0, np.int64)
    flat = _comparable(np.ascontiguousarray(rows).reshape(len(rows), -1))
    fresh = np.ones(len(flat), bool)
    fresh[1:] = (flat[1:] != flat[:-1]).any(1)
    starts = np.flatnonzero(fresh)
    return np.moveaxis(rows[starts], 0, axis), np.cumsum(fresh) - 1, np.diff(np.append(starts, len(flat)))


def _three(found, inverse, counts):
    places = [np.array(a, np.int64, order="C") for a in (inverse, counts)]
    return tuple([value_of(a) for a in (np.array(found, order="C"), *places)])


@operator(
    "_distinct(Tensor self, int? dim, bool consecutive, bool places=True) -> (Tensor, Tensor, Tensor)",
    forms="function",
    namespace="_sorting",
    grad_name="Unique2Backward0",
)
def distinct(self, dim, consecutive, places=True):
    _refuse_complex(self)
    if dim is None:
        if consecutive:
            found, inverse, counts = _consecutive(self.numpy.reshape(-1), 0)
            return _three(found, inverse.reshape(self.shape), counts)
        return _three(*_distinct(self, places))
    axis = wrap_dim(dim, self.ndim)
    if not self.size and self.ndim and self.shape[axis]:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    if self.shape.count(0) > 1:
        raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied ")
    return _three(*(_consecutive if consecutive else _distinct_rows)(at_least_1d(self).numpy, axis))


def _chosen(triple, inverse, counts):
    found = triple[:1] + ((triple[1],) if inverse else ()) + ((triple[2],) if counts else ())
    return found if len(found) > 1 else found[0]


@composite(
    "unique(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False, int? dim=None) -> Tensor",
    forms="function method",
)
def unique(self, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """Distinct elements (or slices) in order; also their places and counts where asked. Source: PyTorch, torch.unique."""
    places = return_inverse or return_counts
    return _chosen(call("_sorting._distinct", self, dim, False, places), return_inverse, return_counts)


@composite(
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> Tensor",
    forms="function method",
)
def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None):
    """As `unique`, of neighbours only. Source: PyTorch, torch.unique_consecutive."""
    return _chosen(call("_sorting._distinct", self, dim, True), return_inverse, return_counts)


for _name in ("sort", "argsort", "msort", "topk", "kthvalue", "median", "nanmedian", "mode", "searchsorted", "bucketize", "unique"):
    PATH[_name] = "host"
