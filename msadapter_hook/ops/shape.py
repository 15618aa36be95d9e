"""Rearranging elements: flatten, repeat, roll, flip, triangles and diagonals, padding, and the forms of views that
copy or
change a tensor in place."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tensor import Tensor, detached, dtypes, from_array, geometry
from msadapter_hook.tensor import view as moves
from msadapter_hook.tensor.formats import like_geometry
from msadapter_hook.tensor.geometry import wrap_dim, wrap_dims

from .creation import copy
from .registry import composite, operator, plain, view
from .tables import METHODS, OPERATORS, call
from .views import become


# ------------------------------------------------------------------------------------------------ size
@composite("flatten(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor")
def flatten(self, start_dim=0, end_dim=-1):
    """Dimensions start_dim … end_dim as one; a view where strides allow. Source: PyTorch, torch.flatten."""
    a, b = wrap_dim(start_dim, self.ndim), wrap_dim(end_dim, self.ndim)
    if a > b:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not self.ndim:
        return self.reshape((1,))
    if a == b:
        return self
    size = self._size
    return self.reshape(size[:a] + (geometry.numel(size[a:b + 1]),) + size[b + 1:])


@view("unflatten.int(Tensor self, int dim, int[] sizes) -> Tensor")
def unflatten(self, dim, sizes):
    """One dimension as several. Source: PyTorch, torch.unflatten."""
    d = wrap_dim(dim, self.ndim)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    n = self._size[d]
    try:
        found = geometry.infer_size(sizes, n)
    except RuntimeError as e:
        if "invalid for input" in str(e):
            raise RuntimeError(f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} "
                               f"({n}) in the input tensor") from None
        raise
    return self.view(self._size[:d] + tuple(found) + self._size[d + 1:])


@composite("ravel(Tensor self) -> Tensor")
def ravel(self):
    """All elements in one dimension. Source: PyTorch, torch.ravel."""
    return self.contiguous().view((-1,)) if self.ndim != 1 or not self.is_contiguous() else self.view((-1,))


@view("view_as(Tensor self, Tensor other) -> Tensor", forms="method")
def view_as(self, other):
    """A view of the size of `other`. Source: PyTorch, Tensor.view_as."""
    return self.view(other._size)


@composite("reshape_as(Tensor self, Tensor other) -> Tensor", forms="method")
def reshape_as(self, other):
    """Reshaped to the size of `other`. Source: PyTorch, Tensor.reshape_as."""
    return self.reshape(other._size)


@view("movedim.intlist(Tensor self, int[1] source, int[1] destination) -> Tensor", aliases=("moveaxis",))
def movedim(self, source, destination):
    """Dimensions moved to other places, the rest in order. Source: PyTorch, torch.movedim."""
    if len(source) != len(destination):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain "
                           f"the same number of dims as destination ({list(destination)} dims)")
    src = [wrap_dim(d, self.ndim) for d in source]
    dst = [wrap_dim(d, self.ndim) for d in destination]
    for label, dims, given in (("source", src, source), ("destination", dst, destination)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{label}` ({list(given)})")
    if not self.ndim:
        return self.view(())
    order = [-1] * self.ndim
    for s, d in zip(src, dst):
        order[d] = s
    rest = iter([d for d in range(self.ndim) if d not in src])
    return self.permute([d if d >= 0 else next(rest) for d in order])


# --------------------------------------------------------------------------------------------- transposes as properties
def _numpy_transpose(self):
    """The dimensions in reverse. Source: PyTorch, Tensor.T."""
    if self.ndim not in (0, 2):
        import warnings

        warnings.warn("The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and "
                      "it will throw an error in a future release. Consider `x.mT` to transpose "
                      "batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to "
                      "reverse the dimensions of a tensor.", stacklevel=2)
    return self.permute(tuple(range(self.ndim))[::-1])


def _matrix_transpose(self):
    """The last two dimensions swapped. Source: PyTorch, Tensor.mT."""
    if self.ndim < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor.")
    return self.transpose(-2, -1)


def _conjugate(t):
    return t.conj() if t._dtype.is_complex else t


def _matrix_h(self):
    """The conjugate transpose of a matrix. Source: PyTorch, Tensor.H."""
    if self.ndim not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor."
                           + (" For batches of matrices, consider using tensor.mH" if self.ndim > 2 else ""))
    return self if not self.ndim else _conjugate(self.transpose(0, 1))


@view("adjoint(Tensor self) -> Tensor")
def adjoint(self):
    """The last two dimensions swapped, elements conjugated. Source: PyTorch, torch.adjoint."""
    if self.ndim < 2:
        raise RuntimeError(f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {self.ndim}-D "
                           "tensor.")
    return _conjugate(self.transpose(-2, -1))


def _matrix_adjoint(self):
    """The conjugate transposes of matrices. Source: PyTorch, Tensor.mH."""
    if self.ndim < 2:
        raise RuntimeError(f"tensor.mH is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor.")
    return adjoint(self)


METHODS["T"], METHODS["mT"] = property(_numpy_transpose), property(_matrix_transpose)
METHODS["H"], METHODS["mH"] = property(_matrix_h), property(_matrix_adjoint)


# ------------------------------------------------------------------------------------------------ repeating and turning
@operator("repeat(Tensor self, int[] repeats) -> Tensor", forms="method")
def repeat(self, repeats):
    """The tensor laid side by side with itself along each dimension. Source: PyTorch, Tensor.repeat."""
    if len(repeats) < self.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    for n in repeats:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(repeats)}")
    lead = len(repeats) - self.ndim
    size = (1,) * lead + self.shape
    if all(n == 1 for n in repeats):
        return prims.reshape(copied(self), shape=size)
    inner, wide, out = [], [], []
    for n, r in zip(size, repeats):
        inner += [1, n]
        wide += [r, n]
        out.append(n * r)
    spread = prims.broadcast_to(prims.reshape(self, shape=tuple(inner)), shape=tuple(wide))
    return prims.reshape(spread, shape=tuple(out))


def copied(value):
    return copy(value)


@composite("tile(Tensor self, int[] dims) -> Tensor")
def tile(self, dims):
    """As repeat, missing dimensions counting as 1. Source: PyTorch, torch.tile."""
    return self.repeat((1,) * (self.ndim - len(dims)) + tuple(dims))


def _repeated(self, counts, dim, output_size):
    if dim is None:
        self, dim = self.flatten(), 0
    d = wrap_dim(dim, self.ndim)
    n = self._size[d] if self.ndim else 1
    if isinstance(counts, int):
        if counts < 0:
            raise RuntimeError("Repeats must be non-negative")
        if not self.ndim:
            return self.reshape((1,)).repeat_interleave(counts, 0)
        wide = self.unsqueeze(d + 1).expand(self._size[:d + 1] + (counts,) + self._size[d + 1:])
        copy = wide.clone(memory_format=dtypes.contiguous_format)
        return copy.view(self._size[:d] + (n * counts,) + self._size[d + 1:])
    if counts.dim() > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if counts._dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError("repeats has to be Long or Int tensor")
    c = detached(counts).numpy
    if c.size and c.min() < 0:
        raise RuntimeError("repeats can not be negative")
    if c.ndim == 0 or c.size == 1:
        c = np.repeat(c.reshape(-1), n)
    elif c.size != n:
        raise RuntimeError(f"repeats must have the same size as input along dim, but got repeats.size(0) = {c.size} "
                           f"and input.size({d}) = {n}")
    index = from_array(np.repeat(np.arange(n, dtype=np.int64), c))
    if output_size is not None and output_size != index.numel():
        raise RuntimeError("allocated size does not match required size")
    return (self if self.ndim else self.reshape((1,))).index_select(d, index)


@composite("repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor")
@composite("repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> "
           "Tensor")
def repeat_interleave(self, repeats, dim=None, output_size=None):
    """Each element (or position along `dim`) several times in a row. Source: PyTorch, torch.repeat_interleave."""
    return _repeated(self, repeats, dim, output_size)


@composite("repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor", forms="function")
def repeat_interleave_of(repeats, output_size=None):
    """Position i repeated repeats[i] times. Source: PyTorch, torch.repeat_interleave."""
    if repeats.dim() != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    return _repeated(call("arange", repeats.numel()), repeats, 0, output_size)


def _roll(a, *, shifts, axes):
    return np.roll(a, shifts, axes)


rolled = prims.host_call("roll", _roll,
                         vjp=[lambda g, out, a, *, shifts,
                              axes: rolled(g, shifts=tuple([-s for s in shifts]), axes=axes)],
                         uses_output=False)


@operator("roll(Tensor self, int[1] shifts, int[1]? dims=None) -> Tensor")
def roll(self, shifts, dims=None):
    """Elements moved along dimensions, those that fall off coming in at the other end. Source: PyTorch, torch.roll."""
    dims = dims or ()
    if not dims and len(shifts) == 1:
        flat = prims.reshape(self, shape=(self.size,))
        return prims.reshape(rolled(flat, shifts=tuple(shifts), axes=(0,)), shape=self.shape)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    axes = tuple([wrap_dim(d, self.ndim, scalar=False) for d in dims])
    return rolled(self, shifts=tuple(shifts), axes=axes)


@operator("flip(Tensor self, int[] dims) -> Tensor", layout="self")
def flip(self, dims):
    """The order along dimensions reversed; a copy. Source: PyTorch, torch.flip."""
    axes = wrap_dims(dims, self.ndim)
    return prims.flip(self, axes=axes) if axes and self.ndim else copied(self)


@operator("fliplr(Tensor self) -> Tensor", layout="self")
def fliplr(self):
    """Reversed along the second dimension. Source: PyTorch, torch.fliplr."""
    if self.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return prims.flip(self, axes=(1,))


@operator("flipud(Tensor self) -> Tensor", layout="self")
def flipud(self):
    """Reversed along the first dimension. Source: PyTorch, torch.flipud."""
    if self.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return prims.flip(self, axes=(0,))


@composite("rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor")
def rot90(self, k=1, dims=(0, 1)):
    """Turned by 90 degrees, `k` times, in the plane of two dimensions. Source: PyTorch, torch.rot90."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if self.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {self.ndim}")
    a, b = [wrap_dim(d, self.ndim) for d in dims]
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    k %= 4
    if k == 2:
        return self.flip((a, b))
    if k == 0:
        return self.clone(memory_format=dtypes.contiguous_format)
    return self.flip((b if k == 1 else a,)).transpose(a, b)


