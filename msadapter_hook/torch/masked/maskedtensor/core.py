"""MaskedTensor: a tensor and a mask of the same size that says which of its elements count."""

from importlib import import_module

from msadapter_hook.ops import compound
from msadapter_hook.ops.methods import convert as _converted
from msadapter_hook.ops.tables import OPERATORS, call
from msadapter_hook.tensor import Tensor
from msadapter_hook.tensor.compound import Compound, refusal

torch = import_module("...", __package__)  # the root that this tree is served under

__all__ = ["MaskedTensor", "is_masked_tensor"]

_MISMATCH = "Input masks must match. If you need support for this, please open an issue on Github."


def is_masked_tensor(obj, /):
    """Whether `obj` is a MaskedTensor. Source: PyTorch, torch.masked.is_masked_tensor."""
    return isinstance(obj, MaskedTensor)


class MaskedTensor(Compound, own_name=True):
    """`data` and a boolean `mask` of its size (True: the element counts). TypeError and ValueError where they do not fit.

    Source: PyTorch, torch.masked.MaskedTensor.
    """

    __slots__ = ("_data", "_mask")
    _backend, _noun, _kind = "MaskedTensor", "MaskedTensor", "Masked"
    _advice = "get_data() and get_mask() give the plain tensors"
    layout = torch.strided

    def __new__(cls, data, mask, requires_grad=False):
        if is_masked_tensor(data) or not isinstance(data, Tensor):
            raise TypeError("data must be a Tensor")
        if is_masked_tensor(mask) or not isinstance(mask, Tensor):
            raise TypeError("mask must be a Tensor")
        if data._compound or mask._compound:
            raise NotImplementedError("MaskedTensor: sparse data are not supported; use data.to_dense() and mask.to_dense()")
        _check(data, mask)
        made = cls._of(data, mask)
        if requires_grad:
            made._data = data.detach().requires_grad_()
        return made

    def __init__(self, data, mask, requires_grad=False):
        pass

    @classmethod
    def _of(cls, data, mask):
        self = cls._blank(data._size, data._dtype)
        self._data, self._mask, self._stride = data, mask, data.stride()
        return self

    @classmethod
    def _from_values(cls, data, mask):
        """A MaskedTensor over these very tensors."""
        return cls(data, mask)

    # ------------------------------------------------------------------------------------------------ as a compound tensor
    @property
    def _flow(self):
        return self._data

    def _like(self, flow):
        return MaskedTensor._of(flow, self._mask)

    def _part_of(self, gradient):
        if is_masked_tensor(gradient):
            gradient = gradient._data
        return call("where", self._mask, gradient, torch.zeros((), dtype=gradient.dtype))

    def _written(self, new):
        self._data._write(new._data.value)
        self._mask = new._mask

    def _converted(self, dtype=None, device=None, copied=False):
        return self._like(_converted(self._data, dtype, device, copied))

    def _reduced(self):
        return MaskedTensor, (self._data.detach(), self._mask)

    # ------------------------------------------------------------------------------------------------ parts
    def get_data(self):
        """The data, masked or not, without history. Source: PyTorch, MaskedTensor.get_data."""
        return self._data.detach() if not self._data.requires_grad else self._data

    def get_mask(self):
        """The mask. Source: PyTorch, MaskedTensor.get_mask."""
        return self._mask

    def to_tensor(self, value):
        """The data, with `value` where the mask hides them. Source: PyTorch, MaskedTensor.to_tensor."""
        return self._data.masked_fill(~self._mask, value)

    def is_contiguous(self, memory_format=torch.contiguous_format):
        return self._data.is_contiguous(memory_format=memory_format)

    def to_dense(self, dtype=None, *, masked_grad=None):
        """Itself: the data are dense. Source: PyTorch, MaskedTensor.to_dense."""
        return self if dtype is None else self.to(dtype)

    def item(self):
        """The one element as a Python number. Source: PyTorch, Tensor.item."""
        return self._data.item()

    def __bool__(self):
        return bool(self._data)

    def to_sparse(self, *args, **kwargs):
        raise refusal("to_sparse", self)

    def tolist(self):
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got MaskedTensor")

    def numpy(self, *, force=False):
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def __getitem__(self, key):
        return MaskedTensor._of(self._data[key], self._mask[key])

    def __setitem__(self, key, new):
        raise refusal("index_put_", self)

    def __deepcopy__(self, memo):
        made = MaskedTensor._of(self._data.detach().clone(), self._mask.clone())
        return made.requires_grad_() if self.requires_grad else made

    def __repr__(self, *, tensor_contents=None):
        shown = _text(self._data.detach(), self._mask)
        if self.dim():
            return "MaskedTensor(\n" + _indented(shown) + "\n)"
        return f"MaskedTensor({shown}, {self._mask.item()})"


def _check(data, mask):
    if mask.dtype is not torch.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.size() != mask.size():
        raise ValueError("data.size() must equal mask.size()")


# ------------------------------------------------------------------------------------------------ text
def _indented(text):
    return "\n".join("  " + line for line in text.split("\n"))


def _number(x):
    return f"{x:8.4f}" if isinstance(x, float) else str(x)


