"""Putting tensors together and taking them apart: cat, stack, split, chunk, unbind, meshgrid and their kin."""

import itertools

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tensor import Tensor, dtypes, geometry
from msadapter_hook.tensor import view as moves
from msadapter_hook.tensor.geometry import wrap_dim

from .arguments import type_name
from .promotion import result_type, to
from .registry import composite, operator, plain, view, warn_once
from .tables import METHODS, call
from .views import many, sliced


# ------------------------------------------------------------------------------------------------ together
def _joined_dim(values, dim):
    """The dimension that `dim` names among the tensors that count (a 1-D empty one is passed over)."""
    for i, v in enumerate(values):
        if not v.shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    ranked = next((v for v in values if v.shape != (0,)), values[0])
    return 0 if all(v.shape == (0,) for v in values) else wrap_dim(dim, ranked.ndim), ranked


@operator("cat(Tensor[] tensors, int dim=0) -> Tensor", forms="function out", aliases=("concat", "concatenate"),
          overlap="any", layout="channels")
def cat(tensors, dim=0):
    """Tensors joined along `dim`; other dimensions must agree, dtypes are promoted. Source: PyTorch, torch.cat."""
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    axis, ranked = _joined_dim(tensors, dim)
    kept, passed = [], []
    for i, v in enumerate(tensors):
        if v.shape == (0,) and ranked.ndim != 1:
            passed.append(v)
            continue
        if v.ndim != ranked.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {ranked.ndim} and {v.ndim}")
        for d, (n, m) in enumerate(zip(ranked.shape, v.shape)):
            if n != m and d != axis:
                raise RuntimeError(f"Sizes of tensors must match except in dimension {axis}. Expected size {n} but got "
                                   f"size {m} for tensor number {i} in the list.")
        kept.append(v)
    kept = kept or [tensors[0]]
    dtype = tensors[0].dtype
    if any(v.dtype != dtype for v in tensors):
        dtype = result_type(*tensors)
        kept = [to(v, dtype) for v in kept]
    joined = prims.concat(*kept, axis=axis)
    return prims.beside(joined, *passed) if passed else joined


@operator("stack(Tensor[] tensors, int dim=0) -> Tensor", forms="function out", overlap="any")
def stack(tensors, dim=0):
    """Tensors of one size along a new dimension. Source: PyTorch, torch.stack."""
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0]
    axis = wrap_dim(dim, first.ndim + 1)
    for i, v in enumerate(tensors):
        if v.shape != first.shape:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(first.shape)} at entry 0 "
                               f"and {list(v.shape)} at entry {i}")
    if any(v.dtype != first.dtype for v in tensors):
        dtype = result_type(*tensors)
        tensors = [to(v, dtype) for v in tensors]
    return prims.stack(*tensors, axis=axis)


def _nonempty(name, tensors):
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")


@composite("hstack(Tensor[] tensors) -> Tensor", forms="function out")
def hstack(tensors):
    """Side by side: along the second dimension, vectors along the first. Source: PyTorch, torch.hstack."""
    _nonempty("hstack", tensors)
    tensors = [atleast_1d(t) for t in tensors]
    return call("cat", tensors, 0 if tensors[0].dim() == 1 else 1)


@composite("vstack(Tensor[] tensors) -> Tensor", forms="function out", aliases=("row_stack",))
def vstack(tensors):
    """One below the other. Source: PyTorch, torch.vstack."""
    _nonempty("vstack", tensors)
    return call("cat", [atleast_2d(t) for t in tensors], 0)


@composite("dstack(Tensor[] tensors) -> Tensor", forms="function out")
def dstack(tensors):
    """One behind the other, along the third dimension. Source: PyTorch, torch.dstack."""
    _nonempty("dstack", tensors)
    return call("cat", [atleast_3d(t) for t in tensors], 2)


@composite("column_stack(Tensor[] tensors) -> Tensor", forms="function out")
def column_stack(tensors):
    """Vectors as columns, matrices side by side. Source: PyTorch, torch.column_stack."""
    _nonempty("column_stack", tensors)
    return hstack([t.reshape((t.numel(), 1)) if t.dim() <= 1 else t for t in tensors])