# ---------------------------------------------------------------------------------------------- triangles and diagonals
def _triangular(name, mask):
    def host(a, *, diagonal):
        return np.where(mask(a.shape[-2:], diagonal), a, np.zeros((), a.dtype))

    primitive = prims.host_call(name, host, vjp=[lambda g, out, a, *, diagonal: primitive(g, diagonal=diagonal)],
                                uses_output=False)

    @operator(f"{name}(Tensor self, int diagonal=0) -> Tensor", forms="function method inplace out")
    def body(self, diagonal=0):
        if self.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return primitive(self, diagonal=diagonal)

    body.__doc__ = f"A triangle of the last two dimensions, zeros elsewhere. Source: PyTorch, torch.{name}."
    return primitive


tril = _triangular("tril", lambda shape, k: np.tri(*shape, k, dtype=bool))
triu = _triangular("triu", lambda shape, k: ~np.tri(*shape, k - 1, dtype=bool))


@composite("trace(Tensor self) -> Tensor")
def trace(self):
    """Sum of the diagonal of a matrix. Source: PyTorch, torch.trace."""
    if self.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
    return self.diagonal().sum()


@composite("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor")
def diag_embed(self, offset=0, dim1=-2, dim2=-1):
    """The last dimension laid on a diagonal over two new dimensions. Source: PyTorch, torch.diag_embed."""
    ndim = self.ndim + 1
    a, b = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    n = self._size[-1] + abs(offset)
    size = list(self._size[:-1])
    for d in sorted((a, b)):
        size.insert(d, n)
    base = call("zeros", tuple(size), dtype=self._dtype)
    return call("diagonal_scatter", base, self, offset, a, b)


