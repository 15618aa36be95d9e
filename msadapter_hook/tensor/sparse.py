"""Sparse tensors: coordinate (COO) and compressed (CSR, CSC, BSR, BSC) layouts, as the parts they are made of. Gradients flow
through their elements, a plain tensor; the places are integers."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import Value, value_of
from msadapter_hook.tape.sparse import SparseValue, flat_places

from . import dtype as dtypes
from .compound import Compound
from .core import Tensor, from_array


def passed(tensor, name):
    """The same data one step further in the graph, where the gradient is called `name`; without history, an alias."""
    value = tensor.value
    if not value.requires_grad:
        return tensor.detach()
    made = prims.graft(value, value.detach())
    made.node.operator = name
    return Tensor._make(made, tensor._dtype)


def scattered(values: Value, at: np.ndarray, rows: int) -> Value:
    """(rows, *rest): the rows of `values` added up at the numbers `at`."""
    zero = value_of(np.zeros((rows, *values.shape[1:]), values.dtype))
    return prims.index_add(zero, value_of(at), values, axis=0)


def gathered(values: Value, at: np.ndarray) -> Value:
    return prims.gather(values, value_of(at), axis=0)


class SparseTensor(Compound):
    """A tensor in coordinate layout: `_places` (sparse dims, n) int64, `_elements` (n, *dense sizes), both plain tensors."""

    __slots__ = ("_places", "_elements", "_coalesced")
    __module__ = "torch"
    _backend, _noun, _kind = "SparseCPU", "SparseTensorImpl", "Sparse"
    layout = dtypes.sparse_coo
    is_sparse = True

    @classmethod
    def _of(cls, places, elements, size, coalesced=False):
        """A tensor of these parts; `places` may be a NumPy array."""
        self = cls._blank(size, elements._dtype)
        self._places = from_array(np.ascontiguousarray(places)) if isinstance(places, np.ndarray) else places
        self._elements, self._coalesced = elements, bool(coalesced)
        return self

    @property
    def _flow(self):
        return self._elements

    def _like(self, flow):
        return SparseTensor._of(self._places, flow, self._size, self._coalesced)

    @property
    def _at(self) -> np.ndarray:
        """The places as an array; RuntimeError where one lies outside."""
        at = self._places.value.numpy
        for n, row in zip(self._size, at):
            if row.size and (row.min() < 0 or row.max() >= n):
                raise RuntimeError(f"size is inconsistent with indices: for a dimension of size {n} found index "
                                   f"{int(row.max() if row.max() >= n else row.min())}")
        return at

    @property
    def _flat(self) -> np.ndarray:
        """The row-major number of each place over the sparse dimensions."""
        return flat_places(self._size, self._at)

    def _part_of(self, gradient):
        """The elements of `gradient`, dense or sparse, at this tensor's places."""
        if not gradient._compound:
            size = self._size[:self._places._size[0]]
            rows = prims.reshape(gradient.value, shape=(int(np.prod(size)), *self._elements._size[1:]))
            return Tensor._make(gathered(rows, self._flat))
        gradient = gradient if isinstance(gradient, SparseTensor) else gradient.to_sparse_coo()
        if gradient._places is self._places:
            return gradient._elements
        return Tensor._make(values_at(gradient, self._flat))

    def _written(self, new):
        """Take the result of an in-place operator; where the places are the same, the elements' memory keeps its place."""
        if new._places is self._places and new._elements._size == self._elements._size:
            self._elements._write(new._elements.value)
            self._coalesced = new._coalesced
        else:
            count = self._version + 1
            self._take(new)
            if self._elements._history.version.count < count:
                self._elements._history.version.count = count


def values_at(source: SparseTensor, flat: np.ndarray) -> Value:
    """The elements of `source` at row-major places, zero where it has none; elements at one place add up."""
    mine, values = source._flat, source._elements.value
    if mine.size == flat.size and np.array_equal(mine, flat) and source._coalesced:
        return values
    places, target = np.unique(mine, return_inverse=True)
    total = scattered(values, target.reshape(-1), places.size + 1)  # the last row stays zero
    at = np.searchsorted(places, flat)
    there = at < places.size
    there[there] = places[at[there]] == flat[there]
    return gathered(total, np.where(there, at, places.size))


def tensor_of(value: Value) -> Tensor:
    """The tensor of a gradient: sparse where the gradient is."""
    if type(value) is SparseValue:
        return SparseTensor._of(value.indices, from_array(value.values), value.shape, value.values.shape[0] < 2)
    return Tensor._make(value)


def gradient_of(tensor: Tensor) -> Value:
    """The gradient that a tensor, dense or sparse, stands for."""
    if isinstance(tensor, SparseTensor):
        return SparseValue(tensor._size, tensor._at, tensor._elements.value.numpy)
    return tensor.value


# ------------------------------------------------------------------------------------------------ compressed layouts
COMPRESSED = (dtypes.sparse_csr, dtypes.sparse_csc, dtypes.sparse_bsr, dtypes.sparse_bsc)
BY_ROW = (dtypes.sparse_csr, dtypes.sparse_bsr)
BLOCKED = (dtypes.sparse_bsr, dtypes.sparse_bsc)


