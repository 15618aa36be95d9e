"""Indexing: `x[...]` and `x[...] = y` of every kind PyTorch takes."""

import warnings

import numpy as np

from msadapter_hook import foreign, prims
from msadapter_hook.tape import value_of
from msadapter_hook.tape.recording import state
from msadapter_hook.tensor import Tensor, cast_value, dtypes, from_array, from_value, geometry
from msadapter_hook.tensor import view as moves

from . import expanded, kept
from .creation import _c_name, from_data
from .refusals import MASK
from .registry import warn_once
from .tables import METHODS
from .views import sliced
from .writing import check_inplace, own_memory, refuse_overlap

_INDEX_TYPES = "tensors used as indices must be long, int, byte or bool tensors"


#: parts of a key that are what they are
_PLAIN = frozenset([int, slice, Tensor, type(None), type(Ellipsis), bool])


def _normalise(key):
    """The key as a tuple, tensors of other libraries made ours. A short list counts as a tuple where it holds sequences,
    tensors, slices, None or Ellipsis."""
    if isinstance(key, tuple):
        return key if not foreign.TENSORS else tuple([i if type(i) in _PLAIN else foreign.tree(i) for i in key])
    if type(key) not in _PLAIN:
        key = foreign.tree(key)
    if isinstance(key, list) and len(key) < 32:
        for item in key:
            if item is None or item is Ellipsis or isinstance(item, (slice, Tensor, list, tuple, range, np.ndarray)):
                warn_once("Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed "
                          "in pytorch 2.9; "
                           "use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor "
                           "index, "
                           "x[torch.tensor(seq)], which will result either in an error or a different result")
                return tuple(key)
    return (key,)


def _as_index(item):
    """An index tensor from a list, an array or a tensor."""
    if isinstance(item, (list, range)) or isinstance(item, tuple):
        if len(item) and isinstance(item[0], str):
            raise TypeError("new(): invalid data type 'str'")
        made = from_data(list(item))
        if made._dtype not in (dtypes.bool_, dtypes.uint8, dtypes.int64):
            made = from_array(made.value.numpy.astype(np.int64))
        return made
    if isinstance(item, np.ndarray):
        return from_array(np.array(item))
    return item


def _count(key):
    """How many dimensions of the tensor each item of the key takes."""
    n = 0
    for item in key:
        if item is None or item is Ellipsis or isinstance(item, (bool, np.bool_)):
            continue
        if isinstance(item, Tensor) and item._dtype in (dtypes.bool_, dtypes.uint8):
            n += item.dim()
        elif isinstance(item, np.ndarray) and item.dtype == bool:
            n += item.ndim
        elif isinstance(item, (list, tuple)):
            made = _as_index(item)
            n += made.dim() if made._dtype is dtypes.bool_ else 1
        else:
            n += 1
    return n


def basic(self, key):
    """Apply the parts of the key that give views. Returns (view, index) where index maps dimensions of the view to
    index tensors, in order; empty for a plain view."""
    if isinstance(key, slice) and not self.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    key = _normalise(key)
    taken = _count(key)
    if taken > self.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
    out, d, index, seen_ellipsis = self, 0, [], False
    real = 0  # the dimension of `self` that is next
    for item in key:
        if item is None:
            out = out.unsqueeze(d)
            d += 1
        elif item is Ellipsis:
            if seen_ellipsis:
                d += 0
                continue
            seen_ellipsis = True
            d += self.ndim - taken
            real += self.ndim - taken
        elif isinstance(item, (bool, np.bool_)):
            out = out.unsqueeze(d)
            index.append((d, from_array(np.array([bool(item)]).nonzero()[0])))
            d += 1
        elif isinstance(item, slice):
            out = _slice(out, d, item)
            d, real = d + 1, real + 1
        elif type(item) is int:
            out, real = _select(out, d, item, real), real + 1
        elif isinstance(item, Tensor):
            if item.dim() == 0 and item._dtype not in (dtypes.bool_, dtypes.uint8) and not (
                    item._dtype.is_floating_point or item._dtype.is_complex):
                out, real = _select(out, d, int(item.item()), real), real + 1
                continue
            before = d
            d, out = _advanced(out, d, item, index)
            real += d - before
        elif isinstance(item, (list, tuple, range, np.ndarray)):
            before = d
            d, out = _advanced(out, d, _as_index(item), index)
            real += d - before
        elif hasattr(item, "__index__"):
            out, real = _select(out, d, item.__index__(), real), real + 1
        elif isinstance(item, str):
            raise TypeError("new(): invalid data type 'str'")
        else:
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
                "(got "
                f"{type(item).__name__})")
    return out, index


