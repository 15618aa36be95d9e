"""How the gradients of a pass lie in memory and how often they were written to, as PyTorch's engine would leave them.

Values have no strides. This follows the pass in numbers only: which gradients are handed on as they are, which are expanded
or transposed views of others, and which sums PyTorch takes in place because nobody else holds the first summand.
"""

from msadapter_hook import prims
from msadapter_hook.prims import activation, pointwise
from msadapter_hook.tape import Primitive
from msadapter_hook.tensor import Tensor
from msadapter_hook.tensor.geometry import (
    columns_stride,
    elementwise_stride,
    is_contiguous,
    is_dense,
    memory_order,
    overlaps,
    permuted_stride,
    standard_stride,
    view_stride,
)
from msadapter_hook.tensor.view import Expand

from .passes import key_of

LARGE = 256  # nodes; in larger graphs nobody counts the writes to `.grad`

ELEMENTWISE = frozenset(id(p) for module in (pointwise, activation) for p in vars(module).values() if isinstance(p, Primitive))
PASSING = frozenset(id(p) for p in (prims.add, prims.graft, prims.renewed, prims.copy))  # hand the gradient itself on

# How often PyTorch's formula writes to the gradient of an input, by the name of the gradient: (inputs, ...), the last counts on.
WRITES = {
    "AsStridedBackward0": (1,), "CopysignBackward0": (0, 1), "CummaxBackward0": (2,), "CumminBackward0": (2,),
    "GatherBackward0": (1,), "IndexBackward0": (1,), "IndexSelectBackward0": (1,), "KthvalueBackward0": (2,),
    "MaskedSelectBackward0": (1,), "MaxBackward0": (2,), "MaxBackward1": (1,), "MinBackward0": (2,), "MinBackward1": (1,),
    "MaximumBackward0": (1,), "MinimumBackward0": (1,),
    "MedianBackward0": (1,), "MedianBackward1": (2,), "NanmedianBackward0": (1,), "NanmedianBackward1": (2,),
    "ModeBackward0": (2,), "NextafterBackward0": (0, 1), "SortBackward0": (2,), "SortBackward1": (2,), "TakeBackward0": (1,),
    "TopkBackward0": (2,), "TraceBackward0": (2,),
}

# Operators that PyTorch makes of others bear the name of the last: each of their steps adds to the gradient on its own.
COMPOSED = frozenset(["AddBackward0", "SubBackward0", "MulBackward0", "DivBackward0", "MeanBackward0", "SumBackward0", "SumBackward1"])
JOINED = frozenset(["UnbindBackward0", "SplitBackward0", "SplitWithSizesBackward0", "ChunkBackward0", "TensorSplitBackward0"])


class Gradient:
    """One gradient tensor: its strides, who holds it, and the memory and version that its views have in common with it."""

    __slots__ = ("size", "stride", "holders", "memory")

    def __init__(self, size, stride=None, version=0, memory=None):
        self.size = size
        self.stride = standard_stride(size) if stride is None else stride
        self.holders = 0
        self.memory = Memory(version) if memory is None else memory

    @property
    def version(self):
        return self.memory.version

    def hold(self, count=1):
        self.holders += count
        self.memory.holders += count

    def reusable(self):
        """Whether a sum may be written over it: one holder, and no element twice."""
        return self.holders == 1 and self.memory.holders == 1 and dense(self.size, self.stride)

    def view(self, size, stride):
        return Gradient(size, stride, memory=self.memory)


class Memory:
    """What gradient tensors have in common: the number of their holders, and of the writes."""

    __slots__ = ("holders", "version")

    def __init__(self, version):
        self.holders = 0
        self.version = version


def dense(size, stride):
    return is_dense(size, stride) and not overlaps(size, stride)


def stride_of(value):
    """The strides of the tensor that a Value was read from, as far as the graph tells."""
    tensor = value.leaf.tensor() if value.leaf is not None and value.leaf.tensor is not None else None
    if tensor is not None and tensor._size == value.shape:
        return tensor._stride
    node = value.node
    if node is not None and node.primitive is prims.transpose:
        below = stride_of(node.inputs[0])
        return tuple([below[a] for a in node.attributes["axes"]])
    return standard_stride(value.shape)