def _whole_or_each(one):
    """`torch.atleast_2d(a)`, `torch.atleast_2d(a, b)` and `torch.atleast_2d([a, b])`."""

    def atleast(*tensors):
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return one(tensors[0])
        return tuple([one(t) for t in variadic(tensors)])

    atleast.__name__, atleast.__doc__ = one.__name__, one.__doc__
    return plain(atleast)


def atleast_1d(t):
    """At least one dimension. Source: PyTorch, torch.atleast_1d."""
    return t if t.dim() else t.reshape((1,))


def atleast_2d(t):
    """At least two dimensions; a vector becomes a row. Source: PyTorch, torch.atleast_2d."""
    return t.reshape((1, 1)) if not t.dim() else t.unsqueeze(0) if t.dim() == 1 else t


def atleast_3d(t):
    """At least three dimensions. Source: PyTorch, torch.atleast_3d."""
    if not t.dim():
        return t.reshape((1, 1, 1))
    return t.unsqueeze(0).unsqueeze(-1) if t.dim() == 1 else t.unsqueeze(-1) if t.dim() == 2 else t


for _one in (atleast_1d, atleast_2d, atleast_3d):
    _whole_or_each(_one)


@composite("_block_diag(Tensor[] tensors) -> Tensor", forms="function")
def _block_diag(tensors):
    """The tensors as blocks along the diagonal of a matrix. Source: PyTorch, torch.block_diag."""
    blocks = []
    for i, t in enumerate(tensors):
        if t.dim() > 2:
            raise RuntimeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has "
                               f"{t.dim()} dimensions")
        blocks.append(atleast_2d(t))
    if not blocks:
        return call("zeros", (1, 0))
    dtype = result_type(*[b.value for b in blocks])
    columns, at, rows = sum(b.size(1) for b in blocks), 0, []
    for b in blocks:
        b = b.to(dtype)
        left = call("zeros", (b.size(0), at), dtype=dtype)
        right = call("zeros", (b.size(0), columns - at - b.size(1)), dtype=dtype)
        rows.append(call("cat", [left, b, right], 1))
        at += b.size(1)
    return call("cat", rows, 0)


@composite("broadcast_to(Tensor self, int[] size) -> Tensor")
def broadcast_to(self, size):
    """The tensor expanded to `size`. Source: PyTorch, torch.broadcast_to."""
    return self.expand(size)


@composite("expand_as(Tensor self, Tensor other) -> Tensor", forms="method")
def expand_as(self, other):
    """Expanded to the size of `other`. Source: PyTorch, Tensor.expand_as."""
    return self.expand(other.size())


def variadic(args):
    """The tensors of a call that takes them one by one or in one sequence."""
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = args[0]
    for t in args:
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element in argument 0, but got {type_name(t)}")
    return list(args)


@plain
def broadcast_tensors(*tensors):
    """The tensors expanded to their common shape. Source: PyTorch, torch.broadcast_tensors."""
    tensors = variadic(tensors)
    shape = geometry.broadcast_shapes(*[t._size for t in tensors])
    return tuple([t if t._size == shape else t.expand(shape) for t in tensors])


@plain
def block_diag(*tensors):
    """The tensors as blocks along the diagonal of a matrix. Source: PyTorch, torch.block_diag."""
    return call("_block_diag", variadic(tensors))


@plain
def meshgrid(*tensors, indexing=None):
    """Coordinates of the grid spanned by vectors: one tensor per vector, all of the grid's shape.

    `indexing`: "ij" (the order of the vectors) or "xy" (the first two swapped). Source: PyTorch, torch.meshgrid.
    """
    tensors = variadic(tensors)
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for t in tensors:
        if t.dim() > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {list(t.shape)}")
        if t._dtype is not tensors[0]._dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if indexing is None:
        warn_once("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swap = indexing == "xy" and len(tensors) > 1
    if swap:
        tensors[:2] = tensors[1::-1]
    shape = tuple([t.numel() for t in tensors])
    grids = [t.view((1,) * i + (-1,) + (1,) * (len(tensors) - i - 1)).expand(shape) if t.numel() else
             t.reshape((1,) * i + (0,) + (1,) * (len(tensors) - i - 1)).expand(shape) for i, t in enumerate(tensors)]
    if swap:
        grids[:2] = grids[1::-1]
    return tuple(grids)


@plain
def cartesian_prod(*tensors):
    """All combinations of one element of each vector, as rows. Source: PyTorch, torch.cartesian_prod."""
    tensors = variadic(tensors)
    for t in tensors:
        if t.dim() != 1:
            raise RuntimeError("Expect a 1D vector, but got shape " + str(list(t.shape)))
    if len(tensors) == 1:
        return tensors[0]
    return call("stack", [g.flatten() for g in meshgrid(*tensors, indexing="ij")], 1)


@composite("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", forms="function")
def combinations(self, r=2, with_replacement=False):
    """All choices of `r` elements of a vector, as rows. Source: PyTorch, torch.combinations."""
    if self.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(self.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return call("empty", (0,), dtype=self._dtype)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(self.numel()), r)), np.int64).reshape(-1, r)
    from msadapter_hook.tensor import from_array

    return self.index_select(0, from_array(rows.reshape(-1))).view(rows.shape)