@composite("diag(Tensor self, int diagonal=0) -> Tensor", forms="function method out")
def diag(self, diagonal=0):
    """A vector laid on a diagonal, or the diagonal of a matrix. Source: PyTorch, torch.diag."""
    if self.ndim == 1:
        return diag_embed(self, diagonal)
    if self.ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self.ndim}D")
    return self.diagonal(diagonal).clone()


@composite("diagflat(Tensor self, int offset=0) -> Tensor")
def diagflat(self, offset=0):
    """All elements laid on a diagonal. Source: PyTorch, torch.diagflat."""
    return diag_embed(self.reshape((-1,)), offset)


@view("diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", namespace="linalg", forms="function")
def linalg_diagonal_of(A, offset=0, dim1=-2, dim2=-1):
    """Diagonals of matrices. Source: PyTorch, torch.linalg.diagonal."""
    return A.diagonal(offset, dim1, dim2)


# ------------------------------------------------------------------------------------------ windows written into copies
def _scattered(self, window, src, name):
    """A copy of `self` with `src` written to the window that a view names."""
    base = self.clone()
    target = window(base)
    if target._size != src._size:
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(src._size)}, "
                           f"slice size = {list(target._size)}")
    target.copy_(src)
    return Tensor._make(base.value, self._dtype, like_geometry(self, None))


