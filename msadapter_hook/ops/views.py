"""Views: the same memory under another geometry."""

import copy

from msadapter_hook.tape.recording import state
from msadapter_hook.tensor import Tensor, dtypes, geometry
from msadapter_hook.tensor import view as moves
from msadapter_hook.tensor.core import TensorBase
from msadapter_hook.tensor.geometry import contiguous_stride, wrap_dim, wrap_dims
from msadapter_hook.tensor.leaf import UnkeptLeaf

from .registry import composite, view
from .tables import call

METHOD = "method"


def _whole(t):
    return (0,) * t.ndim, tuple(t._size), (1,) * t.ndim


@view("view(Tensor self, int[] size) -> Tensor", forms=METHOD)
def view_size(self, size):
    """The same elements under another size, where strides allow. Source: PyTorch, Tensor.view."""
    size = geometry.infer_size(size, self.numel())
    stride = geometry.view_stride(self._size, self._stride, size)
    if stride is None:
        raise RuntimeError("view size is not compatible with input tensor's size and stride (at least one dimension "
                           "spans across two contiguous subspaces). Use .reshape(...) instead.")
    return self._view(moves.Reshape(size), size, stride)


@view("view.dtype(Tensor self, ScalarType dtype) -> Tensor", forms=METHOD)
def view_dtype(self, dtype):
    """The same bytes read as `dtype`. Source: PyTorch, Tensor.view."""
    old, new = self._dtype.itemsize, dtype.itemsize
    size, stride, offset = tuple(self._size), self._stride, self._offset
    if self._moves or self._history.parent is not None:
        for waiting, what in ((self.is_conj(), "conjugate view tensors"), (self.is_neg(), "tensors with negative bit set")):
            if waiting:
                raise RuntimeError(f"torch.Tensor.view is not supported for {what} when converting to a different dtype.")
    if dtype is self._dtype and not (state.enabled and self.requires_grad):
        return self._view(moves.Reshape(size), size, stride)
    if old != new:
        if not size:
            raise RuntimeError(f"self.dim() cannot be 0 to view {self._dtype.scalar_name} as {dtype.scalar_name} "
                               "(different element sizes)")
        if stride[-1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 to view {self._dtype.scalar_name} as {dtype.scalar_name} "
                               f"(different element sizes), but got {stride[-1]}")
        if old > new:
            k = old // new
            size, stride, offset = size[:-1] + (size[-1] * k,), tuple(s * k for s in stride[:-1]) + (1,), offset * k
        else:
            k = new // old
            if size[-1] % k:
                raise RuntimeError(f"self.size(-1) must be divisible by {k} to view {self._dtype.scalar_name} as "
                                   f"{dtype.scalar_name} (different element sizes), but got {size[-1]}")
            if offset % k:
                raise RuntimeError(f"self.storage_offset() must be divisible by {k} to view {self._dtype.scalar_name} "
                                   f"as {dtype.scalar_name} (different element sizes), but got {offset}")
            for d, s in enumerate(stride[:-1]):
                if s % k:
                    raise RuntimeError(f"self.stride({d}) must be divisible by {k} to view {self._dtype.scalar_name} "
                                       f"as {dtype.scalar_name} (different element sizes), but got {s}")
            size, stride, offset = size[:-1] + (size[-1] // k,), tuple(s // k for s in stride[:-1]) + (1,), offset // k
    return self._view(moves.Bits(dtype.numpy), size, stride, offset, dtype)


@composite("reshape(Tensor self, int[] shape) -> Tensor")
def reshape(self, shape):
    """A view where strides allow, else a copy. Source: PyTorch, torch.reshape."""
    size = geometry.infer_size(shape, self.numel())
    stride = geometry.view_stride(self._size, self._stride, size)
    if stride is not None:
        return self._view(moves.Reshape(size), size, stride)
    made = self.clone(memory_format=dtypes.contiguous_format)._view(moves.Reshape(size, "_unsafe_view"), size, contiguous_stride(size))
    made._base = None  # a copy: nothing else shows its memory
    return made


@view("permute(Tensor self, int[] dims) -> Tensor")
def permute(self, dims):
    """The dimensions in another order. Source: PyTorch, torch.permute."""
    if len(dims) != self.ndim:
        raise RuntimeError("permute(sparse_coo): number of dimensions in the tensor input does not match the length "
                           f"of the desired ordering of dimensions i.e. input.dim() = {self.ndim} is not equal to "
                           f"len(dims) = {len(dims)}")
    axes = tuple([wrap_dim(d, self.ndim) for d in dims])
    if len(set(axes)) != len(axes):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return _permuted(self, axes, "permute")


def _permuted(self, axes, name):
    return self._view(moves.Permute(axes, name), tuple([self._size[a] for a in axes]),
                      tuple([self._stride[a] for a in axes]))


@view("swapaxes(Tensor self, int axis0, int axis1) -> Tensor")
@view("swapdims(Tensor self, int dim0, int dim1) -> Tensor")
@view("transpose.int(Tensor self, int dim0, int dim1) -> Tensor")
def transpose(self, dim0, dim1):
    """Two dimensions swapped. Source: PyTorch, torch.transpose."""
    a, b = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
    if self.ndim == 0:
        return self._view(moves.Reshape(()), (), ())
    axes = list(range(self.ndim))
    axes[a], axes[b] = axes[b], axes[a]
    return _permuted(self, tuple(axes), "transpose")


@view("t(Tensor self) -> Tensor")
def t(self):
    """The transpose of a matrix; vectors stay. Source: PyTorch, torch.t."""
    if self.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    if self.ndim < 2:
        return self._view(moves.Reshape(self._size, "t"), self._size, self._stride)
    return _permuted(self, (1, 0), "t")


@view("select.int(Tensor self, int dim, int index) -> Tensor")
def select(self, dim, index):
    """One position along `dim`, which goes away. Source: PyTorch, torch.select."""
    if self.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, self.ndim)
    n = self._size[d]
    if not -n <= index < n:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(self._size)} at dimension {d}")
    if index < 0:
        index += n
    size, stride = self._size, self._stride
    return self._view(moves.Select(size, d, index), size[:d] + size[d + 1:], stride[:d] + stride[d + 1:],
                      self._offset + index * stride[d])


