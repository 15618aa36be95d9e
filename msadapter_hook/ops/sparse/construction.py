"""Sparse tensors from indices and values, and the check of what they must satisfy."""

import numpy as np

from msadapter_hook.tape.sparse import flat_places
from msadapter_hook.tensor import Tensor, dtypes, from_array
from msadapter_hook.tensor.compound import recorded_name
from msadapter_hook.tensor.sparse import BLOCKED, BY_ROW, COMPRESSED, CompressedTensor, SparseTensor, passed

from .. import arguments
from ..compound import implement
from ..creation import empty_sparse, from_data
from ..methods import convert
from ..registry import plain


class _Invariants:
    enabled = False


invariants = _Invariants()


# ------------------------------------------------------------------------------------------------ parts
def _as_indices(data, dtype=dtypes.int64):
    """An integer tensor; floating point indices are cut off, as PyTorch does."""
    found = data if isinstance(data, Tensor) else from_data(data)
    if found._dtype in (dtypes.int64, dtypes.int32) and dtype is None:
        return found.detach()
    wanted = dtype or dtypes.int64
    return found.detach() if found._dtype is wanted else convert(found.detach(), wanted)


def _as_values(data, dtype):
    found = data if isinstance(data, Tensor) else from_data(data, dtype)
    return found if dtype is None or found._dtype is dtype else convert(found, dtype)


def _finished(values, device, requires_grad, name):
    """The elements as the new tensor holds them: an alias of what was given, or one step on in its graph."""
    if device is not None and device != values.device:
        values = convert(values, device=device)
    if requires_grad:
        return values.detach().requires_grad_()
    return passed(values, name)


def _options(dtype, device):
    return arguments.scalar_type(dtype) if dtype is not None else None, arguments.device(device) if device is not None else None


def _size_of(size):
    return tuple(arguments.integers(size))


# ------------------------------------------------------------------------------------------------ coordinates
def sparse_coo_tensor(*args, indices=None, values=None, size=None, dtype=None, device=None, pin_memory=False, requires_grad=False,
                      check_invariants=None, is_coalesced=None):
    """A tensor in coordinate layout: indices (sparse dims, n), values (n, *dense sizes), size (inferred where left out);
    with a size alone, one without elements. RuntimeError where they do not fit together.

    Source: PyTorch, torch.sparse_coo_tensor.
    """
    named = [x for x in (indices, values, size) if x is not None]
    given = list(args)
    if len(given) == 1 and not named or not given and size is not None and indices is None and values is None:
        return empty_sparse(_size_of(given[0] if given else size), dtype, dtypes.sparse_coo, device, requires_grad)
    if given and isinstance(given[0], int) and all(isinstance(x, int) for x in given) and len(given) > 3:
        return empty_sparse(tuple(given), dtype, dtypes.sparse_coo, device, requires_grad)
    slots = {"indices": indices, "values": values, "size": size}
    for name, value in zip([n for n in slots if slots[n] is None], given):
        slots[name] = value
    if slots["indices"] is None or slots["values"] is None or len(given) + len(named) > 3:
        shown = ", ".join(arguments.type_name(a) for a in args)
        raise TypeError(f"sparse_coo_tensor() received an invalid combination of arguments - got ({shown}), but expected one of:\n"
                        " * (object indices, object values, *, torch.dtype dtype = None, torch.device device = None, ...)\n"
                        " * (object indices, object values, tuple of ints size, *, ...)\n * (tuple of ints size, *, ...)\n")
    dtype, device = _options(dtype, device)
    places, elements = _as_indices(slots["indices"]), _as_values(slots["values"], dtype)
    if places.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(places._size)}")
    if elements.ndim == 0:
        raise RuntimeError(f"values must have at least one dimension, but got: {list(elements._size)}")
    count = places._size[1]
    if count != elements._size[0]:
        raise RuntimeError(f"indices and values must have same nnz, but got nnz from indices: {count}, nnz from values: "
                           f"{elements._size[0]}")
    size = _inferred(places, elements) if slots["size"] is None else _size_of(slots["size"])
    sparse, dense = places._size[0], elements.ndim - 1
    if len(size) != sparse + dense:
        raise RuntimeError(f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
                           f"{sparse}, dense_dim = {dense}")
    if tuple(size[sparse:]) != tuple(elements._size[1:]):
        raise RuntimeError(f"values has incorrect size, expected {[count, *size[sparse:]]}, got {list(elements._size)}")
    checked = invariants.enabled if check_invariants is None else check_invariants
    if checked:
        check_coordinates(places.value.numpy, size)
        if is_coalesced and not _sorted(flat_places(size, places.value.numpy)):
            raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")
    elements = _finished(elements, device, requires_grad, "SparseCooTensorWithDimsAndTensorsBackward0")
    return SparseTensor._of(places, elements, size, bool(is_coalesced))


