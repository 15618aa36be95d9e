"""Moves: the steps by which a view is read from its base and written back to it. Pure functions on Values."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import value_of
from msadapter_hook.tape.recording import state

from .geometry import contiguous_stride, memory_order, numel


class Move:
    """One step of a view. `read(base)` gives what the view shows; `write(base, new)` the base with `new` in its place.

    `name`: the operator, for names of gradients.
    """

    __slots__ = ("name",)

    @property
    def grad_name(self):
        """The name of the gradient, as PyTorch prints it; `name` may end with the number of the form (`squeeze:1`)."""
        name, _, number = self.name.partition(":")
        return "".join(p[:1].upper() + p[1:] for p in name.split("_")) + "Backward" + (number or "0")

    def read(self, base):
        raise NotImplementedError

    def write(self, base, new):
        raise NotImplementedError


class Reshape(Move):
    __slots__ = ("shape",)

    def __init__(self, shape, name="view"):
        self.shape, self.name = tuple(shape), name

    def read(self, base):
        return prims.reshape(base, shape=self.shape)

    def write(self, base, new):
        return prims.reshape(new, shape=base.shape)


class Permute(Move):
    __slots__ = ("axes", "inverse")

    def __init__(self, axes, name="permute"):
        self.axes, self.name = tuple(axes), name
        self.inverse = tuple(sorted(range(len(axes)), key=self.axes.__getitem__))

    def read(self, base):
        return prims.transpose(base, axes=self.axes)

    def write(self, base, new):
        return prims.transpose(new, axes=self.inverse)


class Slice(Move):
    """A window with positive steps over every axis."""

    __slots__ = ("window",)

    def __init__(self, start, stop, step, name="slice"):
        self.window, self.name = {"start": tuple(start), "stop": tuple(stop), "step": tuple(step)}, name

    def read(self, base):
        return prims.strided_slice(base, **self.window)

    def write(self, base, new):
        return prims.slice_scatter(base, new, **self.window)


class Select(Slice):
    """One position along an axis, which goes away."""

    __slots__ = ("shape", "kept", "key")

    def __init__(self, size, axis, index):
        self.key = (slice(None),) * axis + (index, Ellipsis)
        start = [0] * len(size)
        stop = list(size)
        start[axis], stop[axis] = index, index + 1
        super().__init__(start, stop, (1,) * len(size), "select")
        self.shape = tuple(size[:axis]) + tuple(size[axis + 1:])
        self.kept = tuple(size[:axis]) + (1,) + tuple(size[axis + 1:])

    def read(self, base):
        if not base.requires_grad and base._numpy is not None and not state.levels:  # nothing to record: NumPy's view of it
            return value_of(base._numpy[self.key])
        return prims.reshape(super().read(base), shape=self.shape)

    def write(self, base, new):
        return super().write(base, prims.reshape(new, shape=self.kept))


class Expand(Move):
    __slots__ = ("shape",)

    def __init__(self, shape):
        self.shape, self.name = tuple(shape), "expand"

    def read(self, base):
        return prims.broadcast_to(base, shape=self.shape)

    def write(self, base, new):
        """Only reached where every copy holds the same value, or where there is none."""
        if 0 in self.shape and 0 not in base.shape:
            return base
        lead = new.ndim - base.ndim
        stop = (1,) * lead + tuple(base.shape)
        first = prims.strided_slice(new, start=(0,) * new.ndim, stop=stop, step=(1,) * new.ndim)
        return prims.reshape(first, shape=base.shape)


class AsStrided(Move):
    """Any window over the flat memory of the base; `base_size`, `base_stride` tell how the base lies in memory."""

    __slots__ = ("window", "order")

    def __init__(self, size, stride, offset, base_size, base_stride, name="as_strided"):
        self.window, self.name = {"size": tuple(size), "stride": tuple(stride), "offset": offset}, name
        order = memory_order(base_size, base_stride)
        self.order = None if order == tuple(range(len(base_size))) else Permute(order)

    def read(self, base):
        return prims.as_strided(base if self.order is None else self.order.read(base), **self.window)

    def write(self, base, new):
        if self.order is None:
            return prims.as_strided_scatter(base, new, **self.window)
        return self.order.write(base, prims.as_strided_scatter(self.order.read(base), new, **self.window))


class Diagonal(Move):
    __slots__ = ("at",)

    def __init__(self, offset, axis1, axis2):
        self.at, self.name = {"offset": offset, "axis1": axis1, "axis2": axis2}, "diagonal"

    def read(self, base):
        return diagonal(base, **self.at)

    def write(self, base, new):
        return diagonal_scatter(base, new, **self.at)


def _diagonal_scatter(base, new, *, offset, axis1, axis2):
    out = base.copy()
    window = np.diagonal(out, offset, axis1, axis2)
    window.flags.writeable = True
    window[...] = new
    return out


diagonal = prims.host_call(
    "diagonal", lambda a, *, offset, axis1, axis2: np.diagonal(a, offset, axis1, axis2).copy(),
    vjp=[lambda g, out, a, **at: diagonal_scatter(prims.zeros_like(a), g, **at)], uses_output=False)
diagonal_scatter = prims.host_call(
    "diagonal_scatter", _diagonal_scatter,
    vjp=[lambda g, out, base, new, **at: diagonal_scatter(g, prims.zeros_like(new), **at),
         lambda g, out, base, new, **at: diagonal(g, **at)], uses_output=False)


class Part(Move):
    """The real or imaginary part of a complex base."""

    __slots__ = ("real",)

    def __init__(self, real):
        self.real, self.name = real, "select"  # of the pairs of real numbers

    def read(self, base):
        return (prims.real if self.real else prims.imag)(base)

    def write(self, base, new):
        if self.real:
            return prims.make_complex(new, prims.imag(base))
        return prims.make_complex(prims.real(base), new)


class Conjugate(Move):
    __slots__ = ()

    def __init__(self):
        self.name = "conj"

    def read(self, base):
        return prims.conj(base)

    def write(self, base, new):
        return prims.conj(new)


class Negative(Move):
    """What the imaginary part of a conjugate shows."""

    __slots__ = ()

    def __init__(self):
        self.name = "neg_view"

    def read(self, base):
        return prims.neg(base)

    def write(self, base, new):
        return prims.neg(new)


class AsReal(Move):
    """A complex base as pairs of real numbers along a new last axis."""

    __slots__ = ()

    def __init__(self):
        self.name = "view_as_real"

    def read(self, base):
        return prims.stack(prims.real(base), prims.imag(base), axis=base.ndim)

    def write(self, base, new):
        return AsComplex().read(new)


class AsComplex(Move):
    __slots__ = ()

    def __init__(self):
        self.name = "view_as_complex"

    def read(self, base):
        shape = base.shape[:-1]
        parts = [prims.reshape(prims.strided_slice(base, start=(0,) * len(shape) + (i,), stop=shape + (i + 1,),
                                                   step=(1,) * base.ndim), shape=shape) for i in (0, 1)]
        return prims.make_complex(*parts)

    def write(self, base, new):
        return AsReal().read(new)


class Bits(Move):
    """The same bytes read as another dtype; the last axis grows or shrinks with the item size."""

    __slots__ = ("dtype",)

    def __init__(self, dtype):
        self.dtype, self.name = dtype, "view"

    def read(self, base):
        return view_bits(base, dtype=self.dtype)

    def write(self, base, new):
        return view_bits(new, dtype=base.dtype)


view_bits = prims.host_call(
    "view_bits", lambda a, *, dtype: np.ascontiguousarray(a).reshape(a.shape or (1,)).view(dtype).reshape(
        a.shape if dtype.itemsize == a.dtype.itemsize
        else a.shape[:-1] + (a.shape[-1] * a.dtype.itemsize // dtype.itemsize,)), differentiable=False)


def flat_memory(value, size, stride):
    """The elements of a dense base in the order of memory, as a flat Value."""
    order = memory_order(size, stride)
    if order != tuple(range(len(size))):
        value = prims.transpose(value, axes=order)
    return prims.reshape(value, shape=(numel(size),))


def from_flat_array(flat: np.ndarray, size, stride) -> np.ndarray:
    """A NumPy view with the base's size over its flat memory."""
    item = flat.itemsize
    if stride == contiguous_stride(size):
        return flat.reshape(size)
    return np.lib.stride_tricks.as_strided(flat, size, [s * item for s in stride])


