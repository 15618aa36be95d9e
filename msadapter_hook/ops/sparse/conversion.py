"""From one layout to another: dense, coordinates, compressed; coalescing; taking elements at a mask's places."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.errors import unsupported
from msadapter_hook.tape.sparse import flat_places
from msadapter_hook.tensor import Tensor, cast_value, dtypes, from_array
from msadapter_hook.tensor.compound import recorded_name
from msadapter_hook.tensor.geometry import wrap_dim
from msadapter_hook.tensor.sparse import (
    BLOCKED,
    BY_ROW,
    COMPRESSED,
    CompressedTensor,
    SparseTensor,
    gathered,
    passed,
    scattered,
    values_at,
)

from .. import arguments
from .origin import origin_of, remember


def plain_tensor(value, dtype=None):
    return Tensor._make(value, dtype)


# ------------------------------------------------------------------------------------------------ coordinates
def coalesce(self):
    """The places sorted and each once, elements at one place added up; itself where it is so. Source: PyTorch, Tensor.coalesce."""
    if self._coalesced:
        return self
    at, flat = self._places.value.numpy, self._flat
    if flat.size and not (flat[1:] > flat[:-1]).all():
        _, first, target = np.unique(flat, return_index=True, return_inverse=True)
        values = scattered(self._elements.value, target.reshape(-1), first.size)
        elements = plain_tensor(values, self._dtype)
        made = SparseTensor._of(at[:, first], elements, self._size, True)
    else:
        made = SparseTensor._of(self._places, self._elements.clone(), self._size, True)
    return remember(recorded_name(made, "CoalesceBackward0"), origin_of(self))


def to_dense(self, dtype=None, masked_grad=None):
    """The dense tensor; elements at one place add up.

    NotImplementedError for `masked_grad=False`: a gradient reaches the elements that are there, and no others. Source: PyTorch,
    Tensor.to_dense.
    """
    if masked_grad is False and self.requires_grad:
        raise unsupported("Tensor.to_dense(masked_grad=False)", "leave it out; the gradient keeps to the elements that are there")
    if isinstance(self, CompressedTensor):
        made = _dense_of_compressed(self)
    else:
        sparse = self._places._size[0]
        rows = int(np.prod(self._size[:sparse], dtype=np.int64))
        made = plain_tensor(prims.reshape(scattered(self._elements.value, self._flat, rows), shape=tuple(self._size)), self._dtype)
    recorded_name(made, "ToDenseBackward0")
    return made if dtype is None else made.to(dtype)


def dense_dims(self):
    """How many of the last dimensions are dense."""
    if isinstance(self, SparseTensor):
        return self._elements.ndim - 1
    return self._elements.ndim - 1 - self._batch - 2 * (self._order in BLOCKED)


def to_coordinates(self):
    """A compressed tensor in coordinate layout; of a block, every element. Source: PyTorch, Tensor.to_sparse."""
    lines, (high, wide), batch = self._lines(), self._block, self._batch
    rest = tuple(self._elements._size[self._elements.ndim - dense_dims(self):])
    at, value = lines, self._elements.value
    if self._order in BLOCKED:
        inside = np.indices((high, wide)).reshape(2, -1)
        at = np.repeat(lines, high * wide, 1)
        at[batch] = at[batch] * high + np.tile(inside[0], lines.shape[1])
        at[batch + 1] = at[batch + 1] * wide + np.tile(inside[1], lines.shape[1])
    if value.ndim != 1 + len(rest):
        value = prims.reshape(value, shape=(at.shape[1], *rest))
        elements = plain_tensor(value, self._dtype)
    else:
        elements = passed(self._elements, "ToSparseBackward0")
    flat = flat_places(self._size, at)
    if self._order is dtypes.sparse_bsr and not (flat[1:] > flat[:-1]).all():
        order = np.argsort(flat, kind="stable")
        at, elements, flat = at[:, order], plain_tensor(gathered(elements.value, order), self._dtype), flat[order]
    ordered = self._order in BY_ROW and bool((flat[1:] > flat[:-1]).all())
    made = recorded_name(SparseTensor._of(at, elements, self._size, ordered), "ToSparseBackward0")
    return remember(made, origin_of(self))


def _dense_of_compressed(self):
    return to_dense(to_coordinates(self))


def _nonzero_places(tensor, sparse):
    """(places, flat places) of what is not zero over the first `sparse` dimensions."""
    array = tensor.detach().value.numpy
    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    if sparse < array.ndim:
        array = (array != 0).reshape(*array.shape[:sparse], -1).any(-1)
    if array.ndim == 0:
        return np.zeros((0, int(bool(array))), np.int64)
    return np.stack(np.nonzero(array)).astype(np.int64)


def dense_to_coordinates(self, sparse):
    """A dense tensor in coordinate layout over its first `sparse` dimensions."""
    if not 0 <= sparse <= self.ndim:
        raise RuntimeError(f"dense_to_sparse: sparse_dim argument must be in [0,{self.ndim}] range, but {sparse} is given")
    if sparse == 0 and self.ndim:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    return remember(at_places(self, _nonzero_places(self, sparse), True, "ToSparseBackward1"), self)


def at_places(dense, at, coalesced, name):
    """A sparse tensor with the elements of `dense` at these places."""
    sparse = at.shape[0]
    size = dense._size
    rows = int(np.prod(size[:sparse], dtype=np.int64))
    value = prims.reshape(dense.value, shape=(rows, *size[sparse:]))
    elements = plain_tensor(gathered(value, flat_places(size, at)), dense._dtype)
    return recorded_name(SparseTensor._of(at, elements, size, coalesced), name)


# ------------------------------------------------------------------------------------------------ compressed
def compress(self, layout, block=None, name="ToSparseBackward0"):
    """A coordinate tensor (two sparse dimensions) in a compressed layout without blocks."""
    one = coalesce(self)
    if one._places._size[0] != 2:
        raise RuntimeError(f"sparse_coo_to_sparse_{_short(layout)}: conversion from Sparse to {_title(layout)} for input tensors with "
                           f"sparse_dim()!=2 is not supported")
    at, elements = one._places.value.numpy, one._elements
    row, column = (0, 1) if layout in BY_ROW else (1, 0)
    if layout not in BY_ROW:
        order = np.argsort(at[1], kind="stable")
        at, elements = at[:, order], plain_tensor(gathered(elements.value, order), self._dtype)
    else:
        elements = passed(elements, name)
    pointers = np.concatenate([[0], np.cumsum(np.bincount(at[row], minlength=self._size[row]))]).astype(np.int64)
    made = CompressedTensor._of(from_array(pointers), from_array(at[column].copy()), elements, self._size, layout)
    return remember(recorded_name(made, name), origin_of(self))


def _short(layout):
    return repr(layout).rpartition("_")[2]


def _title(layout):
    return "Sparse" + _short(layout).capitalize()


def compress_dense(self, layout, block, dense):
    """A dense tensor (*batch, rows, columns, *dense sizes) in a compressed layout; each batch must have as many elements."""
    dense = dense or 0
    batch = self.ndim - 2 - dense
    if batch < 0:
        raise RuntimeError(f"Expected self to have at least {2 + dense} dimensions to be converted to {_title(layout)}, but got "
                           f"{self.ndim}")
    high, wide = block or (1, 1)
    rows, columns = self._size[batch], self._size[batch + 1]
    if rows % high or columns % wide:
        raise RuntimeError(f"tensor sparse size ({rows},{columns}) must be divisible by given blocksize ({high},{wide})")
    lead = (*self._size[:batch], rows // high, columns // wide)
    value = self.value
    if block is not None:
        rest = tuple(self._size[batch + 2:])
        value = prims.reshape(value, shape=(*lead[:-1], high, lead[-1], wide, *rest))
        order = (*range(batch), batch, batch + 2, batch + 1, batch + 3, *range(batch + 4, value.ndim))
        value = prims.transpose(value, axes=order)
    array = value.numpy if value.dtype.kind != "V" else value.numpy.astype(np.float32)
    there = (array != 0).reshape(*lead, -1).any(-1) if array.ndim > batch + 2 else array != 0
    many = int(np.prod(lead[:batch], dtype=np.int64))
    flat = there.reshape(many, *lead[batch:])
    by_row = layout in BY_ROW
    counts = {int(one.sum()) for one in flat}
    if len(counts) > 1:
        raise RuntimeError("Expect the same number of specified elements per batch.")
    pointers, others, found = [], [], []
    for b, one in enumerate(flat):
        line, other = np.nonzero(one if by_row else one.T)
        pointers.append(np.concatenate([[0], np.cumsum(np.bincount(line, minlength=lead[batch if by_row else batch + 1]))]))
        others.append(other)
        row, column = (line, other) if by_row else (other, line)
        found.append((b * lead[batch] + row) * lead[batch + 1] + column)
    count = counts.pop() if counts else 0
    shape = tuple(self._size[:batch])
    at = np.concatenate(found) if found else np.zeros(0, np.int64)
    rest = value.shape[batch + 2:]
    values = gathered(prims.reshape(value, shape=(int(np.prod(lead, dtype=np.int64)), *rest)), at)
    values = prims.reshape(values, shape=(*shape, count, *rest))
    lines = lead[batch if by_row else batch + 1]
    made = CompressedTensor._of(
        from_array(np.array(pointers, np.int64).reshape(*shape, lines + 1)),
        from_array(np.array(others, np.int64).reshape(*shape, count)), plain_tensor(values, self._dtype), self._size, layout)
    return recorded_name(made, "ToSparseBackward0")


def _as_layout(self, layout, block, dense):
    """Any tensor in `layout`."""
    if layout in BLOCKED and block is None:
        raise RuntimeError(f"to_sparse: {_title(layout)} layout needs a blocksize")
    if layout not in BLOCKED and block is not None:
        raise RuntimeError(f"to_sparse for {self.layout} to {layout} conversion does not use specified blocksize")
    block = tuple(arguments.integers(block)) if block is not None else None
    if self.layout is layout and (block is None or block == self._block):
        return self
    if not self._compound:
        return remember(compress_dense(self, layout, block, dense), self)
    if block is not None:
        made = compress_dense(to_dense(self), layout, block, dense_dims(self))
        return made
    if isinstance(self, CompressedTensor):
        if self._order in BLOCKED:
            raise RuntimeError(f"sparse_compressed_to_sparse_{_short(layout)}: expected SparseCsr or SparseCsc layout but got {self._kind}")
        if self._batch:
            return compress_dense(to_dense(self), layout, None, dense_dims(self))
        self = to_coordinates(self)
    return compress(self, layout)


def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """The tensor in a sparse layout (coordinates unless `layout` says another); what is zero is left out.

    `sparse_dim`: how many leading dimensions are sparse (all). Source: PyTorch, Tensor.to_sparse.
    """
    if sparse_dim is not None and (isinstance(sparse_dim, bool) or not isinstance(sparse_dim, int)):
        raise TypeError(f"to_sparse() received an invalid combination of arguments - got ({arguments.type_name(sparse_dim)}), but "
                        "expected one of:\n * (*, torch.layout layout = None, tuple of ints blocksize = None, int dense_dim = None)\n "
                        "* (int sparse_dim)\n")
    layout = layout or dtypes.sparse_coo
    if layout in COMPRESSED:
        return _as_layout(self, layout, blocksize, dense_dim)
    if layout is not dtypes.sparse_coo:
        raise RuntimeError(f"to_sparse: unexpected layout {layout}")
    if isinstance(self, CompressedTensor):
        return to_coordinates(self)
    if isinstance(self, SparseTensor):
        if sparse_dim is not None and sparse_dim != self._places._size[0]:
            raise RuntimeError("to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not "
                               "supported")
        return self
    return dense_to_coordinates(self, self.ndim - (dense_dim or 0) if sparse_dim is None else sparse_dim)


def _converter(layout, blocked):
    if blocked:
        def convert(self, blocksize, dense_dim=None):
            return _as_layout(self, layout, (blocksize, blocksize) if isinstance(blocksize, int) else blocksize, dense_dim)
    else:
        def convert(self, dense_dim=None):
            return _as_layout(self, layout, None, dense_dim)
    convert.__name__ = f"to_sparse_{_short(layout)}"
    convert.__doc__ = f"The tensor in layout {layout}. Source: PyTorch, Tensor.{convert.__name__}."
    return convert


CONVERTERS = [_converter(layout, layout in BLOCKED) for layout in COMPRESSED]


def to_sparse_coo(self):
    """The tensor in coordinate layout. Source: PyTorch, Tensor.to_sparse_coo."""
    return to_sparse(self)


# ------------------------------------------------------------------------------------------------ masks
def sparse_mask(self, mask):
    """The elements of this tensor at the places of `mask`, a sparse tensor of the same size. Source: PyTorch, Tensor.sparse_mask."""
    if not isinstance(mask, (SparseTensor, CompressedTensor)):
        raise RuntimeError(f"sparse_mask(): expected mask to be sparse, but got {mask.layout}")
    if self._size != mask._size:
        raise RuntimeError(f"sparse_mask(): operands have incompatible sizes; self has size {list(self._size)} but mask has size "
                           f"{list(mask._size)}")
    if isinstance(mask, CompressedTensor):
        dense = to_dense(self) if self._compound else self
        return recorded_name(mask._like(mask._sampled(dense)), "SparseMaskBackward0")
    if isinstance(self, CompressedTensor):
        self = to_coordinates(self)
    at = mask._at
    if isinstance(self, SparseTensor):
        elements = plain_tensor(values_at(self, mask._flat), self._dtype)
        return recorded_name(SparseTensor._of(mask._places, elements, self._size, mask._coalesced), "SparseMaskBackward0")
    return at_places(self, at, mask._coalesced, "SparseMaskBackward0")


def converted(self, dtype):
    """A sparse tensor in another dtype."""
    value = cast_value(self._elements.value, dtype)
    return recorded_name(self._like(plain_tensor(value, dtype)), "ToCopyBackward0")


def wrapped_dims(dim, ndim):
    """Dimensions as non-negative numbers, all where none is given."""
    if dim is None:
        return tuple(range(ndim))
    found = tuple([wrap_dim(d, ndim) for d in ((dim,) if isinstance(dim, int) else dim)])
    if len(set(found)) < len(found):
        raise RuntimeError(f"dim {found[-1]} appears multiple times in the list of dims")
    return found