def _inferred(places, elements):
    at = places.value.numpy
    if at.size == 0:
        return (0,) * at.shape[0] + tuple(elements._size[1:])
    lowest = at.min(1)
    if (lowest < 0).any():
        where = int(np.argmax(lowest < 0))
        raise RuntimeError(f"found negative index {int(lowest[where])} for dim {where}")
    return tuple((at.max(1) + 1).tolist()) + tuple(elements._size[1:])


def _sorted(flat):
    return flat.size < 2 or bool((flat[1:] > flat[:-1]).all())


def check_coordinates(at, size):
    """RuntimeError where an index is negative or not below the size of its dimension."""
    if not at.size:
        return
    for dim, row in enumerate(at):
        if row.min() < 0:
            raise RuntimeError(f"found negative index {int(row.min())} for dim {dim}")
        if row.max() >= size[dim]:
            raise RuntimeError(f"size is inconsistent with indices: for dim {dim}, size is {size[dim]} but found index "
                               f"{int(row.max())}")


# ------------------------------------------------------------------------------------------------ compressed
_NAMES = {dtypes.sparse_csr: ("crow_indices", "col_indices"), dtypes.sparse_bsr: ("crow_indices", "col_indices"),
          dtypes.sparse_csc: ("ccol_indices", "row_indices"), dtypes.sparse_bsc: ("ccol_indices", "row_indices")}


def compressed_tensor(pointers, others, values, size=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False,
                      check_invariants=None):
    """A tensor of a compressed layout: the starts of the lines, the places within them, values (n, *block, *dense sizes); batches
    lead all three. RuntimeError where they do not fit together. Source: PyTorch, torch.sparse_compressed_tensor."""
    if layout not in COMPRESSED:
        raise RuntimeError(f"sparse_compressed_tensor expected sparse compressed tensor layout but got {layout}")
    dtype, device = _options(dtype, device)
    pointers, others, elements = _as_indices(pointers, None), _as_indices(others, None), _as_values(values, dtype)
    if pointers._dtype is not others._dtype:
        raise RuntimeError(f"{' and '.join(_NAMES[layout])} dtype must match, but got {pointers._dtype.scalar_name} and "
                           f"{others._dtype.scalar_name}")
    batch, blocked = pointers.ndim - 1, layout in BLOCKED
    if batch < 0 or elements.ndim < batch + 1 + 2 * blocked:
        raise RuntimeError(f"values must have dimensionality > sum of batch and block dimensionalities (={batch} + {2 * blocked}) "
                           f"but got {elements.ndim}")
    if size is None:
        size = _compressed_size(pointers, others, elements, layout, batch)
    size = _size_of(size)
    if check_invariants or check_invariants is None and invariants.enabled:
        check_compressed(pointers, others, elements, size, layout)
    _check_shapes(pointers, others, elements, size, layout, batch)
    elements = _finished(elements, device, requires_grad, "SparseCompressedTensorBackward0")
    return CompressedTensor._of(pointers, others, elements, size, layout)


def _compressed_size(pointers, others, elements, layout, batch):
    high, wide = (elements._size[batch + 1], elements._size[batch + 2]) if layout in BLOCKED else (1, 1)
    found = others.value.numpy
    reach = int(found.max()) + 1 if found.size else 0
    lines = pointers._size[-1] - 1
    pair = (lines * high, reach * wide) if layout in BY_ROW else (reach * high, lines * wide)
    return (*pointers._size[:-1], *pair, *elements._size[batch + 1 + 2 * (layout in BLOCKED):])