class CompressedTensor(Compound):
    """A tensor whose rows (CSR, BSR) or columns (CSC, BSC) are compressed, elements or blocks of them.

    `_pointers` (*batch, lines + 1) and `_others` (*batch, n) are integers, `_elements` (*batch, n, *block, *dense sizes).
    """

    __slots__ = ("_pointers", "_others", "_elements", "_order")
    __module__ = "torch"
    _backend, _noun = "SparseCsrCPU", "SparseCsrTensorImpl"
    is_sparse = False

    @classmethod
    def _of(cls, pointers, others, elements, size, layout):
        self = cls._blank(size, elements._dtype)
        self._pointers, self._others, self._elements, self._order = pointers, others, elements, layout
        return self

    @property
    def layout(self):
        return self._order

    @property
    def is_sparse_csr(self):
        return self._order is dtypes.sparse_csr

    @property
    def _kind(self):
        return "Sparse" + repr(self._order).rpartition("_")[2].capitalize()

    @property
    def _flow(self):
        return self._elements

    def _like(self, flow):
        return CompressedTensor._of(self._pointers, self._others, flow, self._size, self._order)

    @property
    def _batch(self):
        """How many leading dimensions are batches."""
        return self._pointers.ndim - 1

    @property
    def _block(self):
        """The size of a block; (1, 1) where elements stand alone."""
        if self._order not in BLOCKED:
            return (1, 1)
        at = self._batch + 1
        return tuple(self._elements._size[at:at + 2])

    def _lines(self) -> np.ndarray:
        """(batch + 2, n) int64: batch, row and column of each element or block."""
        pointers, others = self._pointers.value.numpy.astype(np.int64), self._others.value.numpy.astype(np.int64)
        batch = pointers.shape[:-1]
        count = others.shape[-1]
        lines = np.arange(pointers.shape[-1] - 1)
        rows = []
        for one in pointers.reshape(-1, pointers.shape[-1]):
            line = np.repeat(lines, np.diff(one))
            if line.size != count:
                raise RuntimeError(f"the compressed indices speak of {line.size} elements, but there are {count}")
            rows.append(line)
        line = np.concatenate(rows) if rows else np.zeros(0, np.int64)
        lead = np.indices((*batch, count)).reshape(len(batch) + 1, -1)[:-1] if batch else np.zeros((0, count), np.int64)
        pair = [line, others.reshape(-1)]
        return np.concatenate([lead, np.stack(pair if self._order in BY_ROW else pair[::-1])])

    def _part_of(self, gradient):
        if isinstance(gradient, CompressedTensor) and gradient._order is self._order and (
                gradient._others is self._others or gradient._elements._size == self._elements._size
                and np.array_equal(gradient._lines(), self._lines())):
            return gradient._elements
        dense = gradient.to_dense() if gradient._compound else gradient
        return self._sampled(dense)

    def _sampled(self, dense):
        """The elements of a dense tensor at this tensor's places."""
        lines, (high, wide) = self._lines(), self._block
        value = dense.value
        batch = self._batch
        if (high, wide) != (1, 1):  # blocks first: (*batch, rows, columns, high, wide, *dense sizes)
            rows, columns = self._size[batch] // high, self._size[batch + 1] // wide
            rest = value.shape[batch + 2:]
            value = prims.reshape(value, shape=(*value.shape[:batch], rows, high, columns, wide, *rest))
            order = (*range(batch), batch, batch + 2, batch + 1, batch + 3, *range(batch + 4, value.ndim))
            value = prims.transpose(value, axes=order)
        lead = value.shape[:batch + 2]
        flat = prims.reshape(value, shape=(int(np.prod(lead)), *value.shape[batch + 2:]))
        found = gathered(flat, flat_places(lead, lines))
        return Tensor._make(prims.reshape(found, shape=tuple(self._elements._size)))

    def _written(self, new):
        if new._others is self._others and new._elements._size == self._elements._size:
            self._elements._write(new._elements.value)
        else:
            self._take(new)


def accumulated(have, gradient: Value, spread=False):
    """What `.grad` becomes where it, `have`, or the gradient that comes to it is sparse; None where `have` was written to.

    `spread`: PyTorch's values of the gradient would be one number expanded, which it appends instead of merging them.
    """
    if have is None:
        return gradient.shown()
    if not have._compound:
        have._write(prims.add(have.value, gradient))
        return None
    if type(gradient) is SparseValue:
        mine = gradient_of(have)
        total = mine.beside(gradient) if spread else mine.plus(gradient)
        have._written(SparseTensor._of(total.indices, from_array(total.values), have._size, have._coalesced and total.ascending))
        return None
    return Tensor._make(prims.add(gradient, gradient_of(have)))


SparseValue.shown = tensor_of


def empty(size, layout, elements):
    """A tensor of this size without elements; `elements` is the empty one-dimensional tensor that it keeps them in."""
    if layout is dtypes.sparse_coo:
        return SparseTensor._of(np.zeros((len(size), 0), np.int64), elements, size, len(size) > 0)
    if len(size) < 2 or layout not in (dtypes.sparse_csr, dtypes.sparse_csc):
        raise NotImplementedError(f"an empty tensor of size {list(size)} and layout {layout} is not supported; torch.sparse_csr_tensor "
                                  "and its kin make one from indices and values")
    lead, lines = size[:-2], size[-2] if layout in BY_ROW else size[-1]
    pointers = from_array(np.zeros((*lead, lines + 1), np.int64))
    others = from_array(np.zeros((*lead, 0), np.int64))
    return CompressedTensor._of(pointers, others, elements.reshape((*lead, 0)) if lead else elements, size, layout)
