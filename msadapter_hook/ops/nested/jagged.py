"""Nested tensors of jagged layout: one dimension is ragged, its rows lie one after another in `values`, cut by `offsets`."""

import itertools

import numpy as np

from msadapter_hook.tensor import Size, Tensor, dtypes, from_array
from msadapter_hook.tensor.compound import recorded_name, refusal
from msadapter_hook.tensor.geometry import wrap_dim
from msadapter_hook.tensor.sparse import scattered

from ..compound import implement
from ..tables import OPERATORS, call
from .common import BINARY, Nested, implement_pointwise, scalar_like

_numbers = itertools.count(1)


class RaggedSize(int):
    """The size of a ragged dimension: no number, but the same for all tensors over the same offsets."""

    def __new__(cls, number, longest):
        self = int.__new__(cls, longest)
        self.number = number
        return self

    def __repr__(self):
        return f"j{self.number}"

    __str__ = __repr__

    def __eq__(self, other):
        return isinstance(other, RaggedSize) and other.number == self.number

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(("ragged", self.number))


class JaggedTensor(Nested, own_name=True):
    """`_rows` (…, total, …): all rows along the ragged dimension (number `_ragged`, counted with the batch), cut by `_cuts`."""

    __slots__ = ("_rows", "_cuts", "_ragged")
    layout = dtypes.jagged

    @classmethod
    def _of(cls, rows, cuts, ragged=1):
        lengths = np.diff(cuts.value.numpy)
        symbol = cuts.__dict__.get("_symbol")
        if symbol is None:
            symbol = cuts.__dict__["_symbol"] = RaggedSize(next(_numbers), int(lengths.max()) if lengths.size else 0)
        size = (lengths.size, *rows._size)
        self = cls._blank(size, rows._dtype)
        self._rows, self._cuts, self._ragged = rows, cuts, ragged
        self._size = tuple.__new__(Size, (*size[:ragged], symbol, *size[ragged + 1:]))
        self._stride = ()
        return self

    @property
    def _flow(self):
        return self._rows

    def _like(self, flow):
        return JaggedTensor._of(flow, self._cuts, self._ragged)

    def _part_of(self, gradient):
        if isinstance(gradient, JaggedTensor):
            return gradient._rows
        axis = self._ragged - 1
        return call("cat", [g.narrow(axis, 0, n) for g, n in zip(gradient, self._lengths())], axis)

    def _lengths(self):
        return np.diff(self._cuts.value.numpy).tolist()

    def _pieces(self):
        return tuple(self._rows.split(self._lengths(), self._ragged - 1))

    def __len__(self):
        return len(self._lengths())

    def is_contiguous(self, memory_format=None):
        return self._ragged == 1

    def values(self):
        """The rows of all tensors one after another. Source: PyTorch, the jagged layout of torch.nested."""
        return self._rows

    def offsets(self):
        """Where each tensor's rows start, and where the last ends. Source: PyTorch, the jagged layout of torch.nested."""
        return self._cuts

    def lengths(self):
        """None: the rows of the tensors lie one after another without gaps. Source: PyTorch, the jagged layout of torch.nested."""
        return

    def stride(self, dim=None):
        raise refusal("stride", self)

    def numpy(self, *, force=False):
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def tolist(self):
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got NestedTensor")

    def _reduced(self):
        return JaggedTensor._of, (self._rows.detach(), self._cuts.detach(), self._ragged)

    def __repr__(self, *, tensor_contents=None):
        size = ", ".join(map(str, self._size))
        grad_fn = self.grad_fn
        flag = f", grad_fn={grad_fn}" if grad_fn is not None else ", requires_grad=True" if self.requires_grad else ""
        return f"NestedTensor(size=({size}), offsets={self._cuts}{flag}, contiguous={self.is_contiguous()})"


JaggedTensor.__name__ = JaggedTensor.__qualname__ = "NestedTensor"
JaggedTensor.__module__ = "torch.nested._internal.nested_tensor"


# ------------------------------------------------------------------------------------------------ making
_ONE_RAGGED = ("Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout only allows "
               "for a single ragged dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim.")