# ------------------------------------------------------------------------------------------------ apart
def _pieces(self, d, sizes, name):
    starts = [0, *itertools.accumulate(sizes)]
    return many([sliced(self, d, s, s + n, 1, name) for s, n in zip(starts, sizes)], name)


def _dimensioned(self, name):
    if self.dim() == 0:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor")


def split_size(self, size, dim):
    """Pieces of `size` along `dim`, the last one smaller."""
    _dimensioned(self, "split")
    d = wrap_dim(dim, self.ndim)
    n = self._size[d]
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    if size == 0:
        if n:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
        return _pieces(self, d, [0], "split")
    sizes = [min(size, n - at) for at in range(0, n, size)] or [0]
    return _pieces(self, d, sizes, "split")


def split_sizes(self, sizes, dim):
    """Pieces of the given sizes, which must sum to the dimension's."""
    _dimensioned(self, "split")
    d = wrap_dim(dim, self.ndim)
    for n in sizes:
        if n < 0:
            raise RuntimeError("split_with_sizes expects split_sizes have only non-negative entries, but got "
                               f"split_sizes={list(sizes)}")
    if sum(sizes) != self._size[d]:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {self._size[d]} (input tensor's "
                           f"size at dimension {dim}), but got split_sizes={list(sizes)}")
    return _pieces(self, d, sizes, "split_with_sizes")


def _split(self, size, dim=0):
    """Pieces of one size or of given sizes along `dim`, as views. Source: PyTorch, torch.split."""
    return split_sizes(self, size, dim) if isinstance(size, tuple) else split_size(self, size, dim)


for _names in ("split(Tensor self, {kind} split_size, int dim=0) -> Tensor[]",
               "split(Tensor self, {kind} split_size_or_sections, int dim=0) -> Tensor[]",
               "split(Tensor tensor, {kind} split_size_or_sections, int dim=0) -> Tensor[]"):
    for _kind in ("int", "int[]"):
        view(_names.format(kind=_kind))(_split)


@view("split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]")
def split_with_sizes(self, sizes, dim=0):
    """Pieces of the given sizes, as views. Source: PyTorch, torch.split_with_sizes."""
    return split_sizes(self, sizes, dim)