@composite("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor")
def diagonal_scatter(self, src, offset=0, dim1=0, dim2=1):
    """A copy with a diagonal replaced. Source: PyTorch, torch.diagonal_scatter."""
    a, b = wrap_dim(dim1, self.ndim), wrap_dim(dim2, self.ndim)
    shown = self.detach().diagonal(offset, a, b)
    if shown._size != src._size:
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(src._size)}, "
                           f"slice size = {list(shown._size)}")
    value = moves.diagonal_scatter(self.value, src.to(self._dtype).value, offset=offset, axis1=a, axis2=b)
    if value.requires_grad:
        value.node.operator = "DiagonalScatterBackward0"
    return Tensor._make(value, self._dtype, like_geometry(self, None))


@composite("select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor")
def select_scatter(self, src, dim, index):
    """A copy with one position along `dim` replaced. Source: PyTorch, torch.select_scatter."""
    return _scattered(self, lambda base: base.select(dim, index), src, "select")


@composite("slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
           forms="function method out")
def slice_scatter(self, src, dim=0, start=None, end=None, step=1):
    """A copy with a slice along `dim` replaced. Source: PyTorch, torch.slice_scatter."""
    d = wrap_dim(dim, self.ndim)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return _scattered(self, lambda base: base[(slice(None),) * d + (slice(start, end, step),)], src, "slice")


@composite("as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor")
def as_strided_scatter(self, src, size, stride, storage_offset=None):
    """A copy with a strided window replaced. Source: PyTorch, torch.as_strided_scatter."""
    stand_in = from_array(np.empty(self._size, np.bool_))
    shown = stand_in.as_strided(size, stride, storage_offset)  # for its checks
    if shown._size != src._size:
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(src._size)}, "
                           f"slice size = {list(shown._size)}")
    value = _window_replaced(self.value, src.to(self._dtype).value, size=shown._size, stride=shown._stride,
                             offset=shown._offset)
    if value.requires_grad:
        value.node.operator = "AsStridedScatterBackward0"
    return Tensor._make(value, self._dtype)


# PyTorch's gradient for `self` is what flows to the window, and zero outside of it (not the reverse, as one expects).
_window_replaced = prims.host_call(
    "as_strided_scatter", prims.as_strided_scatter.host,
    vjp=[lambda g, out, base, new, **window: prims.as_strided_scatter(
            prims.zeros_like(g), prims.as_strided(g, **window), **window),
         lambda g, out, base, new, **window: prims.as_strided(g, **window)], uses_output=False)


@view("slice.Tensor(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor", forms="")
def slice_view(self, dim=0, start=None, end=None, step=1):
    d = wrap_dim(dim, self.ndim)
    return self[(slice(None),) * d + (slice(start, end, step),)]


# ------------------------------------------------------------------------------------------------ copies of views
def _copying(name, schema):
    original = METHODS.get(name) or OPERATORS[name].function

    @composite(f"{name}_copy{schema} -> Tensor", forms="function out" if name != "narrow" else "function method out")
    def body(self, *rest):
        if name == "narrow" and rest[0] >= self.ndim > 0:
            raise RuntimeError(f"narrow_copy: dimension {rest[0]} is out of range for a tensor of {self.ndim} dimensions")
        return original(self, *rest).clone(memory_format=dtypes.contiguous_format)

    body.__doc__ = f"{name} as a copy. Source: PyTorch, torch.{name}_copy."


for _name, _schema in {
    "view": "(Tensor self, int[] size)", "permute": "(Tensor self, int[] dims)",
    "transpose": "(Tensor self, int dim0, int dim1)", "t": "(Tensor self)", "select": "(Tensor self, int dim, int "
                                                                                      "index)",
    "narrow": "(Tensor self, int dim, int start, int length)", "unsqueeze": "(Tensor self, int dim)",
    "as_strided": "(Tensor self, int[] size, int[] stride, int? storage_offset=None)",
    "diagonal": "(Tensor self, int offset=0, int dim1=0, int dim2=1)",
    "unfold": "(Tensor self, int dimension, int size, int step)", "detach": "(Tensor self)",
    "view_as_real": "(Tensor self)", "view_as_complex": "(Tensor self)",
}.items():
    _copying(_name, _schema)


@composite("expand_copy(Tensor self, int[] size, *, bool implicit=False) -> Tensor", forms="function out")
def expand_copy(self, size, implicit=False):
    """expand as a copy. Source: PyTorch, torch.expand_copy."""
    return self.expand(size).clone(memory_format=dtypes.contiguous_format)