def jagged_of_list(pieces, keep_history, requires_grad=False):
    """A jagged tensor of tensors that differ in their first dimension only."""
    if not pieces:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    if any(p.ndim < 1 or p._size[1:] != pieces[0]._size[1:] or p.ndim != pieces[0].ndim for p in pieces):
        raise RuntimeError(_ONE_RAGGED)
    lengths = [p._size[0] for p in pieces]
    rows = call("cat", list(pieces))
    made = JaggedTensor._of(rows if keep_history else rows.detach(), offsets_of(lengths))
    return made.requires_grad_() if requires_grad else made


def offsets_of(lengths):
    return from_array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))


# ------------------------------------------------------------------------------------------------ operators
implement_pointwise(JaggedTensor)


def _dense_operand(nested, dense):
    """A dense operand as it meets the rows: broadcast as it is, or its row of the batch for each row."""
    if dense.ndim < nested.ndim:
        if dense.ndim and dense.ndim >= nested.ndim - nested._ragged and dense._size[dense.ndim - nested.ndim + nested._ragged] != 1:
            raise RuntimeError(f"the ragged dimension of a nested tensor of size {nested._size} does not take a dense operand of size "
                               f"{list(dense._size)}")
        return dense
    if dense.ndim > nested.ndim or dense._size[nested._ragged] != 1:
        raise RuntimeError(f"a nested tensor of size {nested._size} and a dense one of size {list(dense._size)} do not broadcast: the "
                           "ragged dimension takes size 1 only")
    if dense._size[0] == 1:
        return dense[0]
    which = from_array(np.repeat(np.arange(len(nested)), nested._lengths()))
    return call("index_select", dense.select(nested._ragged, 0), 0, which).movedim(0, nested._ragged - 1)


def _pair(operator, one, other):
    nested = one if isinstance(one, JaggedTensor) else other
    rows = []
    for t in (one, other):
        if isinstance(t, JaggedTensor):
            if t._size[nested._ragged] != nested._size[nested._ragged] or t._ragged != nested._ragged:
                raise RuntimeError("cannot call binary pointwise function with inputs of shapes "
                                   f"{tuple(one._size)} and {tuple(other._size)}: nested tensors share the ragged dimension where they "
                                   "share their offsets")
            rows.append(t._rows)
        else:
            rows.append(t if scalar_like(t) else _dense_operand(nested, t))
    return JaggedTensor._of(operator(*rows), nested._cuts, nested._ragged)


def _binary(name):
    operator = OPERATORS[name]

    def run(self=None, other=None, exponent=None, **options):
        return _pair(lambda a, b: operator(a, b, **options), self, exponent if other is None else other)

    return run


for _name in BINARY:
    if _name in OPERATORS:
        implement(JaggedTensor, names=_name)(_binary(_name))


def _where(condition, self, other):
    nested = next(t for t in (condition, self, other) if isinstance(t, JaggedTensor))

    def rows(t):
        return t._rows if isinstance(t, JaggedTensor) else t if scalar_like(t) else _dense_operand(nested, t)

    return nested._like(call("where", rows(condition), rows(self), rows(other)))


implement(JaggedTensor, names="where")(_where)


@implement(JaggedTensor, names="nn.functional.linear linear")
def linear(input, weight, bias=None):
    return input._like(call("nn.functional.linear", input._rows, weight, bias))


@implement(JaggedTensor, names="matmul mm bmm")
def matmul(self, other=None, mat2=None):
    other = mat2 if other is None else other
    if isinstance(self, JaggedTensor) and not other._compound and other.ndim == 2:
        return self._like(call("matmul", self._rows, other))
    if not (isinstance(self, JaggedTensor) and isinstance(other, JaggedTensor)):
        raise RuntimeError(f"matmul: not supported between inputs of shapes {tuple(self._size)} and {tuple(other._size)}")
    made = [call("matmul", a, b) for a, b in zip(self._pieces(), other._pieces())]
    if self._ragged == self.ndim - 1 and other._ragged == other.ndim - 2:  # over the ragged dimension: dense
        return call("stack", made)
    if self._ragged == self.ndim - 2 and other._ragged != other.ndim - 1:
        axis = self._ragged - 1
        return JaggedTensor._of(call("cat", made, axis), self._cuts, self._ragged)
    raise RuntimeError(f"matmul: the product of nested tensors of sizes {tuple(self._size)} and {tuple(other._size)} has two ragged "
                       "dimensions; unbind them")


@implement(JaggedTensor, names="embedding")
def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return indices._like(call("embedding", weight, indices._rows, padding_idx, scale_grad_by_freq, sparse))