def _select(t, d, i, real=None):
    if t.ndim == 0:
        raise IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ "
                         "to convert a 0-dim tensor to a number")
    n = t._size[d]
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of bounds for dimension {d if real is None else real} with size {n}")
    return t.select(d, i)


def _slice(t, d, s):
    if s == slice(None):
        return t if d < t.ndim else t
    n = t._size[d]
    step = 1 if s.step is None else _whole(s.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        raise ValueError("step must be greater than zero")
    start, stop, _ = slice(_whole(s.start), _whole(s.stop), step).indices(n)
    return sliced(t, d, start, max(stop, start), step)


def _whole(x):
    if x is None or type(x) is int:
        return x
    if isinstance(x, Tensor):
        return x.__index__()
    if not hasattr(x, "__index__"):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    return x.__index__()


def _advanced(out, d, item, index):
    """Note an index tensor for dimension `d` (several for a mask)."""
    if item._dtype is dtypes.uint8:
        warnings.warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                      UserWarning, stacklevel=4)
    if item._dtype in (dtypes.bool_, dtypes.uint8):
        if state.mapped is not None and state.mapped.depends(item):
            raise RuntimeError(MASK)
        for k in range(item.dim()):
            if out._size[d + k] != item._size[k]:
                raise IndexError(f"The shape of the mask {list(item._size)} at index {k} does not match the shape of "
                                 f"the indexed tensor {list(out._size)} at index {d + k}")
        if item.dim() == 0:
            out = out.unsqueeze(d)
            index.append((d, from_array(np.array([bool(item.item())]).nonzero()[0])))
            return d + 1, out
        for k, part in enumerate(np.nonzero(_plain(item))):
            index.append((d + k, from_array(part)))
        return d + item.dim(), out
    if item._dtype not in (dtypes.int64, dtypes.int32):
        raise IndexError(_INDEX_TYPES)
    index.append((d, item))
    return d + 1, out


def _plain(t):
    with _NoGrad():
        return t.value.numpy


class _NoGrad:
    def __enter__(self):
        self.before, state.enabled = state.enabled, False

    def __exit__(self, *exc):
        state.enabled = self.before


def index_arrays(size, index):
    """Index Values with negatives wrapped, checked against `size`. IndexError in PyTorch's words, which count the indices only."""
    arrays = []
    for place, (d, t) in enumerate(index):
        a = _plain(t) if isinstance(t, Tensor) else t
        n = size[d]
        if a.size:
            low, high = a.min(), a.max()
            if not n:
                raise IndexError("index is out of bounds for dimension with size 0")
            if low < -n or high >= n:
                bad = int(high if high >= n else low)
                raise IndexError(f"index {bad} is out of bounds for dimension {place} with size {n}")
            if low < 0:
                a = np.where(a < 0, a + n, a)
        arrays.append(a.astype(np.int64, copy=False))
    shapes = [a.shape for a in arrays]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise IndexError("shape mismatch: indexing tensors could not be broadcast together with shapes "
                         + ", ".join(str(list(s)) for s in shapes)) from None
    return [value_of(a) for a in arrays]


def get_index(value, index):
    """The elements of a Value at index tensors ((dimension, Tensor) pairs); NumPy's and PyTorch's placing of the
    result."""
    arrays = index_arrays(value.shape, index)
    axes = tuple([d for d, _ in index])
    if len(arrays) == 1:
        return prims.gather(value, arrays[0], axis=axes[0])
    return prims.index_get(value, *arrays, axes=axes)


def getitem(self, key):
    """`self[key]`: a view for numbers, slices, None and Ellipsis; a copy where index tensors take part."""
    t = type(key)
    if t is int:
        return _select(self, 0, key)
    out, index = basic(self, key)
    if not index:
        if out is self:
            out = self._view(moves.Reshape(self._size, "alias"), self._size, self._stride)
        return out
    value = get_index(out.value, index)
    if value.requires_grad:
        value.node.operator, value.node.saved = "IndexBackward0", kept.versions_of(key)
    if out._shared:
        value = own_memory(value, out)
    return Tensor._make(value, self._dtype)