def many(views, name):
    """Mark the results of an operator that gives several views: PyTorch refuses in-place writes to them under
    autograd."""
    for i, v in enumerate(views):
        if v.requires_grad:
            v._extra_state()["multiview"] = (i, name)
    return tuple(views)


def sliced(self, d, start, stop, step, name="slice"):
    """The window start:stop:step along dimension `d` (already counted from the front and within bounds)."""
    n = max(0, (stop - start + step - 1) // step)
    starts, stops, steps = map(list, _whole(self))
    starts[d], stops[d], steps[d] = start, max(stop, start), step
    size = list(self._size)
    size[d] = n
    stride = list(self._stride)
    stride[d] *= step
    return self._view(moves.Slice(starts, stops, steps, name), size, stride, self._offset + start * self._stride[d])


@view("narrow(Tensor self, int dim, any start, int length) -> Tensor")
def narrow(self, dim, start, length):
    """`length` positions along `dim` from `start`. Source: PyTorch, torch.narrow."""
    if self.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, self.ndim)
    if isinstance(start, Tensor) and (start.dim() or start._dtype.is_floating_point or start._dtype in (
            dtypes.bool_, dtypes.complex64, dtypes.complex128)):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    start = int(start)
    n = self._size[d]
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    if start < 0:
        start += n
    if start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return sliced(self, d, start, start + length, 1)


@view("expand(Tensor self, int[] size, *, bool implicit=False) -> Tensor", forms=METHOD)
def expand(self, size, implicit=False):
    """Dimensions of length 1 repeated without copying. Source: PyTorch, Tensor.expand."""
    out, stride = geometry.expanded(self._size, self._stride, size, self._dtype.scalar_name)
    return self._view(moves.Expand(out), out, stride)


@view("unsqueeze(Tensor self, int dim) -> Tensor", forms="function method")
def unsqueeze(self, dim):
    """A dimension of length 1 put in. Source: PyTorch, torch.unsqueeze."""
    d = wrap_dim(dim, self.ndim + 1)
    size, stride = self._size, self._stride
    step = size[d] * stride[d] if d < self.ndim else 1
    size, stride = size[:d] + (1,) + size[d:], stride[:d] + (step,) + stride[d:]
    return self._view(moves.Reshape(size, "unsqueeze"), size, stride)


@view("squeeze.dims(Tensor self, int[1] dim) -> Tensor")
@view("squeeze(Tensor self) -> Tensor")
@view("squeeze.dim(Tensor self, int dim) -> Tensor")  # tried first
def squeeze(self, dim=None):
    """Dimensions of length 1 taken out. Source: PyTorch, torch.squeeze."""
    dims = range(self.ndim) if dim is None else wrap_dims(dim, self.ndim)
    kept = [d for d in range(self.ndim) if d not in dims or self._size[d] != 1]
    size = tuple([self._size[d] for d in kept])
    form = 0 if dim is None else 1 if isinstance(dim, int) else 2
    return self._view(moves.Reshape(size, f"squeeze:{form}"), size, tuple([self._stride[d] for d in kept]))