def matters(ordered):
    """Whether some leaf may get a gradient that is not simply a new tensor: then `follow` tells what PyTorch would leave."""
    seen = set()
    for node in ordered:
        for v in node.inputs:
            if v.leaf is not None:
                if v.leaf in seen or node.operator in WRITES or node.primitive in VIEWED or (
                        node.primitive in HANDED and v.shape == node.specs[0][0]):
                    return True
                seen.add(v.leaf)
    return False


def follow(ordered, roots, needed, captured, create_graph):
    """{key: Gradient} of what a pass over `ordered` nodes hands out: of the keys in `captured`, or of every leaf.

    `roots`: (value, strides of its gradient) pairs. `needed(node, value)`: whether the pass goes on to an input.
    """
    waiting, found, buffers, joined = {}, {}, {}, {}
    names, heads = {}, {}  # an operator made of several nodes has one name
    for node in ordered:
        for v in node.inputs:
            if v.leaf is not None and needed(node, v):
                waiting[v.leaf] = waiting.get(v.leaf, 0) + 1

    def add(value, gradient):
        key = key_of(value)
        have = buffers.get(key)
        if have is None:
            gradient.hold()
            buffers[key] = gradient
        elif not create_graph and have.reusable():
            have.memory.version += 1
        else:
            have.hold(-1)
            made = Gradient(value.shape, _elementwise(value.shape, have, gradient))
            made.hold()
            buffers[key] = made

    for value, stride in roots:
        given = Gradient(value.shape, stride)
        given.hold()  # whoever called has it
        add(value, given)
        if value.leaf is not None and value.leaf not in waiting:
            found[value.leaf] = buffers[value.leaf]
    for node in reversed(ordered):
        given = [buffers.pop((node, i), None) for i in range(len(node.specs))]
        for i, g in enumerate(given):
            if g is not None and captured is not None and (node, i) in captured:
                found[node, i] = g
                g.hold()
        first = next((g for g in given if g is not None), None)
        if first is None:
            continue
        name, head = node.operator or names.get(id(node)), heads.get(id(node), id(node))
        results = []
        for i, v in enumerate(node.inputs):
            if not needed(node, v):
                continue
            if v.node is not None and v.node.operator is None:
                names[id(v.node)], heads[id(v.node)] = name, head
            if name in JOINED or name not in COMPOSED:  # one gradient of several outputs, of the steps of one operator
                place = (name if name in JOINED else head, key_of(v))
                if joined.setdefault(place, node) is not node:
                    if v.leaf is not None:
                        waiting[v.leaf] -= 1
                        if not waiting[v.leaf]:
                            found[v.leaf] = buffers.pop(v.leaf)
                    continue
            results.append((v, _passed(node, name, first, i)))
        for g in given:
            if g is not None:
                g.hold(-1)
        for _, gradient in results:
            gradient.hold()
        for v, gradient in results:
            gradient.hold(-1)
            add(v, gradient)
            if v.leaf is not None:
                waiting[v.leaf] -= 1
                if not waiting[v.leaf]:
                    found[v.leaf] = buffers.pop(v.leaf)
    found.update([(leaf, g) for leaf, g in buffers.items() if leaf in waiting])
    return found


def laid_out(value, gradient):
    """A gradient that was asked for, as a tensor with the strides and the version that PyTorch's would have."""
    if gradient is None or gradient.size != value.shape or value.wrapped:
        return Tensor._make(value)
    size, stride = gradient.size, gradient.stride
    if overlaps(size, stride):  # the same number along whole dimensions
        first = prims.strided_slice(value, start=(0,) * len(size), step=(1,) * len(size),
                                    stop=tuple([1 if n and not t else n for n, t in zip(size, stride)]))
        narrow = tuple([1 if n and not t else n for n, t in zip(size, stride)])
        made = Tensor._make(first, None, permuted_stride(narrow, memory_order(narrow, stride)))
        return made._view(Expand(size), size, tuple([t if n == 1 else s for n, t, s in zip(narrow, stride, made._stride)]))
    made = Tensor._make(value, None, stride if dense(size, stride) else None)
    made._history.version.count = gradient.version
    return made


