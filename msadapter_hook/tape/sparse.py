"""SparseValue: a gradient that is zero but at some places, as that of a lookup in a table."""

import numpy as np

from .value import Value


class SparseValue(Value):
    """A Value given by `values` (n, *rest) at the places `indices` (dims, n); places that repeat add up.

    `indices` (int64) and `values` are NumPy arrays that nobody writes to. Whoever reads it as any other Value gets the
    dense array, so what knows nothing of sparse gradients computes with the right numbers.
    """

    __slots__ = ("indices", "values", "_dense")
    wrapped = True  # tensors over it are sparse: `shown()`, which `tensor.sparse` sets, gives them

    def __init__(self, shape, indices, values):
        self.indices, self.values = indices, values
        super().__init__(tuple(shape), values.dtype)

    @property
    def _numpy(self):
        if self._dense is None:
            dense = np.zeros(self.shape, self.dtype)
            np.add.at(dense, tuple(self.indices), self.values)
            self._dense = dense
        return self._dense

    @_numpy.setter
    def _numpy(self, array):
        self._dense = array

    @property
    def pending(self):
        return False

    @property
    def ascending(self):
        """The places are sorted, and each is there once."""
        return _ascending(flat_places(self.shape, self.indices))

    def plus(self, other: "SparseValue") -> "SparseValue":
        """The sum of both: sorted by place where both are, else merged as they come, as PyTorch sums sparse tensors."""
        return SparseValue(self.shape, *merge(self.shape, (self.indices, self.values), (other.indices, other.values)))

    def beside(self, other: "SparseValue") -> "SparseValue":
        """The sum of both, the places of one after those of the other."""
        return SparseValue(self.shape, np.concatenate([self.indices, other.indices], 1), np.concatenate([self.values, other.values]))


def flat_places(shape, indices) -> np.ndarray:
    """The row-major number of each place (a column of `indices`) over the leading dimensions of `shape`."""
    at = np.zeros(indices.shape[1], np.int64)
    for n, row in zip(shape, indices):
        at = at * n + row
    return at


def merge(shape, one, other):
    """(indices, values) of the sum of two: both are walked from the front, equal places met at once add up."""
    (i, v), (j, w) = one, other
    p, q = flat_places(shape, i), flat_places(shape, j)
    take, found, n, m = merge_order(p, q)
    values = np.zeros((len(found), *v.shape[1:]), np.result_type(v.dtype, w.dtype))
    np.add.at(values, take[:n], v)
    np.add.at(values, take[n:], w)
    places = np.concatenate([i, j], 1)
    return np.ascontiguousarray(places[:, found]), values


def merge_order(p, q):
    """(target of each element of p then of q, a source of each target, len(p), len(q)) of the merge of two lists of places."""
    n, m = len(p), len(q)
    if n == m and np.array_equal(p, q):
        at = np.arange(n)
        return np.concatenate([at, at]), at, n, m
    if _ascending(p) and _ascending(q):
        _, found, take = np.unique(np.concatenate([p, q]), return_index=True, return_inverse=True)
        return take.reshape(-1), found, n, m
    take, found, a, b = np.empty(n + m, np.int64), [], 0, 0
    left, right = p.tolist(), q.tolist()
    while a < n or b < m:
        first = b >= m or a < n and left[a] <= right[b]
        second = a >= n or b < m and right[b] <= left[a]
        found.append(a if first else n + b)
        if first:
            take[a] = len(found) - 1
            a += 1
        if second:
            take[n + b] = len(found) - 1
            b += 1
    return take, np.array(found, np.int64), n, m


def _ascending(places):
    return places.size < 2 or bool((places[1:] > places[:-1]).all())
