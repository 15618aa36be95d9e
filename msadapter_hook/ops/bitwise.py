"""Bit operations and shifts of integers and booleans; common divisors."""

import numpy as np

from msadapter_hook import prims

from .promotion import align
from .refusals import not_implemented
from .registry import operator
from .tables import METHODS, OPERATORS

ALL = "function method inplace out"


def _of_bits(name, primitive, kernel=None, boolean=True):
    def body(self, other):
        a, b = align(self, other)
        if a.dtype.kind not in ("biu" if boolean else "iu"):
            raise not_implemented(f"{kernel or name}_cpu", a)
        return primitive(a, b)

    body.__doc__ = f"Elementwise {name} of integers. Source: PyTorch, torch.{name}."
    operator(f"{name}.Tensor(Operand self, Operand other) -> Tensor", forms=ALL)(body)


_of_bits("bitwise_and", prims.bitwise_and)
_of_bits("bitwise_or", prims.bitwise_or)
_of_bits("bitwise_xor", prims.bitwise_xor)


def _left_shift(a, b):
    bits = a.dtype.itemsize * 8
    out_of_range = (b < 0) | (b >= bits)
    return np.where(out_of_range, np.zeros((), a.dtype), np.left_shift(a, np.where(out_of_range, 0, b).astype(a.dtype)))


def _right_shift(a, b):
    most = a.dtype.itemsize * 8 - (1 if a.dtype.kind == "i" else 0)
    out_of_range = (b < 0) | (b >= most)
    beyond = np.where(a < 0, -1, 0).astype(a.dtype) if a.dtype.kind == "i" else np.zeros((), a.dtype)
    return np.where(out_of_range, beyond, np.right_shift(a, np.where(out_of_range, 0, b).astype(a.dtype)))


_of_bits("bitwise_left_shift", prims.host_call("bitwise_left_shift", _left_shift, differentiable=False), "lshift", boolean=False)
_of_bits("bitwise_right_shift", prims.host_call("bitwise_right_shift", _right_shift, differentiable=False), "rshift", boolean=False)


@operator("bitwise_not(Tensor self) -> Tensor", forms=ALL)
def bitwise_not(self):
    """Every bit turned; of booleans, the negation. Source: PyTorch, torch.bitwise_not."""
    if self.dtype.kind == "b":
        return prims.logical_not(self)
    if self.dtype.kind not in "iu":
        raise not_implemented("bitwise_not_cpu", self)
    return prims.invert(self)


def _of_integers(name, primitive):
    def body(self, other):
        a, b = align(self, other)
        if a.dtype.kind not in "iu":
            raise not_implemented(f"{name}_cpu", a)
        return primitive(a, b)

    body.__doc__ = f"Elementwise {name} of integers. Source: PyTorch, torch.{name}."
    operator(f"{name}(Tensor self, Tensor other) -> Tensor", forms=ALL)(body)


_of_integers("gcd", prims.gcd)
_of_integers("lcm", prims.lcm)


def _public(name, target):
    """torch's functions of the Python operators' names: `torch.__and__` and the like."""
    OPERATORS[name] = OPERATORS[target]
    METHODS.setdefault(name, METHODS[target])


METHODS["__rdiv__"] = lambda self, other: METHODS["reciprocal"](self) * other
METHODS["__div__"], METHODS["__idiv__"] = METHODS["div"], METHODS["div_"]

for _python, _name in {
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}.items():
    _public(f"__{_python}__", _name)