@implement(JaggedTensor, names="nn.functional.layer_norm layer_norm")
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    return input._like(call("nn.functional.layer_norm", input._rows, normalized_shape, weight, bias, eps))


def _inner(nested, dim, name):
    """A dimension of the rows for one of the tensor that is neither the batch nor ragged."""
    dim = wrap_dim(dim, nested.ndim)
    if dim in (0, nested._ragged):
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim={dim}, the {'batch' if dim == 0 else 'ragged dimension'}; "
                           "pad or unbind it")
    return dim - 1


def _softmax(kernel):
    def run(self=None, dim=None, dtype=None, input=None, _stacklevel=3):
        nested = self if self is not None else input
        if wrap_dim(dim, nested.ndim) == nested._ragged:
            made = [call(kernel, p, nested._ragged - 1, dtype=dtype) for p in nested._pieces()]
            return nested._like(call("cat", made, nested._ragged - 1))
        return nested._like(call(kernel, nested._rows, _inner(nested, dim, kernel), dtype=dtype))

    return run


for _name in ("softmax", "log_softmax"):
    implement(JaggedTensor, names=f"{_name} nn.functional.{_name}")(_softmax(_name))


# ------------------------------------------------------------------------------------------------ reductions
def _segment_sum(nested):
    """(batch, …): the rows of each tensor added up."""
    axis = nested._ragged - 1
    rows = nested._rows.movedim(axis, 0)
    which = np.repeat(np.arange(len(nested)), nested._lengths())
    made = Tensor._make(scattered(rows.value, which, len(nested)), nested._dtype)
    return made.movedim(0, 0) if axis == 0 else made.movedim(1, axis + 1) if axis + 1 < made.ndim else made


def _summing(mean):
    name = "mean" if mean else "sum"

    def run(self, dim=None, keepdim=False, dtype=None):
        if dim is None:
            return call(name, self._rows, dtype=dtype)
        dims = [wrap_dim(d, self.ndim) for d in ((dim,) if isinstance(dim, int) else dim)]
        if 0 in dims and self._ragged in dims and len(dims) == 2 and not keepdim:
            return call(name, self._rows, (self._ragged - 1,), dtype=dtype)
        if 0 in dims:
            raise RuntimeError(f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested "
                               "tensors")
        if self._ragged not in dims:
            inner = tuple([d - 1 for d in dims])
            made = call(name, self._rows, inner, keepdim, dtype=dtype)
            before = 0 if keepdim else len([d for d in dims if d < self._ragged])
            return JaggedTensor._of(made, self._cuts, self._ragged - before)
        source = self if dtype is None else self.to(dtype)
        made = _segment_sum(source)
        if mean:
            counts = np.maximum(np.array(self._lengths()), 1).reshape(-1, *(1,) * (made.ndim - 1))
            made = call("div", made, from_array(counts.astype(np.int64)))
        if keepdim:
            made = made.unsqueeze(self._ragged)
        others = [d if keepdim or d < self._ragged else d - 1 for d in dims if d != self._ragged]
        return call(name, made, tuple(others), keepdim) if others else made

    return run


implement(JaggedTensor, names="sum")(_summing(False))
implement(JaggedTensor, names="mean")(_summing(True))


def _extreme(name, whole):
    def run(self, dim=None, keepdim=False):
        if dim is None or isinstance(dim, tuple) and not dim:
            return call(whole, self._rows)
        dims = [wrap_dim(d, self.ndim) for d in ((dim,) if isinstance(dim, int) else dim)]
        if len(dims) != 1:
            raise refusal(name, self)
        if dims[0] == self._ragged and name.startswith("a"):
            return call("stack", [call(name, p, (self._ragged - 1,), keepdim) for p in self._pieces()])
        inner = _inner(self, dims[0], name)
        made = call(name, self._rows, (inner,) if name.startswith("a") else inner, keepdim)
        ragged = self._ragged - (0 if keepdim or dims[0] > self._ragged else 1)
        if isinstance(made, tuple):
            return type(made)(*[JaggedTensor._of(m, self._cuts, ragged) for m in made])
        return JaggedTensor._of(made, self._cuts, ragged)

    return run


for _name in ("max", "min", "amax", "amin", "argmax", "argmin", "all", "any"):
    implement(JaggedTensor, names=_name)(_extreme(_name, _name))


