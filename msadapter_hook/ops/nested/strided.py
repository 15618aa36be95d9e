"""Nested tensors of strided layout: a buffer of all elements, and the size of each tensor."""

import math

import numpy as np

from msadapter_hook.tensor import Tensor, dtypes, from_array
from msadapter_hook.tensor.compound import recorded_name, refusal
from msadapter_hook.tensor.geometry import wrap_dim

from ..compound import implement
from ..creation import from_data
from ..tables import OPERATORS, call
from .common import BINARY, Nested, implement_pointwise, scalar_like


class StridedNested(Nested):
    """`_buffer`: all elements in a row; `_sizes`: the size of each tensor, all of one rank. Source: PyTorch, torch.nested."""

    __slots__ = ("_buffer", "_sizes")
    __module__ = "torch"
    layout = dtypes.strided

    @classmethod
    def _of(cls, buffer, sizes):
        rank = 1 + (len(sizes[0]) if sizes else 0)
        self = cls._blank((len(sizes),) + (0,) * (rank - 1), buffer._dtype)
        self._buffer, self._sizes = buffer, tuple(map(tuple, sizes))
        return self

    @classmethod
    def _pack(cls, pieces, name=None):
        """The batch of these tensors."""
        if not pieces:
            return cls._of(from_array(np.zeros(0, np.float32)), ())
        flat = [p.reshape(-1) for p in pieces]
        made = cls._of(call("cat", flat) if len(flat) > 1 else flat[0].clone(), [p._size for p in pieces])
        return made if name is None else recorded_name(made, name)

    @property
    def _flow(self):
        return self._buffer

    def _like(self, flow):
        return StridedNested._of(flow, self._sizes)

    def _part_of(self, gradient):
        if isinstance(gradient, StridedNested):
            return gradient._buffer
        return call("cat", [g[tuple(slice(n) for n in size)].reshape(-1) for g, size in zip(gradient, self._sizes)])

    def _pieces(self):
        counts = [math.prod(size) for size in self._sizes]
        return tuple([part.view(size) for part, size in zip(self._buffer.split(counts), self._sizes)]) if counts else ()

    # ------------------------------------------------------------------------------------------------ size
    def _no_sizes(self):
        return RuntimeError("Internal error: NestedTensorImpl doesn't support sizes. Please file an issue.")

    @property
    def shape(self):
        raise self._no_sizes()

    def size(self, dim=None):
        """The size of one dimension; RuntimeError where it differs from tensor to tensor. Source: PyTorch, Tensor.size."""
        if dim is None:
            raise self._no_sizes()
        dim = wrap_dim(dim, self.ndim)
        if dim == 0:
            return len(self._sizes)
        found = {size[dim - 1] for size in self._sizes}
        if len(found) != 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return found.pop()

    def stride(self, dim=None):
        raise RuntimeError("Internal error: NestedTensorImpl doesn't support strides. Please file an issue.")

    def tolist(self):
        return self.stride()

    def numpy(self, *, force=False):
        raise self._no_sizes()

    def __len__(self):
        raise self._no_sizes()

    def __iter__(self):
        raise self._no_sizes()

    def data_ptr(self):
        return self._buffer.data_ptr()

    def _nested_values(self):
        return self._buffer

    def _nested_tensor_size(self):
        """The sizes, one tensor a row. Source: PyTorch, Tensor._nested_tensor_size."""
        return from_array(np.array(self._sizes, np.int64).reshape(len(self._sizes), -1))

    def _nested_tensor_strides(self):
        return from_array(np.array([[math.prod(s[i + 1:]) for i in range(len(s))] for s in self._sizes], np.int64))

    def _nested_tensor_storage_offsets(self):
        counts = [math.prod(s) for s in self._sizes]
        return from_array(np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64) if counts else np.zeros(0, np.int64))

    def _reduced(self):
        return StridedNested._of, (self._buffer.detach(), self._sizes)

    def __repr__(self, *, tensor_contents=None):
        pieces = [p.detach().requires_grad_() if self.requires_grad else p for p in self.detach()._pieces()]
        body = ",\n".join(["  " + repr(p).replace("\n", "\n  ") for p in pieces])
        grad_fn = self.grad_fn
        tail = f", grad_fn=<{type(grad_fn).__name__}>" if grad_fn is not None else ", requires_grad=True" if self.requires_grad else ""
        return f"nested_tensor([\n{body}\n]{tail})"