class Windows(Move):
    """All windows along an axis, as a new last axis."""

    __slots__ = ("axis", "size", "step")

    def __init__(self, axis, size, step):
        self.axis, self.size, self.step, self.name = axis, size, step, "unfold"

    def _index(self, base):
        count = (base.shape[self.axis] - self.size) // self.step + 1
        return value_of((np.arange(count) * self.step)[:, None] + np.arange(self.size))

    def _flat(self, base):
        return base if base.ndim else prims.reshape(base, shape=(1,))

    def _order(self, ndim):
        return tuple(range(self.axis + 1)) + tuple(range(self.axis + 2, ndim)) + (self.axis + 1,)

    def read(self, base):
        scalar = not base.ndim
        base = self._flat(base)
        found = prims.gather(base, self._index(base), axis=self.axis)
        if found.requires_grad:
            found.node.operator = self.grad_name  # by this name it keeps its positions when the graph is freed
        if scalar:
            return prims.reshape(found, shape=(self.size,))
        order = self._order(found.ndim)
        return found if order == tuple(range(found.ndim)) else prims.transpose(found, axes=order)

    def write(self, base, new):
        flat = self._flat(base)
        back = Permute(self._order(new.ndim)).write(new, new) if flat.ndim > 1 else new
        index = self._index(flat)
        axis = self.axis
        moved = (axis, axis + 1) + tuple(range(axis)) + tuple(range(axis + 2, new.ndim))
        back = prims.transpose(back, axes=moved)
        back = prims.reshape(back, shape=(index.size,) + back.shape[2:])
        front = (axis,) + tuple(range(axis)) + tuple(range(axis + 1, flat.ndim))
        put = prims.index_put(prims.transpose(flat, axes=front), back, prims.reshape(index, shape=(index.size,)),
                              axes=(0,),
                              accumulate=False)
        return prims.reshape(Permute(front).write(put, put), shape=base.shape)