def kept(value, leaf, gradient, create_graph):
    """The first gradient of a leaf, as `.grad`: it lies in memory as the leaf does where that is dense.

    PyTorch takes the gradient tensor itself where it lies so and nobody else holds it, and copies it elsewhere.
    """
    tensor = leaf.tensor() if leaf.tensor is not None else None
    if tensor is None or tensor._size != value.shape:
        return Tensor._make(value)
    size, stride = tensor._size, tensor._stride
    follows = dense(size, stride)
    made = Tensor._make(value, None, stride if follows else standard_stride(size))
    if gradient is not None:
        taken = not create_graph and gradient.holders == 1 and _alike(size, gradient.stride, made._stride)
        made._history.version.count = gradient.version if taken else int(follows)
    return made


def _alike(size, one, other):
    return all(n == 1 or s == t for n, s, t in zip(size, one, other))


def _elementwise(shape, *gradients):
    return elementwise_stride(shape, [(g.size, g.stride) for g in gradients if len(g.size) <= len(shape)])


def _passed(node, name, g, at):
    """The gradient of input `at` of a node (of an operator of that name) whose first output has the gradient `g`."""
    value, primitive = node.inputs[at], node.primitive
    if primitive in _RULES:
        return _RULES[primitive](node, g, value)
    same = value.shape == g.size
    if id(primitive) in PASSING or primitive is prims.sub and at == 0:
        return g if same and value.dtype == node.specs[0][1] else Gradient(value.shape)
    broadcast = id(primitive) in ELEMENTWISE and not same  # what was written is summed then
    writes = WRITES.get(name, (0,)) if not broadcast else (0,)
    stride = None
    if same and id(primitive) in ELEMENTWISE:
        stride = elementwise_stride(value.shape, [(g.size, g.stride)] + [
            (v.shape, stride_of(v)) for v in node.inputs if len(v.shape) <= len(value.shape)])
    return Gradient(value.shape, stride, writes[min(at, len(writes) - 1)])


def _reshaped(node, g, value):
    if value.shape == g.size:
        return g
    stride = view_stride(g.size, g.stride, value.shape)
    return Gradient(value.shape) if stride is None else g.view(value.shape, stride)


def _transposed(node, g, value):
    stride = [0] * len(value.shape)
    for place, axis in enumerate(node.attributes["axes"]):
        stride[axis] = g.stride[place]
    return g.view(value.shape, tuple(stride))


def _expanded(node, g, value):
    """The gradient of a sum: the same number for all that was summed."""
    axes, left = node.attributes["axes"], list(g.stride)
    axes = range(len(value.shape)) if axes is None else [a % max(len(value.shape), 1) for a in axes]
    kept = node.attributes.get("keepdims")
    stride = []
    for d in range(len(value.shape)):
        if d in axes:
            if kept:
                left.pop(0)
            stride.append(0)
        else:
            stride.append(left.pop(0))
    if not value.shape:
        return g
    return g.view(value.shape, tuple(stride))


def _averaged(node, g, value):
    wide = _expanded(node, g, value)
    return Gradient(value.shape, _elementwise(value.shape, wide))


def _summed(node, g, value):
    return g if value.shape == g.size else Gradient(value.shape)


def _multiplied(node, g, value):
    """Of a product of two matrices: as the matrix itself lies."""
    stride = stride_of(value)
    if len(value.shape) == 2 and not is_contiguous(value.shape, stride) and stride == columns_stride(value.shape):
        return Gradient(value.shape, stride)
    return Gradient(value.shape)


def _looked_up(node, g, value):
    """Of a lookup with a sparse gradient: strides of zero where its values are one number spread out."""
    return Gradient(value.shape, (0,) * len(value.shape) if overlaps(g.size, g.stride) and node.attributes["padding"] < 0 else None)


VIEWED = frozenset([prims.reshape, prims.transpose, prims.sum])
HANDED = frozenset([prims.add, prims.sub, prims.graft, prims.renewed, prims.copy, prims.broadcast_to])
_RULES = {
    prims.sparse_lookup: _looked_up,
    prims.reshape: _reshaped, prims.transpose: _transposed, prims.sum: _expanded, prims.mean: _averaged,
    prims.broadcast_to: _summed, prims.matmul: _multiplied,
}
