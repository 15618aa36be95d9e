"""Sizes, strides and offsets: what a view is, in numbers. Counts are in elements; nothing here touches data."""

from functools import lru_cache


class Size(tuple):
    """The size of a tensor; a tuple that prints as `torch.Size([2, 3])`. Source: PyTorch, torch.Size."""

    __slots__ = ()
    __module__ = "torch"

    def __new__(cls, items=()):
        made = tuple.__new__(cls, items)
        for i, n in enumerate(made):
            if type(n) is not int:
                index = getattr(type(n), "__index__", None)
                if index is None:
                    raise TypeError(f"torch.Size() takes an iterable of 'int' (item {i} is '{type(n).__name__}')")
                return tuple.__new__(cls, [int(m.__index__()) for m in made])
        return made

    def numel(self):
        n = 1
        for s in self:
            n *= s
        return n

    def __repr__(self):
        return f"torch.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    def __add__(self, other):
        if not isinstance(other, tuple):
            raise TypeError(f'can only concatenate tuple (not "{type(other).__name__}") to torch.Size')
        return Size(tuple.__add__(self, other))

    def __radd__(self, other):
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(tuple.__add__(other, self))

    def __mul__(self, count):
        return Size(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __getitem__(self, item):
        found = tuple.__getitem__(self, item)
        return Size(found) if isinstance(item, slice) else found

    def __reduce__(self):
        return Size, (tuple(self),)


def numel(size) -> int:
    n = 1
    for s in size:
        n *= s
    return n


def contiguous_stride(size) -> tuple:
    """Row-major strides, as PyTorch counts them (a dimension of length 0 counts as 1)."""
    stride, n = [], 1
    for s in reversed(size):
        stride.append(n)
        n *= s if s > 1 else 1
    return tuple(stride[::-1])


def is_contiguous(size, stride) -> bool:
    n = 1
    for s, t in zip(reversed(size), reversed(stride)):
        if s == 0:
            return True
        if s != 1:
            if t != n:
                return 0 in size
            n *= s
    return True


def channels_last_stride(size) -> tuple:
    """Strides of a batch of images (N, C, H, W) or volumes with the channels innermost."""
    order = (0, *range(2, len(size)), 1)
    stride, n = [0] * len(size), 1
    for d in reversed(order):
        stride[d] = n
        n *= max(size[d], 1)
    return tuple(stride)


def columns_stride(size) -> tuple:
    """Strides of a batch of matrices (at least two dimensions) that lie in memory column by column."""
    stride = contiguous_stride((*size[:-2], size[-1], size[-2]))
    return stride[:-2] + (stride[-1], stride[-2])


def is_channels_last(size, stride) -> bool:
    if len(size) not in (4, 5) or 0 in size:
        return False
    n = 1
    for d in (1, *range(len(size) - 1, 1, -1), 0):
        if size[d] != 1:
            if stride[d] != n:
                return False
            n *= size[d]
    return True


def suggests_channels_last(size, stride) -> bool:
    """Whether strides order the dimensions as channels-last memory does, gaps or not. PyTorch decides by this what a
    result looks like."""
    if len(size) not in (4, 5) or not stride[1]:
        return False
    least = 0
    for d in (1, *range(len(size) - 1, 1, -1), 0):
        if size[d] == 0 or stride[d] < least or d == 0 and least == stride[1]:
            return False
        least = stride[d] * max(size[d], 1)
    return True


def is_dense(size, stride) -> bool:
    """No gaps and no overlap: some order of the dimensions is contiguous."""
    n = 1
    for t, s in sorted((t, s) for s, t in zip(size, stride) if s != 1):
        if s == 0:
            return True
        if t != n:
            return False
        n *= s
    return True


def memory_order(size, stride) -> tuple:
    """The dimensions from outermost to innermost in memory (ties keep their order)."""
    return tuple(sorted(range(len(size)),
                        key=lambda d: (-stride[d], -size[d] if stride[d] == 1 and size[d] == 1 else 0)))


def permuted_stride(size, order) -> tuple:
    """Strides of a dense tensor whose dimensions lie in memory in `order`, outermost first."""
    stride, n = [0] * len(size), 1
    for d in reversed(order):
        stride[d] = n
        n *= max(size[d], 1)
    return tuple(stride)


size_of = lru_cache(maxsize=4096)(Size)  # of a tuple; kept, for the many results of one shape
standard_stride = lru_cache(maxsize=4096)(contiguous_stride)  # of a tuple; kept, for the many tests "is it contiguous"


def _sorted_dims(ndim, compare) -> list:
    """The dimensions from fastest to slowest. `compare(a, b)`: above 0 where `a` is slower than `b`, below where
    faster,
    0 where it cannot be told: then their order stays, as in PyTorch's iterators."""
    order = list(range(ndim))[::-1]
    for i in range(1, ndim):
        at = i
        for j in range(i - 1, -1, -1):
            found = compare(order[j], order[at])
            if found > 0:
                order[j], order[at] = order[at], order[j]
                at = j
            elif found < 0:
                break
    return order


def elementwise_stride(shape, operands) -> tuple:
    """Strides of the result of an elementwise operation: dense, the dimensions in the order that the operands suggest.

    `operands`: (size, stride) of each tensor, of which the first to tell two dimensions apart decides.
    """
    n = len(shape)
    if all(size == shape for size, _ in operands):
        if all(is_contiguous(size, stride) for size, stride in operands):
            return standard_stride(tuple(shape))
        first = operands[0][1]
        if all(stride == first for _, stride in operands) and is_dense(shape, first) and not overlaps(shape, first):
            return first
    wide = []
    for size, stride in operands:
        lead = n - len(size)
        wide.append((0,
                     ) * lead + tuple([0 if m == 1 and shape[d + lead] != 1 else s for d,
                                       (m, s) in enumerate(zip(size, stride))]))

    def compare(a, b):
        for stride in wide:
            if stride[a] and stride[b]:
                if stride[a] != stride[b]:
                    return stride[a] - stride[b]
                if shape[a] > shape[b]:
                    return 1
        return 0

    return permuted_stride(shape, _sorted_dims(n, compare)[::-1])


def overlap_of(a, b):
    """How two windows, (size, stride, offset) of one storage, overlap: "full", "partial" or None.

    Only dense windows are judged, as PyTorch does: of others it cannot be told cheaply.
    """
    for size, stride, _ in (a, b):
        if 0 in size or not is_dense(size, stride) or overlaps(size, stride):
            return None
    n, m = numel(a[0]), numel(b[0])
    if a[2] == b[2] and n == m:
        same = [s for d, s in enumerate(a[1]) if a[0][d] != 1] == [s for d, s in enumerate(b[1]) if b[0][d] != 1]
        return "full" if same else "partial"
    return "partial" if a[2] < b[2] + m and b[2] < a[2] + n else None


def overlaps(size, stride) -> bool:
    """Two positions certainly share an element (an expanded dimension)."""
    return 0 not in size and any(s > 1 and t == 0 for s, t in zip(size, stride))


def view_stride(old_size, old_stride, new_size):
    """Strides that give `new_size` over the same memory, or None where no view can.

    Source: PyTorch, Tensor.view: dimensions that are contiguous with each other merge and split.
    """
    if numel(old_size) == 0:
        return tuple(old_stride) if tuple(old_size) == tuple(new_size) else contiguous_stride(new_size)
    if not old_size:
        return (1,) * len(new_size)
    new_stride = [0] * len(new_size)
    at = len(new_size) - 1
    base = old_stride[-1]
    have = want = 1
    for d in range(len(old_size) - 1, -1, -1):
        have *= old_size[d]
        if d == 0 or (old_size[d - 1] != 1 and old_stride[d - 1] != have * base):
            while at >= 0 and (want < have or new_size[at] == 1):
                new_stride[at] = want * base
                want *= new_size[at]
                at -= 1
            if want != have:
                return None
            if d > 0:
                base = old_stride[d - 1]
                have = want = 1
    return tuple(new_stride) if at == -1 else None


def infer_size(shape, total) -> tuple:
    """`shape` with its one -1 filled in. RuntimeError in PyTorch's words where it does not fit."""
    shape = tuple(shape)
    known, unknown = 1, None
    for d, n in enumerate(shape):
        if n == -1:
            if unknown is not None:
                raise RuntimeError("only one dimension can be inferred")
            unknown = d
        elif n < 0:
            raise RuntimeError(f"invalid shape dimension {n} at index {d} of shape {list(shape)}")
        else:
            known *= n
    if total == known or (unknown is not None and known > 0 and total % known == 0):
        if unknown is None:
            return shape
        if known == 0:
            raise RuntimeError(f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified "
                               "dimension size -1 can be any value and is ambiguous")
        return shape[:unknown] + (total // known,) + shape[unknown + 1:]
    if unknown is not None and known == 0 and total == 0:
        raise RuntimeError(f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified "
                           "dimension size -1 can be any value and is ambiguous")
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {total}")


def broadcast_shapes(*shapes) -> tuple:
    """The common shape. RuntimeError in PyTorch's words where there is none."""
    first = shapes[0]
    for shape in shapes[1:]:
        if shape != first:
            first = _broadcast(first, shape)
    return tuple(first)


def _broadcast(a, b):
    n = max(len(a), len(b))
    out = [0] * n
    for i in range(-1, -n - 1, -1):
        x = a[i] if -i <= len(a) else 1
        y = b[i] if -i <= len(b) else 1
        if x != y and x != 1 and y != 1:
            raise RuntimeError(f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton "
                               f"dimension {n + i}")
        out[i] = y if x == 1 else x
    return tuple(out)


def expanded(old_size, old_stride, size, kind) -> tuple:
    """Size and stride of `old_size` repeated to `size` (-1: as it is); RuntimeError where it does not fit. `kind` names the scalar type."""
    lead = len(size) - len(old_size)
    call = f"expand(torch.{kind}Tensor{{{list(old_size)}}}, size={list(size)})"
    if lead < 0:
        raise RuntimeError(f"{call}: the number of sizes provided ({len(size)}) must be greater or equal to the number of dimensions in "
                           f"the tensor ({len(old_size)})")
    out, stride = list(size), [0] * len(size)
    for d in reversed(range(len(size))):
        n = out[d]
        if d >= lead:
            have, step = old_size[d - lead], old_stride[d - lead]
        else:  # a new dimension of length 1 goes on as a contiguous one would
            have, step = 1, stride[d + 1] * out[d + 1] if d + 1 < len(out) else 1
        if n == -1:
            if d < lead:
                raise RuntimeError(f"{call}: the expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {d}")
            n = out[d] = have
        if n < 0:
            raise RuntimeError(f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing dimension {d}")
        if have != n and have != 1:
            raise RuntimeError(f"The expanded size of the tensor ({n}) must match the existing size ({have}) at non-singleton dimension "
                               f"{d}.  Target sizes: {list(size)}.  Tensor sizes: {list(old_size)}")
        stride[d] = step if have == n else 0
    return out, stride


def wrap_dim(dim, ndim, scalar=True) -> int:
    """A dimension counted from the front. IndexError in PyTorch's words; a zero-dim tensor takes -1 and 0."""
    n = ndim if ndim > 0 or not scalar else 1
    if n == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim + n if dim < 0 else dim


def wrap_dims(dims, ndim) -> tuple:
    """Several dimensions counted from the front, each at most once; None means all."""
    if dims is None:
        return tuple(range(ndim))
    if isinstance(dims, int):
        dims = (dims,)
    out = tuple([wrap_dim(d, ndim) for d in dims])
    for i, d in enumerate(out):
        if d in out[:i]:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return out