@view("chunk(Tensor self, int chunks, int dim=0) -> Tensor[]")
def chunk(self, chunks, dim=0):
    """At most `chunks` pieces of one size, as views. Source: PyTorch, torch.chunk."""
    _dimensioned(self, "chunk")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    d = wrap_dim(dim, self.ndim)
    size = -(-self._size[d] // chunks)
    if size == 0:
        return _pieces(self, d, [0] * chunks, "split_with_sizes")
    return split_size(self, size, dim)


def _bounds_sizes(n, bounds):
    at, windows = 0, []
    for b in (*bounds, n):
        windows.append((at, b))
        at = b
    return windows


def _tensor_split(self, parts, dim, name):
    if self.dim() == 0:
        raise RuntimeError(f"{name} expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = wrap_dim(dim, self.ndim)
    n = self._size[d]
    if isinstance(parts, int):
        if parts <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {parts}")
        least, more = divmod(n, parts)
        return _pieces(self, d, [least + (i < more) for i in range(parts)], "slice")
    windows = []
    for low, high in _bounds_sizes(n, parts):
        start, stop, _ = slice(low, high).indices(n)
        windows.append((start, max(start, stop)))
    return many([sliced(self, d, start, stop, 1) for start, stop in windows], "slice")


@view("tensor_split.sections(Tensor self, int sections, int dim=0) -> Tensor[]")
@view("tensor_split.indices(Tensor self, int[] indices, int dim=0) -> Tensor[]")
def tensor_split(self, parts, dim=0):
    """A number of nearly equal pieces, or pieces between given positions. Source: PyTorch, torch.tensor_split."""
    return _tensor_split(self, parts, dim, "tensor_split")


@view("tensor_split.tensor(Tensor self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor[]")
def tensor_split_by_tensor(self, parts, dim=0):
    if self.dim() and parts._dtype is not dtypes.int64:
        raise RuntimeError("tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                           f"{parts._dtype.scalar_name}")
    if parts.dim() > 1:
        raise RuntimeError("tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
                           f"one-dimensional tensor, but got a tensor with {parts.dim()} dims")
    found = parts.tolist()
    return _tensor_split(self, tuple(found) if isinstance(found, list) else found, dim, "tensor_split")


def _splitter(name, least, dim_of, word):
    def body(self, parts):
        if self.dim() < least:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with "
                               f"{self.dim()} dimensions!")
        dim = dim_of(self)
        if isinstance(parts, int) and (parts <= 0 or self._size[dim] % parts):
            raise RuntimeError(f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
                               f"{self._size[dim]} is not divisible by the split_size {parts}!")
        return _tensor_split(self, parts, dim, name)

    body.__doc__ = f"Pieces along the {word} dimension, as views. Source: PyTorch, torch.{name}."
    view(f"{name}.int(Tensor self, int sections) -> Tensor[]")(body)
    view(f"{name}.array(Tensor self, int[] indices) -> Tensor[]")(body)


_splitter("hsplit", 1, lambda t: 0 if t.dim() == 1 else 1, "second (a vector's only)")
_splitter("vsplit", 2, lambda t: 0, "first")
_splitter("dsplit", 3, lambda t: 2, "third")


@view("unbind(Tensor self, int dim=0) -> Tensor[]")
def unbind(self, dim=0):
    """All positions along a dimension, as views. Source: PyTorch, torch.unbind."""
    d = wrap_dim(dim, self.ndim, scalar=False)
    size = self._size[:d] + self._size[d + 1:]
    stride = self._stride[:d] + self._stride[d + 1:]
    made = []
    for i in range(self._size[d]):
        move = moves.Select(self._size, d, i)
        move.name = "unbind"
        made.append(self._view(move, size, stride, self._offset + i * self._stride[d]))
    return many(made, "unbind")


def _copies(name):
    original = METHODS[name]

    def body(self, *rest):
        return tuple([t.clone(memory_format=dtypes.contiguous_format) for t in original(self, *rest)])

    return body


composite("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]")(_copies("chunk"))
composite("unsafe_split(Tensor self, int split_size, int dim=0) -> Tensor[]")(_copies("split"))
composite("unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]")(_copies("split_with_sizes"))
composite("split_copy(Tensor self, int split_size, int dim=0) -> Tensor[]", forms="function out")(_copies("split"))
composite("split_with_sizes_copy(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]", forms="function out")(
    _copies("split_with_sizes"))
composite("unbind_copy(Tensor self, int dim=0) -> Tensor[]", forms="function out")(_copies("unbind"))


@composite("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", forms="function out")
def _chunk_cat(tensors, dim, num_chunks):
    """Each tensor padded along `dim` to a multiple of `num_chunks`, cut into that many rows, rows joined."""
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    rows = []
    first = wrap_dim(dim, tensors[0].ndim)
    for t in tensors:
        if t.ndim <= first:
            raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
        if t._dtype is not tensors[0]._dtype:
            raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")
        if t._size[:first] != tensors[0]._size[:first]:
            raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
        d = wrap_dim(dim, t.ndim)
        if not t.numel():
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        short = -t.size(d) % num_chunks
        if short:
            filler = call("zeros", t._size[:d] + (short,) + t._size[d + 1:], dtype=t._dtype)
            t = call("cat", [t, filler], d)
        rows.append(t.reshape(t._size[:d] + (num_chunks, -1)))
    return call("cat", rows, wrap_dim(dim, tensors[0].ndim) + 1)