# ------------------------------------------------------------------------------------------------ shape
@implement(JaggedTensor, names="unbind")
def unbind(self, dim=0):
    if dim != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    return self._pieces()


@implement(JaggedTensor, names="select")
def select(self, dim, index):
    if wrap_dim(dim, self.ndim) == 0:
        return self[int(index)]
    inner = _inner(self, dim, "select")
    ragged = self._ragged - (inner + 1 < self._ragged)
    return JaggedTensor._of(self._rows.select(inner, int(index)), self._cuts, ragged)


@implement(JaggedTensor, names="transpose swapaxes swapdims")
def transpose(self, dim0, dim1):
    i, j = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
    if i == j:
        return self
    if 0 in (i, j):
        raise RuntimeError("transpose(): not supported for NestedTensor on dim=0")
    ragged = {i: j, j: i}.get(self._ragged, self._ragged)
    return recorded_name(JaggedTensor._of(self._rows.transpose(i - 1, j - 1), self._cuts, ragged), "TransposeBackward0")


@implement(JaggedTensor, names="contiguous")
def contiguous(self, memory_format=None):
    return self if self._rows.is_contiguous() else self._like(self._rows.contiguous())


@implement(JaggedTensor, names="unsqueeze")
def unsqueeze(self, dim):
    dim = wrap_dim(dim, self.ndim + 1)
    if dim == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    return JaggedTensor._of(self._rows.unsqueeze(dim - 1), self._cuts, self._ragged + (dim <= self._ragged))


@implement(JaggedTensor, names="squeeze")
def squeeze(self, dim=None):
    if dim is None:
        raise RuntimeError("squeeze(): For NestedTensors, squeeze without the dim argument is not supported")
    inner = _inner(self, dim, "squeeze")
    gone = self._rows._size[inner] == 1
    return JaggedTensor._of(self._rows.squeeze(inner), self._cuts, self._ragged - (gone and inner + 1 < self._ragged))


@implement(JaggedTensor, names="reshape view")
def reshape(self, shape=None, size=None):
    wanted = tuple(size if shape is None else shape)
    if len(wanted) <= self._ragged or self._ragged != 1 or wanted[0] not in (-1, len(self)) or not (
            wanted[1] == self._size[1] or wanted[1] == -1):
        raise RuntimeError(f"view(): cannot view shape {tuple(self._size)} as {wanted}: the batch and the ragged dimension stay in front")
    rest = wanted[2:]
    if rest.count(-1) and -1 == wanted[1]:
        raise RuntimeError("view(): only one dimension can be inferred, and the ragged one is not a number")
    return JaggedTensor._of(self._rows.reshape((self._rows._size[0], *rest)), self._cuts, 1)


@implement(JaggedTensor, names="flatten")
def flatten(self, start_dim=0, end_dim=-1):
    first, last = wrap_dim(start_dim, self.ndim), wrap_dim(end_dim, self.ndim)
    if first <= self._ragged:
        raise RuntimeError("flatten(): the batch and the ragged dimension of a NestedTensor cannot be flattened")
    return self._like(self._rows.flatten(first - 1, last - 1))


def _parts(name):
    def run(self, dim=0, **options):
        inner = _inner(self, dim, name)
        return tuple([self._like(part) for part in call(name, self._rows, dim=inner, **options)])

    return run


for _name in ("chunk", "split"):
    implement(JaggedTensor, names=_name)(_parts(_name))


@implement(JaggedTensor, names="cat concat concatenate")
def cat(tensors, dim=0):
    if not all(isinstance(t, JaggedTensor) for t in tensors):
        raise RuntimeError("cat: nested tensors and dense ones cannot be joined")
    if wrap_dim(dim, tensors[0].ndim) == 0:
        return jagged_of_list([p for t in tensors for p in t._pieces()], True)
    inner = _inner(tensors[0], dim, "cat")
    return tensors[0]._like(call("cat", [t._rows for t in tensors], inner))


@implement(JaggedTensor, names="nn.functional.scaled_dot_product_attention")
def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if attn_mask is not None:
        raise RuntimeError("scaled_dot_product_attention: attn_mask is not supported with nested tensors; pad them")
    run = OPERATORS["nn.functional.scaled_dot_product_attention"]
    made = [run(q, k, v, None, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
            for q, k, v in zip(query._pieces(), key._pieces(), value._pieces())]
    return JaggedTensor._of(call("cat", made, query._ragged - 1), query._cuts, query._ragged)