def setitem(self, key, new):
    """`self[key] = new`, broadcasting `new`; recorded like any other in-place operation."""
    new = new if isinstance(new, Tensor) else foreign.tensor(new)
    if isinstance(new, Tensor):
        value = new.value
    else:
        if not isinstance(new, (bool, int, float, complex)):
            kind = type(new)
            name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
            raise TypeError(f"can't assign a {name} to a torch.{self._dtype.scalar_name}Tensor")
        value = _number(new, self._dtype)
    if key is False:
        return
    out, index = basic(self, key)
    if index and 0 in out._stride and expanded.is_expanded(out):
        indices = [None] * out.dim()
        for d, at in index:
            indices[d] = at if isinstance(at, Tensor) else from_array(np.array(at))
        expanded.index_put_(out, indices, from_value(cast_value(value, self._dtype)))
        if value.size == 1 and _masks_only(key):
            expanded.warn("masked_fill_")  # which PyTorch hands this on to
        return
    check_inplace(out)
    given, value = value, cast_value(value, self._dtype)
    if not index:
        if isinstance(new, Tensor) and new.numel() == out.numel():  # what is broadcast may come from the same memory
            refuse_overlap(out, new)
        value = _fit(value, out._size)
        geometry_check(out)
        if isinstance(new, Tensor) and value is given:  # hooks and leaves are of one tensor: a value of its own
            value = prims.copy(value)
        if value.requires_grad and state.enabled and out.requires_grad and not out._moves:
            value = prims.overwrite(out.value, value)
        if value.requires_grad and value.node.operator is None:
            value.node.operator = "CopyBackwards"
        out._write(value)
        return
    arrays = index_arrays(out._size, index)
    axes = tuple([d for d, _ in index])
    shape = result_shape(out._size, arrays, axes)
    lead = value.ndim - len(shape)
    if lead > 0 and all(n == 1 for n in value.shape[:lead]):
        value = prims.reshape(value, shape=value.shape[lead:])
    try:
        fits = geometry.broadcast_shapes(value.shape, shape) == tuple(shape)
    except RuntimeError:
        fits = False
    if not fits:
        raise RuntimeError(f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to indexing "
                           f"result of shape {list(shape)}")
    if isinstance(new, Tensor) and new._dtype is not self._dtype and not (new.numel() == 1 and _masks_only(key)):
        raise RuntimeError(f"Index put requires the source and destination dtypes match, got {self._dtype.scalar_name} "
                           f"for the destination and {new._dtype.scalar_name} for the source.")
    base = out.value
    result = prims.index_put(base, value, *arrays, axes=axes, accumulate=False)
    if result.requires_grad:
        result.node.operator, result.node.saved = "IndexPutBackward0", kept.versions_of(key)
    out._write(result)


def _masks_only(key):
    """Whether all index tensors are masks: such a write of one number is a masked fill, which casts."""
    tensors = [_as_index(k) for k in _normalise(key) if isinstance(k, (Tensor, list, tuple, range, np.ndarray))]
    return all(t._dtype in (dtypes.bool_, dtypes.uint8) for t in tensors)


def _number(new, dtype):
    """A Python number as a Value of `dtype`, refused where it does not fit."""
    if isinstance(new, complex) and not dtype.is_complex or (
            isinstance(new, float) and dtype.numpy.kind in "iu" and not np.isfinite(new)):
        raise RuntimeError(f"value cannot be converted to type {_c_name(dtype)} without overflow")
    if isinstance(new, int) and not -(2 ** 63) <= new < 2 ** 64:
        raise ValueError("Overflow when unpacking long long")
    return from_data(new, dtype).value


def delitem(self, key):
    raise TypeError("Tensor does not support deleting items")


METHODS["__delitem__"] = delitem


def result_shape(size, arrays, axes):
    """The shape of indexing: the indices' common shape in place of adjacent dimensions, in front otherwise."""
    common = np.broadcast_shapes(*[a.shape for a in arrays])
    rest = [n for d, n in enumerate(size) if d not in axes]
    adjacent = list(axes) == list(range(axes[0], axes[0] + len(axes)))
    at = axes[0] if adjacent else 0
    return tuple(rest[:at]) + tuple(common) + tuple(rest[at:])


def geometry_check(out):
    if geometry.overlaps(out._size, out._stride):
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single "
                           "memory location. Please clone() the tensor before performing the operation.")


def _fit(value, size):
    """`value` broadcast to `size`, leading dimensions of length 1 dropped."""
    lead = value.ndim - len(size)
    if lead > 0 and all(n == 1 for n in value.shape[:lead]):
        value = prims.reshape(value, shape=value.shape[lead:])
    if value.shape == tuple(size):
        return value
    geometry.expanded(value.shape, (0,) * value.ndim, size, dtypes.from_numpy_dtype(value.dtype).scalar_name)
    return prims.broadcast_to(value, shape=tuple(size))
