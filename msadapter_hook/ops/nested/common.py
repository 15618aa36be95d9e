"""What both layouts of nested tensors share: the class they come from, and the operators that work on all elements alike."""

import numpy as np

from msadapter_hook.tensor import Tensor, from_array
from msadapter_hook.tensor.compound import Compound, recorded_name

from .. import arguments
from ..compound import implement
from ..devices import place
from ..tables import OPERATORS, call

# Operators of one operand that act on every element by itself
POINTWISE = (
    "abs absolute acos acosh angle asin asinh atan atanh bitwise_not ceil clamp clamp_max clamp_min clip cos cosh "
    "deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac isfinite isinf isnan isneginf isposinf lgamma log "
    "log10 log1p log2 logical_not logit nan_to_num neg negative positive rad2deg reciprocal relu round rsqrt sgn "
    "sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc clone zeros_like ones_like full_like empty_like "
    "rand_like randn_like zero nn.functional.relu nn.functional.gelu nn.functional.silu nn.functional.leaky_relu "
    "nn.functional.elu nn.functional.selu nn.functional.celu nn.functional.relu6 nn.functional.hardtanh "
    "nn.functional.hardswish nn.functional.hardsigmoid nn.functional.mish nn.functional.softplus "
    "nn.functional.softsign nn.functional.tanh nn.functional.sigmoid nn.functional.logsigmoid nn.functional.dropout "
    "nn.functional.alpha_dropout dropout gelu silu leaky_relu"
).split()
BINARY = (
    "add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow maximum minimum fmax fmin "
    "atan2 eq ne lt le gt ge less less_equal greater greater_equal not_equal logical_and logical_or logical_xor "
    "bitwise_and bitwise_or rsub"
).split()


class Nested(Compound):
    """A batch of tensors of different sizes."""

    __slots__ = ()
    is_nested = True
    _kind = "Nested"
    _backend = "NestedTensorCPU"
    _noun = "NestedTensorImpl"
    _advice = "to_padded_tensor() or unbind() give tensors that have it"

    def _pieces(self):
        """The tensors of the batch."""
        raise NotImplementedError

    def _converted(self, dtype=None, device=None, copied=False):
        made = self if dtype is None or dtype is self._dtype else self._like(self._flow.to(dtype))
        if copied and made is self:
            made = self._like(self._flow.clone())
        if device is not None and device != made.device:
            made = made._like(place(made._flow, device))
        return made

    def _like(self, flow):
        raise NotImplementedError

    def _written(self, new):
        self._flow._write(new._flow.value)

    def __getitem__(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        if not keys or not isinstance(keys[0], int) or isinstance(keys[0], bool):
            raise NotImplementedError(f"index of nested tensors: the first dimension takes a number, not "
                                      f"{arguments.type_name(keys[0]) if keys else '()'}; unbind() gives the tensors")
        pieces = self._pieces()
        if not -len(pieces) <= keys[0] < len(pieces):
            raise IndexError(f"select(): index {keys[0]} out of range for tensor of size [{len(pieces)}] at dimension 0")
        return pieces[keys[0]][keys[1:]] if len(keys) > 1 else pieces[keys[0]]

    def __setitem__(self, key, new):
        raise NotImplementedError("nested tensors are not written to by index; build them anew of their tensors")

    def is_contiguous(self, memory_format=None):
        return True

    def to_dense(self, dtype=None, *, masked_grad=None):
        raise NotImplementedError("to_dense() of nested tensors: to_padded_tensor(padding) gives a dense tensor")

    def item(self):
        """The one element as a Python number. Source: PyTorch, Tensor.item."""
        if self._flow.numel() != 1:
            raise RuntimeError(f"a Tensor with {self._flow.numel()} elements cannot be converted to Scalar")
        return self._flow.item()

    def numel(self):
        return self._flow.numel()

    nelement = numel

    def fill_(self, value):
        """Every element set to one number. Source: PyTorch, Tensor.fill_."""
        self._flow.fill_(value)
        return self

    def zero_(self):
        """Every element set to zero. Source: PyTorch, Tensor.zero_."""
        return self.fill_(0)

    def __deepcopy__(self, memo):
        made = self._like(self._flow.detach().clone())
        return made.requires_grad_() if self.requires_grad else made

    def to_padded_tensor(self, padding, output_size=None):
        """A dense tensor of the largest sizes (or `output_size`), filled up with `padding`. Source: PyTorch, Tensor.to_padded_tensor."""
        return recorded_name(padded(self, padding, output_size), "ToPaddedTensorBackward0")


def padded(self, padding, output_size=None):
    """A dense tensor with the batch in front. RuntimeError where `output_size` is smaller than needed."""
    pieces = self._pieces()
    if not pieces:
        return from_array(np.full((0,), padding, self._dtype.numpy), self._dtype)
    sizes = np.array([tuple(p._size) for p in pieces]).reshape(len(pieces), -1)
    wanted = (len(pieces), *sizes.max(0).tolist())
    if output_size is not None:
        output_size = tuple(arguments.integers(output_size))
        if len(output_size) != len(wanted):
            raise RuntimeError("Length of output_size does not match NestedTensor dims. Broadcasting is not supported.")
        if any(n < m for n, m in zip(output_size, wanted)):
            raise RuntimeError("Value in output_size is less than NestedTensor padded size. Truncation is not supported.")
        wanted = output_size
    pad = OPERATORS["nn.functional.pad"]
    made = [pad(p, [n for have, want in zip(reversed(p._size), reversed(wanted[1:])) for n in (0, want - have)], value=padding)
            if tuple(p._size) != wanted[1:] else p for p in pieces]
    found = call("stack", made)
    if wanted[0] > len(pieces):
        rest = from_array(np.full((wanted[0] - len(pieces), *wanted[1:]), padding, self._dtype.numpy), self._dtype)
        found = call("cat", [found, rest])
    return found


def implement_pointwise(cls):
    """Give a class of nested tensors the operators that act on each element."""
    for name in POINTWISE:
        if name in OPERATORS and OPERATORS[name].overloads:
            implement(cls, names=name)(_on_all(name))


def _on_all(name):
    operator = OPERATORS[name]

    def run(**options):
        nested = next(iter(options.values()))
        others = {k: v for k, v in list(options.items())[1:] if v is not None or k not in ("memory_format", "dtype", "device", "layout")}
        others.pop("layout", None)
        others.pop("memory_format", None)
        if others.pop("inplace", False):
            nested._written(nested._like(operator(nested._flow, **others)))
            return nested
        return nested._like(operator(nested._flow, **others))

    return run


def scalar_like(x):
    return not isinstance(x, Tensor) or not x._compound and x.ndim == 0