def _check_shapes(pointers, others, elements, size, layout, batch):
    """What cannot be without the parts being read wrongly; the rest is `check_compressed`."""
    names = _NAMES[layout]
    block = tuple(elements._size[batch + 1:batch + 3]) if layout in BLOCKED else (1, 1)
    if len(size) != elements.ndim + 1 - 2 * (layout in BLOCKED):
        raise RuntimeError(f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (={batch} + 2 + "
                           f"{elements.ndim - batch - 1 - 2 * (layout in BLOCKED)}) but got {len(size)}")
    if others.ndim != batch + 1 or others._size[-1] != elements._size[batch]:
        raise RuntimeError(f"number of {names[1]} must match the number of values, but got {others._size[-1] if others.ndim else 0} "
                           f"and {elements._size[batch]}")
    which = 0 if layout in BY_ROW else 1
    lines, length = size[batch + which], block[which]
    if length == 0 or lines % length or size[batch + 1 - which] % block[1 - which]:
        raise RuntimeError(f"tensor shape[{batch + which}] (={lines}) must be divisible with blocksize[{which}] (={length}) as defined "
                           "by values shape")
    if pointers._size[-1] != lines // length + 1:
        raise RuntimeError(f"{names[0]}.shape[-1] must be equal to the number of {'rows' if which == 0 else 'columns'} + 1 "
                           f"(={lines // length + 1}), but got {pointers._size[-1]}")


def check_compressed(pointers, others, elements, size, layout):
    """RuntimeError in PyTorch's words where the indices of a compressed layout break its rules."""
    names, batch = _NAMES[layout], pointers.ndim - 1
    _check_shapes(pointers, others, elements, size, layout, batch)
    start, other = pointers.value.numpy, others.value.numpy
    block = tuple(elements._size[batch + 1:batch + 3]) if layout in BLOCKED else (1, 1)
    which = 1 if layout in BY_ROW else 0
    reach = size[batch + which] // block[which]
    if (start[..., 0] != 0).any():
        raise RuntimeError(f"`{names[0]}[..., 0] == 0` is not satisfied.")
    if (start[..., -1] != other.shape[-1]).any():
        raise RuntimeError(f"`{names[0]}[..., -1] == nnz` is not satisfied.")
    steps = np.diff(start, axis=-1)
    if ((steps < 0) | (steps > reach)).any():
        raise RuntimeError(f"`0 <= {names[0]}[..., 1:] - {names[0]}[..., :-1] <= {'ncols' if which else 'nrows'}` is not satisfied.")
    if other.size and (other.min() < 0 or other.max() >= reach):
        raise RuntimeError(f"`0 <= {names[1]} < {'ncols' if which else 'nrows'}` is not satisfied.")
    many = int(np.prod(start.shape[:-1], dtype=np.int64))
    for starts, one in zip(start.reshape(many, -1), other.reshape(many, other.shape[-1])):
        same_line = np.ones(max(one.size - 1, 0), bool)
        same_line[starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < one.size)] - 1] = False
        if (np.diff(one)[same_line] <= 0).any():
            raise RuntimeError(f"`{names[1]}[..., {names[0]}[..., i - 1]:{names[0]}[..., i]] for all i = 1, ..., "
                               f"{'nrows' if which else 'ncols'} are sorted and distinct along the last dimension values` is not "
                               "satisfied.")


def _of_layout(name, layout):
    first, second = _NAMES[layout]

    def make(*args, **kwargs):
        names = (first, second, "values", "size")
        slots = dict(zip(names, args))
        for n in names:
            if n in kwargs:
                slots[n] = kwargs.pop(n)
        if len(args) > 4 or not {first, second, "values"} <= set(slots):
            shown = ", ".join(arguments.type_name(a) for a in args)
            raise TypeError(f"{name}() received an invalid combination of arguments - got ({shown}), but expected one of:\n * (object "
                            f"{first}, object {second}, object values, tuple of ints size, *, torch.dtype dtype = None, ...)\n * "
                            f"(object {first}, object {second}, object values, *, ...)\n")
        kwargs.pop("layout", None)
        return compressed_tensor(slots[first], slots[second], slots["values"], slots.get("size"), layout=layout, **kwargs)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = (f"A {layout} tensor from {first}, {second} and values; the size is inferred where left out. RuntimeError where they "
                    f"do not fit together. Source: PyTorch, torch.{name}.")
    return plain(make)


for _name, _layout in zip(("csr", "csc", "bsr", "bsc"), COMPRESSED):
    globals()[f"sparse_{_name}_tensor"] = _of_layout(f"sparse_{_name}_tensor", _layout)


def sparse_compressed_tensor(compressed_indices, plain_indices, values, size=None, *, dtype=None, layout=None, device=None,
                             pin_memory=False, requires_grad=False, check_invariants=None):
    """A tensor of the compressed `layout`. Source: PyTorch, torch.sparse_compressed_tensor."""
    return compressed_tensor(compressed_indices, plain_indices, values, size, dtype, layout, device, pin_memory, requires_grad,
                             check_invariants)


plain(sparse_coo_tensor)
plain(sparse_compressed_tensor)


# ------------------------------------------------------------------------------------------------ like another
@implement(SparseTensor, CompressedTensor, names="zeros_like empty_like")
def zeros_like(self, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None, requires_grad=False):
    if layout is dtypes.strided:
        made = from_array(np.zeros(self._size, (dtype or self._dtype).numpy), dtype or self._dtype)
        return made.requires_grad_() if requires_grad else made
    if layout not in (None, self.layout):
        raise NotImplementedError(f"zeros_like: a tensor of layout {layout} like one of layout {self.layout}; convert it first")
    if isinstance(self, SparseTensor):
        dense = self._elements._size[1:]
        elements = from_array(np.zeros((0, *dense), (dtype or self._dtype).numpy), dtype or self._dtype)
        made = SparseTensor._of(np.zeros((self._places._size[0], 0), np.int64), elements, self._size, True)
    else:
        made = self._like(from_array(np.zeros(self._elements._size, (dtype or self._dtype).numpy), dtype or self._dtype))
    return made.requires_grad_() if requires_grad else made


@implement(SparseTensor, CompressedTensor, names="clone")
def clone(self, memory_format=None):
    if memory_format not in (None, dtypes.preserve_format):
        raise RuntimeError(f"unsupported memory format option {str(memory_format).rpartition('.')[2]}")
    made = self._like(self._elements.clone())
    if isinstance(made, SparseTensor):
        made._places = self._places.clone()
    return recorded_name(made, "CloneBackward0")