# ------------------------------------------------------------------------------------------------ making
def nested_of_list(items, dtype, device, requires_grad, keep_history):
    """A nested tensor of a list of tensors, arrays or nested data; a leaf of copies unless `keep_history`."""
    if not isinstance(items, (list, tuple)):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    pieces = [t if isinstance(t, Tensor) else from_data(t, dtype) for t in items]
    if not keep_history:
        pieces = [p.detach() for p in pieces]
    for i, p in enumerate(pieces):
        if p.ndim != pieces[0].ndim:
            raise RuntimeError("All Tensors given to nested_tensor must have the same dimension. Found dimension "
                               f"{p.ndim} for Tensor at index {i} and dimension {pieces[0].ndim} for Tensor at index 0.")
    wanted = dtype or (pieces[0]._dtype if pieces else None)
    pieces = [p if p._dtype is wanted else p.to(wanted) for p in pieces]
    if device is not None:
        pieces = [p.to(device) for p in pieces]
    made = StridedNested._pack(pieces, "NestedTensorFromTensorListBackward0" if keep_history else None)
    return made.requires_grad_() if requires_grad else made


# ------------------------------------------------------------------------------------------------ operators
implement_pointwise(StridedNested)


def _each(function, *nested, name=None):
    """The batch of what `function` makes of each tensor."""
    return StridedNested._pack([function(*one) for one in zip(*[n._pieces() for n in nested])], name)


def _both_nested(operator, name, self, other):
    if not other._compound:
        if other.ndim != self.ndim or other._size[0] not in (1, len(self._sizes)):
            raise RuntimeError(f"Expected both self and other to be nested, but got a nested self and non-nested other for {name}; a dense "
                               "operand needs the batch in front")
        rows = [other[0 if other._size[0] == 1 else i] for i in range(len(self._sizes))]
        pieces = [operator(a, b) for a, b in zip(self._pieces(), rows)]
        if any(p._size != size for p, size in zip(pieces, self._sizes)):
            raise RuntimeError(f"{name} does not support broadcasting when given a NestedTensor")
        return StridedNested._pack(pieces)
    if self._sizes != other._sizes:
        if len(self._sizes) != len(other._sizes):
            raise RuntimeError(f"{name} does not support broadcasting when given a NestedTensor")
        return _each(operator, self, other)
    return self._like(operator(self._buffer, other._buffer))


def _binary(name):
    operator = OPERATORS[name]

    def run(self, other=None, exponent=None, **options):
        other = exponent if other is None else other
        if name == "eq" and isinstance(other, Tensor) and other._compound:
            raise RuntimeError("eq does not support nested tensor as other value.")

        def apply(a, b):
            return operator(a, b, **options)

        if not (isinstance(self, Tensor) and self._compound):
            if scalar_like(self):
                return other._like(apply(self, other._buffer))
            return _both_nested(lambda a, b: apply(b, a), name, other, self)
        if scalar_like(other):
            return self._like(apply(self._buffer, other))
        return _both_nested(apply, name, self, other)

    return run


for _name in BINARY:
    if _name in OPERATORS:
        implement(StridedNested, names=_name)(_binary(_name))


def _rows(self, width):
    """The buffer as rows of `width`; RuntimeError where a tensor's last dimension differs."""
    if any(not s or s[-1] != width for s in self._sizes):
        raise RuntimeError(f"the last dimension of every tensor must be {width}, but got {sorted({s[-1] for s in self._sizes if s})}")
    return self._buffer.reshape(-1, width)


@implement(StridedNested, names="nn.functional.linear linear")
def linear(input, weight, bias=None):
    made = call("nn.functional.linear", _rows(input, weight._size[1]), weight, bias).reshape(-1)
    return StridedNested._of(made, [(*s[:-1], weight._size[0]) for s in input._sizes])


@implement(StridedNested, names="matmul bmm mm")
def matmul(self, other=None, mat2=None):
    other = mat2 if other is None else other
    if not (isinstance(self, StridedNested) and isinstance(other, StridedNested)):
        kinds = ["nested" if isinstance(t, StridedNested) else "non-nested" for t in (self, other)]
        raise RuntimeError(f"Expected both to be nested, but got a {kinds[0]} self and {kinds[1]} other")
    return _each(OPERATORS["matmul"], self, other)


@implement(StridedNested, names="transpose swapaxes swapdims")
def transpose(self, dim0, dim1):
    i, j = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
    if i == j:
        return self
    if 0 in (i, j):
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    return _each(lambda p: p.transpose(i - 1, j - 1), self, name="TransposeBackward0")


def _normalized(operator):
    def function(self=None, dim=None, dtype=None, input=None, _stacklevel=3):
        nested = self if self is not None else input
        place = wrap_dim(dim, nested.ndim)
        if place == 0:
            raise RuntimeError("Cannot apply softmax across nested dimension 0")
        return _each(lambda p: call(operator, p, place - 1, dtype=dtype), nested)

    return function


for _name in ("softmax", "log_softmax"):
    implement(StridedNested, names=f"{_name} nn.functional.{_name}")(_normalized(_name))


@implement(StridedNested, names="nn.functional.layer_norm layer_norm")
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    if weight is None or bias is None:
        raise ValueError("NestedTensor layer_norm requires weight and bias")
    shape = tuple(normalized_shape)
    rows = input._buffer.reshape(-1, *shape)
    return input._like(call("nn.functional.layer_norm", rows, shape, weight, bias, eps).reshape(-1))