@view("as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor")
def as_strided(self, size, stride, storage_offset=None):
    """Any window over the storage. Source: PyTorch, torch.as_strided."""
    offset = self._offset if storage_offset is None else storage_offset
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if min(stride, default=0) < 0:
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    last = offset + sum((n - 1) * s for n, s in zip(size, stride)) if 0 not in size else offset - 1
    if self._moves and self._offset <= offset and last < self._offset + self.numel() and own_window(self):
        # within its own memory: the gradient passes through this view, where hooks may wait for it
        at = offset - self._offset
        return self._view(moves.AsStrided(size, stride, at, self._size, self._stride), size, stride, offset)
    history = self._history
    unrecorded = not state.enabled and history.value.requires_grad
    ends = isinstance(history.value.leaf, UnkeptLeaf)  # a view made while nothing was recorded: gradients end in it
    steps, start, total = flat_moves(history, self._dtype)
    outside = 0 not in size and (offset < start or last >= start + total)
    if (steps is None or outside) and history.parent is not None:  # there may be room in the whole storage
        if history.value.requires_grad and not unrecorded and not ends:
            raise NotImplementedError("as_strided beyond a detached window that requires grad, or of one with gaps; take it before "
                                      "detach(), or take .contiguous() first")
        history = whole_history(history)
        steps, start, total = flat_moves(history, self._dtype)
        outside = 0 not in size and (offset < start or last >= start + total)
    elif unrecorded:
        history = Tensor._window(history, (), history.size, history.stride, history.offset, self._dtype)._alias_history(True)
    else:
        ends = False
    if steps is None:
        raise NotImplementedError("as_strided of memory with gaps; take .contiguous() first")
    if outside:
        itemsize = self._dtype.itemsize
        raise RuntimeError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and "
                           f"itemsize {itemsize} requiring a storage size of {(last + 1) * itemsize} are out of "
                           f"bounds for storage of size {(start + total) * itemsize}")
    history.views = True
    steps += (moves.AsStrided(size, stride, offset - start, (total,), (1,)),)
    steps += tuple([m for m in self._moves if isinstance(m, (moves.Conjugate, moves.Negative))])
    made = Tensor._window(history, steps, size, stride, offset, self._dtype)
    base = self._base if self._base is not None else self
    if unrecorded or ends:
        made = made._unrecorded_view(ends or base.requires_grad)
    made._base = base
    return made


def own_window(tensor):
    """Whether a tensor shows each element of a dense piece of memory once, as it is."""
    plain = not any(isinstance(m, (moves.Conjugate, moves.Negative)) for m in tensor._moves)
    return plain and geometry.is_dense(tensor._size, tensor._stride) and not geometry.overlaps(tensor._size, tensor._stride)


def whole_history(history):
    """A history with the version counter of `history` over all of its storage; without gradients."""
    root = history.storage.root
    window = Tensor._window(root, (), root.size, root.stride, 0, None)
    whole = window._alias_history(share_version=False)
    whole.version = history.version
    return whole