def _text(data, mask):
    """The elements that count, a dash for each that does not, in nested brackets."""
    if data.dim() == 0:
        return _number(data.item()) if mask.item() else "--"
    if data.dim() == 1:
        numbers, shown = [_number(x) for x in data.tolist()], mask.tolist()
        width = max([len(n) if m else 8 for n, m in zip(numbers, shown)], default=0)
        return "[" + ", ".join([n if m else "--".rjust(width) for n, m in zip(numbers, shown)]) + "]"
    return "[\n" + ",\n".join([_indented(_text(d, m)) for d, m in zip(data, mask)]) + "\n]"


# ------------------------------------------------------------------------------------------------ operators
_UNARY = ("abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh bitwise_not ceil clamp "
          "clip conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 logit "
          "i0 isnan nan_to_num neg negative positive pow rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc sinh sqrt "
          "square tan tanh trunc clone ones_like contiguous").split()
_BINARY = ("add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div divide floor_divide fmod "
           "logaddexp logaddexp2 mul multiply nextafter remainder sub subtract true_divide eq ne le ge greater greater_equal gt less_equal "
           "lt less maximum minimum fmax fmin not_equal rsub").split()
_SHAPE = ("select transpose swapaxes swapdims t reshape view expand unsqueeze split chunk flatten narrow permute squeeze movedim "
          "unflatten index_select unbind").split()
_REDUCTIONS = "sum mean amin amax argmin argmax prod std var".split()


def _unary(name):
    operator = OPERATORS[name]

    def run(self, **options):
        return MaskedTensor._of(operator(self._data, **options), self._mask)

    def powered(self, exponent):
        return _binary_run(operator, self, exponent, {})

    return powered if name == "pow" else run


def _binary_run(operator, one, other, options):
    masks = [t._mask for t in (one, other) if is_masked_tensor(t)]
    if len(masks) == 2 and not (masks[0].shape == masks[1].shape and torch.equal(*masks)):
        raise ValueError(_MISMATCH)
    data = [t._data if is_masked_tensor(t) else t for t in (one, other)]
    made = operator(*data, **options)
    if made.shape != masks[0].shape:
        masks[0] = masks[0].expand(made.shape)
    return MaskedTensor._of(made, masks[0])


def _binary(name):
    operator = OPERATORS[name]

    def run(self, other, **options):
        return _binary_run(operator, self, other, options)

    return run


def _shaped(name):
    operator = OPERATORS[name]

    def run(self, **options):
        data, mask = operator(self._data, **options), operator(self._mask, **options)
        if isinstance(data, (tuple, list)):
            return type(data)([MaskedTensor._of(d, m) for d, m in zip(data, mask)])
        return MaskedTensor._of(data, mask)

    return run


def _joined(name):
    operator = OPERATORS[name]

    def run(tensors, dim=0):
        if not all(is_masked_tensor(t) for t in tensors):
            raise TypeError(f"torch.{name}: masked tensors and plain ones cannot be joined; make a MaskedTensor of each")
        return MaskedTensor._of(operator([t._data for t in tensors], dim), operator([t._mask for t in tensors], dim))

    return run


def _reduction(name):
    def run(self, dim=None, keepdim=False, dtype=None, unbiased=None, correction=None):
        if isinstance(dim, tuple) and not dim:
            dim = None
        masked = getattr(torch.masked, name)
        options = {"correction": correction} if name in ("std", "var") and correction is not None else {}
        if name in ("std", "var") and unbiased is not None:
            options["unbiased"] = unbiased
        made = masked(self._data, dim=dim, keepdim=keepdim, dtype=dtype, mask=self._mask, **options)
        return MaskedTensor._of(made, _any(self._mask, dim, keepdim))

    return run


def _any(mask, dim, keepdim):
    if dim is None:
        dim = tuple(range(mask.dim()))
    return mask.any(dim, keepdim) if mask.dim() else mask


def _all(self, dim=None, keepdim=False):
    shown = self._data | ~self._mask if self._data.dtype is torch.bool else (self._data != 0) | ~self._mask
    return MaskedTensor._of(shown.all() if dim is None else shown.all(dim, keepdim), _any(self._mask, dim, keepdim))


def _softmax(self, dim, dtype=None):
    return MaskedTensor._of(torch.masked.softmax(self._data, dim, dtype=dtype, mask=self._mask), self._mask)


def _where(condition, self, other):
    masks = [t._mask for t in (self, other) if is_masked_tensor(t)]
    chosen = condition._data if is_masked_tensor(condition) else condition
    data = [t._data if is_masked_tensor(t) else t for t in (self, other)]
    made = call("where", chosen, *data)
    shown = [t._mask if is_masked_tensor(t) else torch.ones(made.shape, dtype=torch.bool) for t in (self, other)]
    mask = call("where", chosen, *shown) if masks else condition._mask
    return MaskedTensor._of(made, mask & condition._mask if is_masked_tensor(condition) else mask)


for _names, _make in ((_UNARY, _unary), (_BINARY, _binary), (_SHAPE, _shaped), (("cat", "stack", "concat"), _joined)):
    for _name in _names:
        if _name in OPERATORS:
            compound.implement(MaskedTensor, names=_name)(_make(_name))
for _name in _REDUCTIONS:
    compound.implement(MaskedTensor, names=_name)(_reduction(_name))
compound.implement(MaskedTensor, names="all")(_all)
compound.implement(MaskedTensor, names="softmax")(_softmax)
compound.implement(MaskedTensor, names="nn.functional.softmax")(
    lambda input, dim=None, _stacklevel=3, dtype=None: _softmax(input, dim, dtype))
compound.implement(MaskedTensor, names="where")(_where)
MaskedTensor.__module__ = "torch.masked.maskedtensor.core"