@implement(StridedNested, names="embedding")
def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    made = call("embedding", weight, indices._buffer, padding_idx, scale_grad_by_freq, sparse).reshape(-1)
    return StridedNested._of(made, [(*s, weight._size[1]) for s in indices._sizes])


@implement(StridedNested, names="sum")
def sum(self, dim=None, keepdim=False, dtype=None):
    if dim is None:
        raise refusal("sum", self, "sum(-1, keepdim=True) reduces the last dimension, unbind() gives the tensors")
    dims = (dim,) if isinstance(dim, int) else dim
    if len(dims) != 1 or wrap_dim(dims[0], self.ndim) != self.ndim - 1:
        raise RuntimeError(f"NestedTensor can only be reduced across the last dimension for now got dimension {dims[0]} instead.")
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return _each(lambda p: call("sum", p, (-1,), True, dtype=dtype), self)


@implement(StridedNested, names="reshape view")
def reshape(self, shape=None, size=None):
    size = tuple(size if shape is None else shape)
    if not size or size[0] not in (-1, len(self._sizes)):
        raise RuntimeError(f"view: For now nested view cannot change or infer the implicit batch dimension, which is {len(self._sizes)}")
    rest = size[1:]

    def one(p):
        if rest.count(-1) < 2:
            return p.reshape(rest)
        return p.reshape([p._size[i] if n == -1 and i < p.ndim else n for i, n in enumerate(rest)])

    return _each(one, self)


def _along(name):
    """An operator along one dimension that leaves the batch alone."""
    def run(self, dim, **options):
        dim = wrap_dim(dim, self.ndim + (name == "unsqueeze"))
        if dim == 0:
            raise RuntimeError(f"{name}(): For nested tensors, dimension 0 is the batch, which {name} cannot change")
        return _each(lambda p: call(name, p, dim - 1, **options), self)

    return run


for _name in ("unsqueeze", "narrow", "cumsum", "flip"):
    implement(StridedNested, names=_name)(_along(_name))


@implement(StridedNested, names="squeeze")
def squeeze(self, dim=None):
    if dim is None:
        raise RuntimeError("squeeze(): For nested tensors, squeeze without the dim argument is not supported at the moment if you need "
                           "this feature, please open an issue on github describing your use case.")
    dim = wrap_dim(dim, self.ndim)
    if dim == 0:
        raise RuntimeError("squeeze(): For nested tensors, squeezing dimension 0 is not supported at the moment if you need this feature, "
                           "please open an issue on github describing your use case.")
    return _each(lambda p: p.squeeze(dim - 1), self)


@implement(StridedNested, names="select")
def select(self, dim, index):
    dim = wrap_dim(dim, self.ndim)
    return self[int(index)] if dim == 0 else _each(lambda p: p.select(dim - 1, int(index)), self)


@implement(StridedNested, names="chunk")
def chunk(self, chunks, dim=0):
    if wrap_dim(dim, self.ndim) != self.ndim - 1:
        raise RuntimeError("Chunk for nested tensors is currently only supported for the last dimension.")
    parts = zip(*[p.chunk(chunks, -1) for p in self._pieces()])
    return tuple([StridedNested._pack(list(part)) for part in parts])


@implement(StridedNested, names="cat concat concatenate")
def cat(tensors, dim=0):
    if dim != 0 or not all(isinstance(t, StridedNested) for t in tensors):
        raise RuntimeError("Only nested tensors along dimension 0 are concatenated; pad them or unbind them for anything else")
    return StridedNested._of(call("cat", [t._buffer for t in tensors]), [s for t in tensors for s in t._sizes])


@implement(StridedNested, names="unbind")
def unbind(self, dim=0):
    if dim != 0:
        raise RuntimeError(f"unbind: nested tensors are taken apart along dimension 0 only, not {dim}")
    return self._pieces()


@implement(StridedNested, names="contiguous")
def contiguous(self, memory_format=None):
    return self


@implement(StridedNested, names="masked_fill")
def masked_fill(self, mask, value):
    if not isinstance(mask, StridedNested) or mask._sizes != self._sizes:
        raise RuntimeError("masked_fill: the mask of a nested tensor is a nested tensor of the same sizes")
    return self._like(call("masked_fill", self._buffer, mask._buffer, value))


@implement(StridedNested, names="nn.functional.scaled_dot_product_attention")
def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if attn_mask is not None:
        raise RuntimeError("scaled_dot_product_attention: attn_mask is not supported with nested tensors; pad them")
    return _each(lambda q, k, v: call("nn.functional.scaled_dot_product_attention", q, k, v, None, dropout_p, is_causal, scale=scale,
                                      enable_gqa=enable_gqa), query, key, value)