def flat_moves(history, dtype):
    """The moves that show the memory under a history as a vector of `dtype`, its offset in the storage and its length.

    None in place of the moves where the memory has gaps.
    """
    size, stride = history.size, history.stride
    if not geometry.is_dense(size, stride) or geometry.overlaps(size, stride):
        return None, 0, 0
    order, total = geometry.memory_order(size, stride), geometry.numel(size)
    steps = () if order == tuple(range(len(order))) else (moves.Permute(order),)
    if len(size) != 1:
        steps += (moves.Reshape((total,), "as_strided"),)
    have, want, start = history.value.dtype, dtype.numpy, history.offset
    if have == want:
        return steps, start, total
    if have.kind == "c" and want.kind == "f" and have.itemsize == 2 * want.itemsize:
        return steps + (moves.AsReal(), moves.Reshape((2 * total,))), 2 * start, 2 * total
    if have.kind == "f" and want.kind == "c" and want.itemsize == 2 * have.itemsize and total % 2 == start % 2 == 0:
        return steps + (moves.Reshape((total // 2, 2)), moves.AsComplex()), start // 2, total // 2
    if total * have.itemsize % want.itemsize or start * have.itemsize % want.itemsize:
        return None, 0, 0
    return steps + (moves.Bits(want),), start * have.itemsize // want.itemsize, total * have.itemsize // want.itemsize


@view("diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor")
def diagonal(self, offset=0, dim1=0, dim2=1):
    """The diagonal over two dimensions, as the last dimension. Source: PyTorch, torch.diagonal."""
    a, b = wrap_dim(dim1, self.ndim), wrap_dim(dim2, self.ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size, stride = self._size, self._stride
    if offset >= 0:
        n, start = max(min(size[a], size[b] - offset), 0), offset * stride[b]
    else:
        n, start = max(min(size[a] + offset, size[b]), 0), -offset * stride[a]
    rest = [d for d in range(self.ndim) if d not in (a, b)]
    return self._view(moves.Diagonal(offset, a, b), tuple([size[d] for d in rest]) + (n,),
                      tuple([stride[d] for d in rest]) + (stride[a] + stride[b],), self._offset + (start if n else 0))


@view("unfold(Tensor self, int dimension, int size, int step) -> Tensor", forms=METHOD)
def unfold(self, dimension, size, step):
    """All windows of `size` along a dimension, `step` apart, as the last dimension. Source: PyTorch, Tensor.unfold."""
    d = wrap_dim(dimension, self.ndim)
    n = self._size[d] if self.ndim else 1
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {n} but size is {size}")
    step_stride = self._stride[d] if self.ndim else 1
    count = (n - size) // step + 1
    out = self._size[:d] + (count,) + self._size[d + 1:] + (size,) if self.ndim else (size,)
    stride = self._stride[:d] + (step_stride * step,) + self._stride[d + 1:] + (step_stride,) if self.ndim else (1,)
    return self._view(moves.Windows(d, size, step), out, stride)


@view("detach(Tensor self) -> Tensor")
def detach(self):
    """The same data, cut from the graph. Source: PyTorch, Tensor.detach."""
    return TensorBase.detach(self)


@view("real(Tensor self) -> Tensor", forms="function")
def real(self):
    """The real part of a complex tensor; a real tensor itself. Source: PyTorch, torch.real."""
    if not self._dtype.is_complex:
        return self
    stride = tuple([s * 2 for s in self._stride])
    return self._view(moves.Part(True), self._size, stride, self._offset * 2, self._dtype.to_real())


@view("imag(Tensor self) -> Tensor", forms="function")
def imag(self):
    """The imaginary part of a complex tensor. Source: PyTorch, torch.imag."""
    if not self._dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    stride = tuple([s * 2 for s in self._stride])
    return self._view(moves.Part(False), self._size, stride, self._offset * 2 + 1, self._dtype.to_real())


@view("view_as_real(Tensor self) -> Tensor", forms="function")
def view_as_real(self):
    """A complex tensor as pairs of real numbers. Source: PyTorch, torch.view_as_real."""
    if not self._dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if call("is_conj", self):
        raise RuntimeError("view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate "
                           "tensor so you can view it as real, use self.resolve_conj(); however, be warned that the "
                           "resulting tensor will NOT alias the original.")
    return self._view(moves.AsReal(), self._size + (2,), tuple([s * 2 for s in self._stride]) + (1,), self._offset * 2,
                      self._dtype.to_real())


@view("view_as_complex(Tensor self) -> Tensor", forms="function")
def view_as_complex(self):
    """Pairs of real numbers as a complex tensor. Source: PyTorch, torch.view_as_complex."""
    if self._dtype not in (dtypes.float32, dtypes.float64, dtypes.float16):
        raise RuntimeError("view_as_complex is only supported for half, float and double tensors, but got a tensor of "
                           f"scalar type: {self._dtype.scalar_name}")
    if not self.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if self._size[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if self._stride[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % 2 for s in self._stride[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if self._offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return self._view(moves.AsComplex(), self._size[:-1], tuple([s // 2 for s in self._stride[:-1]]), self._offset // 2,
                      self._dtype.to_complex())


# ---------------------------------------------------------------------------------- views that change the tensor itself
def become(self, other):
    """Let `self` take over the view `other` of it: what `t_()`, `squeeze_()` and the like do."""
    check_inplace_geometry(self)
    if other._parent is not None:
        other._parent = Tensor.as_subclass(self, Tensor), other._parent[1]  # the view is read from what this tensor was
    self._parent = other._parent
    self._history, self._moves = other._history, other._moves
    if len(self._moves) and self._moves[-1].name in _ITSELF:
        self._moves = (*self._moves[:-1], _renamed(self._moves[-1], _ITSELF[self._moves[-1].name]))
    self._size, self._stride, self._offset = other._size, other._stride, other._offset
    self._value, self._generation = None, -1
    self._history.version.count += 1
    return self


#: The gradients of `t_()` and its like have numbers of their own.
_ITSELF = {"t": "t:1", "transpose": "transpose:1", "unsqueeze": "unsqueeze:1", "as_strided": "as_strided:1", "squeeze:0": "squeeze:3",
           "squeeze:1": "squeeze:4", "squeeze:2": "squeeze:5"}


def _renamed(move, name):
    made = copy.copy(move)
    made.name = name
    return made


def check_inplace_geometry(self):
    if state.enabled and self._leaf is not None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


