"""Shapes of sparse tensors: transposing, selecting, joining."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tensor import Tensor, cast_value, dtypes
from msadapter_hook.tensor.compound import recorded_name, refusal
from msadapter_hook.tensor.geometry import wrap_dim
from msadapter_hook.tensor.sparse import BLOCKED, CompressedTensor, SparseTensor, gathered, passed

from ..compound import implement
from ..tables import call
from .conversion import plain_tensor, to_coordinates, wrapped_dims
from .origin import follow

_OTHER_WAY = {dtypes.sparse_csr: dtypes.sparse_csc, dtypes.sparse_csc: dtypes.sparse_csr, dtypes.sparse_bsr: dtypes.sparse_bsc,
              dtypes.sparse_bsc: dtypes.sparse_bsr}


# ------------------------------------------------------------------------------------------------ order of dimensions
def _permuted(self, order, name):
    sparse = self._places._size[0]
    if any((new < sparse) != (old < sparse) for new, old in enumerate(order)):
        raise RuntimeError(f"transpose: transposed dimensions must both be sparse or both dense; the tensor has {sparse} sparse "
                           f"dimensions and {self.ndim - sparse} dense ones")
    at = self._places.value.numpy[list(order[:sparse])]
    dense = [d - sparse + 1 for d in order[sparse:]]
    elements = call("permute", self._elements, (0, *dense)) if dense != sorted(dense) else passed(self._elements, name)
    size = [self._size[d] for d in order]
    made = recorded_name(SparseTensor._of(at, elements, size, self._coalesced and list(order) == sorted(order)), name)
    return follow(made, lambda a: call("permute", a, tuple(order)), self)


@implement(SparseTensor, names="transpose swapaxes swapdims")
def transpose(self, dim0=None, dim1=None, axis0=None, axis1=None, name="TransposeBackward0"):
    first, second = (dim0, dim1) if dim0 is not None else (axis0, axis1)
    order = list(range(self.ndim))
    i, j = wrap_dim(first, self.ndim), wrap_dim(second, self.ndim)
    order[i], order[j] = order[j], order[i]
    return _permuted(self, order, name)


@implement(SparseTensor, names="permute")
def permute(self, dims):
    order = wrapped_dims(dims, self.ndim)
    if len(order) != self.ndim:
        raise RuntimeError("permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
                           f"ordering of dimensions i.e. input.dim() = {self.ndim} is not equal to len(dims) = {len(order)}")
    return _permuted(self, order, "PermuteBackward0")


@implement(SparseTensor, names="t")
def t(self):
    sparse, dense = self._places._size[0], self._elements.ndim - 1
    if sparse > 2 or dense:
        raise RuntimeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {sparse} sparse and {dense} dense "
                           "dimensions")
    return _permuted(self, list(range(self.ndim))[::-1], "TBackward0")


@implement(CompressedTensor, names="t")
def turned(self):
    return compressed_transpose(self, 0, 1)


@implement(CompressedTensor, names="transpose swapaxes swapdims")
def compressed_transpose(self, dim0=None, dim1=None, axis0=None, axis1=None):
    first, second = (dim0, dim1) if dim0 is not None else (axis0, axis1)
    pair = {wrap_dim(first, self.ndim), wrap_dim(second, self.ndim)}
    if len(pair) == 1:
        return self
    if pair != {self._batch, self._batch + 1}:
        raise RuntimeError("transpose(): only the two sparse dimensions of a compressed tensor can be exchanged, but got "
                           f"{sorted(pair)}")
    size = list(self._size)
    size[self._batch], size[self._batch + 1] = size[self._batch + 1], size[self._batch]
    if self._order in BLOCKED:
        elements = call("transpose", self._elements, self._batch + 1, self._batch + 2)
    else:
        elements = passed(self._elements, "TransposeBackward0")
    made = CompressedTensor._of(self._pointers, self._others, elements, size, _OTHER_WAY[self._order])
    made = recorded_name(made, "TransposeBackward0")
    return follow(made, lambda a: call("transpose", a, self._batch, self._batch + 1), self)


# ------------------------------------------------------------------------------------------------ parts
def _check_index(self, dim, index):
    length = self._size[dim]
    if not -length <= index < length:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(self._size)} at dimension {dim}")
    return index % length if length else index


@implement(SparseTensor, names="select")
def select(self, dim, index):
    dim = wrap_dim(dim, self.ndim)
    index = _check_index(self, dim, int(index))
    sparse = self._places._size[0]
    size = [n for d, n in enumerate(self._size) if d != dim]
    if dim >= sparse:
        elements = call("select", self._elements, dim - sparse + 1, index)
        return recorded_name(SparseTensor._of(self._places, elements, size, self._coalesced), "SelectBackward0")
    at = self._at
    chosen = np.flatnonzero(at[dim] == index)
    values = gathered(self._elements.value, chosen)
    if sparse == 1:  # nothing sparse is left
        return recorded_name(call("sum", plain_tensor(values, self._dtype), (0,)).to(self._dtype), "SelectBackward0")
    made = SparseTensor._of(np.delete(at[:, chosen], dim, 0), plain_tensor(values, self._dtype), size, len(size) and chosen.size < 2)
    return recorded_name(made, "SelectBackward0")


@implement(CompressedTensor, names="select")
def compressed_select(self, dim, index):
    dim = wrap_dim(dim, self.ndim)
    index = _check_index(self, dim, int(index))
    if dim < self._batch:
        parts = [call("select", part, dim, index) for part in (self._pointers, self._others, self._elements)]
        return CompressedTensor._of(*parts, [n for d, n in enumerate(self._size) if d != dim], self._order)
    return select(to_coordinates(self), dim, index)


@implement(SparseTensor, names="index_select")
def index_select(self, dim, index):
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    dim = wrap_dim(dim, self.ndim)
    sparse, wanted = self._places._size[0], index.value.numpy.reshape(-1)
    length = self._size[dim]
    if wanted.size and (wanted.min() < -length or wanted.max() >= length):
        bad = wanted[(wanted < -length) | (wanted >= length)][0]
        raise IndexError(f"index_select(): index contains {int(bad)} that is out of range for tensor of size {list(self._size)} at "
                         f"dimension {dim}")
    wanted = wanted % length if length else wanted
    size = [wanted.size if d == dim else n for d, n in enumerate(self._size)]
    if dim >= sparse:
        elements = call("index_select", self._elements, dim - sparse + 1, index)
        return recorded_name(SparseTensor._of(self._places, elements, size, self._coalesced), "IndexSelectBackward0")
    at = self._at
    order = np.argsort(at[dim], kind="stable")
    row = at[dim][order]
    low, high = np.searchsorted(row, wanted, "left"), np.searchsorted(row, wanted, "right")
    counts = high - low
    new = np.repeat(np.arange(wanted.size), counts)
    source = order[np.arange(new.size) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(low, counts)]
    places = at[:, source].copy()
    places[dim] = new
    values = gathered(self._elements.value, source)
    made = SparseTensor._of(places, plain_tensor(values, self._dtype), size, self._coalesced and source.size < 2)
    return recorded_name(made, "IndexSelectBackward0")


@implement(SparseTensor, names="narrow_copy")
def narrow_copy(self, dim, start, length):
    dim = wrap_dim(dim, self.ndim)
    start = start if start >= 0 else start + self._size[dim]
    if start + length > self._size[dim] or length < 0:
        raise RuntimeError(f"Invalid range, start: {start}, length: {length} for dimension of size {self._size[dim]}")
    sparse = self._places._size[0]
    size = [length if d == dim else n for d, n in enumerate(self._size)]
    if dim >= sparse:
        return SparseTensor._of(self._places, call("narrow", self._elements, dim - sparse + 1, start, length).contiguous(), size,
                                self._coalesced)
    at = self._at
    chosen = np.flatnonzero((at[dim] >= start) & (at[dim] < start + length))
    places = at[:, chosen].copy()
    places[dim] -= start
    made = SparseTensor._of(places, plain_tensor(gathered(self._elements.value, chosen), self._dtype), size, self._coalesced)
    return recorded_name(made, "NarrowCopyBackward0")


def unbind(self, dim=0):
    return tuple([call("select", self, dim, i) for i in range(self._size[wrap_dim(dim, self.ndim)])])


implement(SparseTensor, CompressedTensor, names="unbind")(unbind)


# ------------------------------------------------------------------------------------------------ new dimensions, joining
@implement(SparseTensor, names="unsqueeze")
def unsqueeze(self, dim):
    dim = wrap_dim(dim, self.ndim + 1)
    sparse = self._places._size[0]
    size = [*self._size[:dim], 1, *self._size[dim:]]
    if dim > sparse:
        elements = call("unsqueeze", self._elements, dim - sparse + 1)
        return recorded_name(SparseTensor._of(self._places, elements, size, self._coalesced), "UnsqueezeBackward0")
    at = np.insert(self._places.value.numpy, dim, 0, 0)
    made = SparseTensor._of(at, passed(self._elements, "UnsqueezeBackward0"), size, self._places._size[1] < 2)
    return recorded_name(made, "UnsqueezeBackward0")


@implement(SparseTensor, names="cat concat concatenate")
def cat(tensors, dim=0):
    first = tensors[0]
    for place, one in enumerate(tensors):
        if not isinstance(one, SparseTensor):
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {place}")
    dim = wrap_dim(dim, first.ndim)
    sparse = first._places._size[0]
    dtype = first._dtype
    for place, one in enumerate(tensors):
        if one._places._size[0] != sparse or one.ndim != first.ndim:
            raise RuntimeError(f"All tensors must have the same sparse and dense dimensions, but tensor at position {place} has "
                               f"{one._places._size[0]} and {one.ndim - one._places._size[0]}, where tensor at position 0 has {sparse} "
                               f"and {first.ndim - sparse}.")
        if any(a != b for d, (a, b) in enumerate(zip(one._size, first._size)) if d != dim):
            raise RuntimeError("All tensors must have the same shape: "
                               f"{list(first._size)} (except in the concatenating dimension), but found shape: {list(one._size)} at "
                               f"position {place}")
        dtype = dtypes.promote_types(dtype, one._dtype)
    size = [sum(t._size[dim] for t in tensors) if d == dim else n for d, n in enumerate(first._size)]
    values, places, before = [], [], 0
    for one in tensors:
        value = cast_value(one._elements.value, dtype)
        at = one._places.value.numpy
        if dim < sparse:
            at = at.copy()
            at[dim] += before
        else:  # zeros on both sides, in the dense dimension
            value = _widened(value, dim - sparse + 1, before, size[dim])
        before += one._size[dim]
        values.append(value)
        places.append(at)
    elements = plain_tensor(prims.concat(*values, axis=0) if len(values) > 1 else values[0], dtype)
    return recorded_name(SparseTensor._of(np.concatenate(places, 1), elements, size), "CatBackward0")


def _widened(value, axis, before, length):
    pads = [(0, 0)] * value.ndim
    pads[axis] = (before, length - before - value.shape[axis])
    made = Tensor._make(value)
    flat = [n for pair in reversed(pads) for n in pair]
    return call("nn.functional.pad", made, flat).value


@implement(SparseTensor, names="stack")
def stack(tensors, dim=0):
    first = tensors[0]
    for place, one in enumerate(tensors):
        if one._size != first._size:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(first._size)} at entry 0 and "
                               f"{list(one._size)} at entry {place}")
    dim = wrap_dim(dim, first.ndim + 1)
    return recorded_name(cat([unsqueeze(one, dim) for one in tensors], dim), "StackBackward0")


@implement(SparseTensor, names="squeeze")
def squeeze(self, dim=None):
    raise refusal("squeeze", self, "select(dim, 0) takes a dimension of size 1 away")


@implement(SparseTensor, names="expand broadcast_to")
def expand(self, size, implicit=False):
    raise RuntimeError("expand is unsupported for Sparse tensors")


@implement(SparseTensor, names="broadcast_tensors")
def broadcast_tensors(tensors):
    if all(one._size == tensors[0]._size for one in tensors):
        return tuple(tensors)
    raise RuntimeError("expand is unsupported for Sparse tensors")


@implement(SparseTensor, names="reshape flatten")
def reshape(self, shape=None, start_dim=0, end_dim=-1):
    raise RuntimeError("reshape is not implemented for sparse tensors")


@implement(SparseTensor, CompressedTensor, names="contiguous")
def contiguous(self, memory_format=None):
    raise RuntimeError("unsupported memory format option Contiguous")


def _turned_in_place(function):
    def run(self, *dims):
        self._take(function(self, *dims))
        return self

    return run


for _name, _function in {"transpose_": transpose, "swapaxes_": transpose, "swapdims_": transpose, "t_": t}.items():
    setattr(SparseTensor, _name, _turned_in_place(_function))


def getitem(self, key):
    """`self[key]` by numbers, None and Ellipsis. NotImplementedError for slices and tensors, which PyTorch has neither."""
    keys = list(key) if isinstance(key, tuple) else [key]
    dims = sum(1 for k in keys if k is not None and k is not Ellipsis)
    if dims > self.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
    made, dim = self, 0
    for at, k in enumerate(keys):
        if k is None:
            made, dim = call("unsqueeze", made, dim), dim + 1
        elif k is Ellipsis:
            dim += self.ndim - dims
        elif isinstance(k, slice):
            if k != slice(None):
                raise refusal("slice", self, "select, index_select or narrow_copy take parts of it")
            dim += 1
        elif isinstance(k, (bool, list)) or isinstance(k, Tensor) and (k._compound or k.ndim or k._dtype is dtypes.bool_):
            raise refusal("index.Tensor", self, "index_select takes several places of one dimension")
        else:
            if at == 0 or made._compound:
                made = call("select", made, dim, int(k))
            else:
                made = made.select(dim, int(k))
    return made
