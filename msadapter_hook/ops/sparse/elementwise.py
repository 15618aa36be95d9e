"""Elementwise operators on sparse tensors: functions that keep zero, sums, products and quotients."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import value_of
from msadapter_hook.tape.sparse import merge_order
from msadapter_hook.tensor import Tensor, cast_value, dtypes, from_array
from msadapter_hook.tensor.compound import recorded_name, refusal
from msadapter_hook.tensor.geometry import broadcast_shapes
from msadapter_hook.tensor.sparse import CompressedTensor, SparseTensor, gathered, scattered

from ..compound import implement, replace
from ..tables import OPERATORS, call
from .conversion import coalesce, compress, plain_tensor, to_coordinates
from .origin import follow, recorded

# Functions of one operand with f(0) = 0 (or False), which so act on the elements alone
_KEEP_ZERO = ("abs asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan isneginf isposinf log1p nan_to_num "
              "rad2deg relu sgn sign signbit sin sinh sqrt square tan tanh trunc round conj_physical absolute arcsin arcsinh arctan "
              "arctanh fix")


def _on_elements(name):
    def run(self, **options):
        one = coalesce(self) if isinstance(self, SparseTensor) else self
        if name == "round" and options.get("decimals"):
            raise refusal("round.decimals", self)
        return one._like(call(name, one._elements, **options))

    return run


for _name in _KEEP_ZERO.split():
    if _name in OPERATORS:
        implement(SparseTensor, CompressedTensor, names=_name)(_on_elements(_name))


@implement(SparseTensor, CompressedTensor, names="nn.functional.relu")
def relu(input, inplace=False):
    made = call("relu", input)
    if inplace:
        replace(input, made)
        return input
    return made


@implement(SparseTensor, CompressedTensor, names="neg negative")
def neg(self):
    return follow(self._like(call("neg", self._elements)), OPERATORS["neg"], self)


@implement(SparseTensor, CompressedTensor, names="positive conj resolve_conj resolve_neg detach")
def positive(self):
    return self


implement(SparseTensor, CompressedTensor, names="conj")(
    lambda self: self._like(call("conj_physical", self._elements)) if self._dtype.is_complex else self)


@implement(SparseTensor, CompressedTensor, names="zero")
def zero(self):
    return call("zeros_like", self)


@implement(SparseTensor, names="pow")
def power(self, exponent):
    if not isinstance(self, SparseTensor):
        raise refusal("pow.Scalar", exponent)
    if isinstance(exponent, Tensor):
        if exponent._compound or exponent.ndim:
            raise refusal("pow.Tensor_Tensor", self)
        exponent = exponent.item()
    if exponent == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    one = coalesce(self)
    return one._like(call("pow", one._elements, exponent))


# ------------------------------------------------------------------------------------------------ sums
def _scaled(tensor, alpha):
    return tensor if alpha == 1 else call("mul", tensor, alpha)


def _add(self, other, alpha, name):
    if not (isinstance(self, Tensor) and isinstance(other, Tensor)) or self._compound and not other._compound:
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if not self._compound:
        return recorded_name(_add_to_dense(self, other, alpha), name)
    if isinstance(self, CompressedTensor) or isinstance(other, CompressedTensor):
        return recorded_name(_add_compressed(self, other, alpha), name)
    if self._size != other._size:
        raise RuntimeError(f"add: expected sizes of 'self' and 'other' to match, but {list(self._size)} != {list(other._size)}")
    if self._places._size[0] != other._places._size[0]:
        raise RuntimeError(f"add: expected 'self' and 'other' to have same density, but 'self' has {self._places._size[0]} sparse "
                           f"dimensions while 'other' has {other._places._size[0]} sparse dimensions")
    p, q = self._flat, other._flat
    both = self._coalesced and other._coalesced
    if p.size == q.size and np.array_equal(p, q):
        elements = call("add", self._elements, other._elements, alpha=alpha)
        return recorded_name(SparseTensor._of(self._places, elements, self._size, both), name)
    take, found, n, _ = merge_order(p, q)
    two = _scaled(other._elements, alpha)
    dtype = dtypes.promote_types(self._dtype, two._dtype)
    joined = prims.concat(cast_value(self._elements.value, dtype), cast_value(two.value, dtype), axis=0)
    values = scattered(joined, take, len(found))
    at = np.concatenate([self._at, other._at], 1)[:, found]
    return recorded_name(SparseTensor._of(at, plain_tensor(values, dtype), self._size, both), name)


def _add_to_dense(self, other, alpha):
    if isinstance(other, CompressedTensor):
        other = to_coordinates(other)
    if self._size != other._size:
        raise RuntimeError(f"add: expected 'self' and 'other' to have same size, but self has size {list(self._size)} while other has "
                           f"size {list(other._size)} (FYI: dense-sparse addition does not currently support broadcasting)")
    dtype = dtypes.promote_types(self._dtype, other._dtype)
    elements = cast_value(_scaled(other._elements, alpha).value, dtype)
    sparse = other._places._size[0]
    rows = int(np.prod(self._size[:sparse], dtype=np.int64))
    flat = prims.reshape(cast_value(self.value, dtype), shape=(rows, *self._size[sparse:]))
    made = prims.reshape(prims.index_add(flat, value_of(other._flat), elements, axis=0), shape=tuple(self._size))
    return plain_tensor(recorded(made, lambda a, b: call("add", a, b, alpha=alpha), self, other), dtype)


def _add_compressed(self, other, alpha):
    if not (isinstance(self, CompressedTensor) and isinstance(other, CompressedTensor) and self.layout is other.layout):
        raise refusal("add", self if isinstance(self, CompressedTensor) else other, "convert both to one layout first")
    if self._size != other._size:
        raise RuntimeError(f"Expected input tensors to have the same shape, but got tensor `self` with shape {list(self._size)} and "
                           f"tensor `other` with shape {list(other._size)}")
    if self._elements._size == other._elements._size and np.array_equal(self._lines(), other._lines()):
        return self._like(call("add", self._elements, other._elements, alpha=alpha))
    if self._batch or self._block != (1, 1):
        raise refusal("add", self, "tensors of blocks or batches whose indices differ are added as dense ones")
    made = _add(coalesce(to_coordinates(self)), coalesce(to_coordinates(other)), alpha, "AddBackward0")
    return compress(made, self.layout)


@implement(SparseTensor, CompressedTensor, names="add")
def add(self, other, alpha=1):
    return _add(self, other, alpha, "AddBackward0")


@implement(SparseTensor, CompressedTensor, names="sub subtract")
def sub(self, other, alpha=1):
    return _add(self, other, -alpha, "SubBackward0")


@implement(SparseTensor, names="rsub")
def rsub(self, other, alpha=1):
    return _add(other, self, -alpha, "RsubBackward1")


# ------------------------------------------------------------------------------------------------ products
def _alone(x):
    return not isinstance(x, Tensor) or not x._compound and x.ndim == 0


@implement(SparseTensor, CompressedTensor, names="mul multiply")
def mul(self, other):
    if not (isinstance(self, Tensor) and self._compound):
        self, other = other, self
    if _alone(other):
        return follow(self._like(call("mul", self._elements, other)), OPERATORS["mul"], self, other)
    if isinstance(self, CompressedTensor) or isinstance(other, CompressedTensor):
        return _mul_compressed(self, other)
    if not other._compound:
        return _mul_dense(self, other)
    if self._size != other._size:
        raise RuntimeError(f"mul operands have incompatible sizes: {list(self._size)} and {list(other._size)}; sparse tensors do not "
                           "broadcast against each other")
    if self._places._size[0] != other._places._size[0]:
        raise RuntimeError("mul: expected 'self' and 'other' to have the same number of sparse dimensions, but got "
                           f"{self._places._size[0]} and {other._places._size[0]}")
    other = coalesce(other)
    p, q = self._flat, other._flat
    at = np.searchsorted(q, p)
    common = at < q.size
    common[common] = q[at[common]] == p[common]
    mine = np.flatnonzero(common)
    left, right = gathered(self._elements.value, mine), gathered(other._elements.value, at[mine])
    elements = call("mul", plain_tensor(left, self._dtype), plain_tensor(right, other._dtype))
    return recorded_name(SparseTensor._of(self._at[:, mine], elements, self._size, self._coalesced), "MulBackward0")


def _mul_dense(self, other):
    size = broadcast_shapes(self._size, other._size)
    if tuple(size) != tuple(self._size):
        raise RuntimeError(f"mul: a sparse tensor of size {list(self._size)} cannot take on the size {list(size)} of the product; "
                           "only the dense operand broadcasts")
    spread = call("broadcast_to", other, self._size)
    elements = call("mul", self._elements, self._part_of(spread))
    return recorded_name(SparseTensor._of(self._places, elements, self._size, self._coalesced), "MulBackward0")


def _mul_compressed(self, other):
    if not isinstance(self, CompressedTensor):
        self, other = other, self
    if other._compound and (other.layout is not self.layout or other._size != self._size):
        raise refusal("mul", self, "operands of one layout and size have a product")
    same = other._compound and other._elements._size == self._elements._size and np.array_equal(other._lines(), self._lines())
    if other._compound and not same:
        if self._batch or self._block != (1, 1):
            raise refusal("mul", self, "tensors of blocks or batches whose indices differ are multiplied as dense ones")
        made = mul(coalesce(to_coordinates(self)), coalesce(to_coordinates(other)))
        return compress(made, self.layout)
    factor = other._elements if same else self._sampled(call("broadcast_to", other, self._size))
    return recorded_name(self._like(call("mul", self._elements, factor)), "MulBackward0")


def _divided(name):
    def run(self, other, rounding_mode=None):
        if not (isinstance(self, Tensor) and self._compound) or not _alone(other):
            shape = list(other._size) if isinstance(other, Tensor) else []
            raise RuntimeError(f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {shape} for divisor)")
        one = coalesce(self) if isinstance(self, SparseTensor) and (rounding_mode or name == "floor_divide") else self
        options = {"rounding_mode": rounding_mode} if rounding_mode else {}
        return follow(one._like(call(name, one._elements, other, **options)), lambda a: call(name, a, other, **options), self)

    return run


for _name in ("div", "true_divide", "floor_divide"):
    implement(SparseTensor, CompressedTensor, names=_name + (" divide" if _name == "div" else ""))(_divided(_name))


# ------------------------------------------------------------------------------------------------ in place
@implement(SparseTensor, names="zero_")
def zero_(self):
    dense = self._elements._size[1:]
    self._written(SparseTensor._of(np.zeros((self._places._size[0], 0), np.int64), from_array(
        np.zeros((0, *dense), self._dtype.numpy), self._dtype), self._size, True))
    return self


@implement(CompressedTensor, names="zero_ fill_")
def fill_(self, value=0):
    self._elements.fill_(value)
    return self