@composite("squeeze_copy(Tensor self) -> Tensor", forms="function out")
@composite("squeeze_copy.dim(Tensor self, int[1] dim) -> Tensor", forms="function out")
def squeeze_copy(self, *dim):
    """squeeze as a copy. Source: PyTorch, torch.squeeze_copy."""
    return self.squeeze(*dim).clone(memory_format=dtypes.contiguous_format)


@composite("alias_copy(Tensor self) -> Tensor", forms="function out")
def alias_copy(self):
    """A copy. Source: PyTorch, torch.alias_copy."""
    return self.clone(memory_format=dtypes.contiguous_format)


@composite("slice_copy(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
           forms="function out")
def slice_copy(self, dim=0, start=None, end=None, step=1):
    """A slice as a copy. Source: PyTorch, torch.slice_copy."""
    return slice_view(self, dim, start, end, step).clone(memory_format=dtypes.contiguous_format)


# ---------------------------------------------------------------------------------------------- in-place forms of views
def _becoming(name, function=False):
    original = METHODS[name]

    def method(self, *args, **kwargs):
        return become(self, original(self, *args, **kwargs))

    method.__name__ = name + "_"
    method.__doc__ = f"{name}, changing the tensor itself. Source: PyTorch, Tensor.{name}_."
    METHODS[name + "_"] = method
    if function:
        plain(method, name + "_")


for _name in ("t", "transpose", "swapaxes", "swapdims", "squeeze", "unsqueeze", "as_strided"):
    _becoming(_name, _name in ("squeeze", "unsqueeze", "t", "as_strided"))


def detach_(self):
    """Cut from the graph, in place. Source: PyTorch, Tensor.detach_."""
    if self._moves and self.requires_grad:
        raise RuntimeError("Can't detach views in-place. Use detach() instead. If you are using "
                           "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as True, "
                           "gradients are views of DDP buckets, and hence detach_() cannot be called on these "
                           "gradients. To fix this error, please refer to the Optimizer.zero_grad() function in "
                           "torch/optim/optimizer.py as a reference.")
    if self._leaf is not None:
        return self.requires_grad_(False)
    if self.requires_grad:
        self._history = self._alias_history(share_version=True)
        self._moves, self._value, self._generation = (), None, -1
    return self


METHODS["detach_"] = detach_
plain(detach_)


def resize_as_(self, the_template, *, memory_format=None):
    """Resized to the size of another tensor. Source: PyTorch, Tensor.resize_as_."""
    self.resize_(the_template._size)
    if memory_format is dtypes.preserve_format:
        memory_format = None
        if the_template.is_contiguous(memory_format=dtypes.channels_last):
            memory_format = dtypes.channels_last
        elif the_template.is_contiguous(memory_format=dtypes.channels_last_3d):
            memory_format = dtypes.channels_last_3d
    if memory_format in (dtypes.channels_last, dtypes.channels_last_3d):
        become(self, self.as_strided(self._size, geometry.channels_last_stride(self._size)))
    return self


METHODS["resize_as_"] = resize_as_
plain(resize_as_)


def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Let the tensor lie over the storage of another tensor, or over a storage. Source: PyTorch, Tensor.set_."""
    from msadapter_hook.tape.recording import state
    from msadapter_hook.tensor import UntypedStorage, from_storage

    if self._leaf is not None and state.enabled:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if source is None:
        other = from_array(np.empty(0, self._dtype.numpy), self._dtype)
    elif isinstance(source, Tensor):
        if source._dtype is not self._dtype:
            raise RuntimeError(f"Could not set tensor of type {source._dtype.type_name} to a tensor of type {self._dtype.type_name}")
        other = source if size is None else source.detach().as_strided(
            tuple(size), tuple(stride) if stride is not None else geometry.contiguous_stride(size), storage_offset)
    else:
        storage = source if isinstance(source, UntypedStorage) else source._untyped_storage
        if storage is not source and source.dtype is not self._dtype:
            raise RuntimeError(f"Expected a Storage of type {self._dtype.type_name} or an UntypedStorage, but got type "
                               f"{source.dtype.scalar_name} for argument 1 'storage'")
        if size is None:
            size = (storage.nbytes() // self._dtype.itemsize,)
        size = tuple(size)
        other = from_storage(storage, self._dtype, size,
                             stride if stride is not None else geometry.contiguous_stride(size),
                             storage_offset)
    version = self._history.version
    self._history = other._alias_history(share_version=False)
    self._history.version = version
    self._moves = ()
    self._size, self._stride, self._offset = other._size, tuple(other._stride), other._offset
    self._value, self._generation = None, -1
    version.count += 1
    return self


METHODS["set_"] = set_
