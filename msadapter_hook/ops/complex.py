"""Complex numbers: making them, their parts, and views whose conjugation or negation waits."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tensor import Tensor, dtypes
from msadapter_hook.tensor import view as moves
from msadapter_hook.tensor.geometry import broadcast_shapes

from .promotion import dtype_of, floating, is_complex
from .registry import composite, operator, view
from .tables import METHODS, OPERATORS
from .writing import check_inplace

_PARTS = (dtypes.float16, dtypes.float32, dtypes.float64)


# ------------------------------------------------------------------------------------------------ making
def _require_parts(a, b):
    x, y = dtype_of(a), dtype_of(b)
    if x not in _PARTS or y not in _PARTS:
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {x.scalar_name} and {y.scalar_name}")
    if x is not y:
        raise RuntimeError(
            f"Expected object of scalar type {x.scalar_name} but got scalar type {y.scalar_name} for second argument"
        )
    broadcast_shapes(a.shape, b.shape)


@operator("complex(Tensor real, Tensor imag) -> Tensor", forms="function out")
def complex(real, imag):
    """real + i * imag. Source: PyTorch, torch.complex."""
    _require_parts(real, imag)
    return prims.make_complex(real, imag)


@operator("polar(Tensor abs, Tensor angle) -> Tensor", forms="function out", saves="abs angle")
def polar(abs, angle):
    """The number of this size and angle. Source: PyTorch, torch.polar."""
    _require_parts(abs, angle)
    return prims.make_complex(abs * prims.cos(angle), abs * prims.sin(angle))


# ------------------------------------------------------------------------------------------------ parts
def _angle(a):
    if a.dtype.kind == "c":
        return np.angle(a).astype(a.real.dtype)
    return np.where(np.isnan(a), a, np.where(a < 0, np.asarray(np.pi).astype(a.dtype), np.zeros((), a.dtype)))


def _angle_vjp(g, out, a):
    if not is_complex(a):
        return prims.zeros_like(a)
    re, im = prims.real(a), prims.imag(a)
    size = re * re + im * im
    none = prims.equal(size, prims.zeros_like(size))
    safe = prims.where(none, size + 1, size)
    zero = prims.zeros_like(g)
    return prims.make_complex(prims.where(none, zero, g * (prims.neg(im) / safe)), prims.where(none, zero, g * (re / safe)))


_angle_primitive = prims.host_call("angle", _angle, vjp=[_angle_vjp], uses_output=False)


@operator("angle(Tensor self) -> Tensor", forms="function method out", saves="self")
def angle(self):
    """The angle of complex numbers; of real ones 0 or pi. Source: PyTorch, torch.angle."""
    return _angle_primitive(self if is_complex(self) else floating(self))


# ------------------------------------------------------------------------------------------------ lazy conjugation
def _waiting(tensor):
    """Whether a conjugation, and whether a negation, lies between the memory and the tensor."""
    chain = tensor._moves
    history = tensor._history
    while history is not None:
        chain, history = history.moves + chain, history.parent
    conjugated = negated = False
    for move in chain:
        kind = type(move)
        if kind is moves.Conjugate:
            conjugated = not conjugated
        elif kind is moves.Negative:
            negated = not negated
        elif kind is moves.Part:  # the imaginary part of a conjugate is a negative
            negated, conjugated = negated ^ (conjugated and not move.real), False
    return conjugated, negated


def is_conj(tensor):
    return tensor._dtype.is_complex and _waiting(tensor)[0]


def is_neg(tensor):
    return _waiting(tensor)[1]


def set_waiting(tensor, conjugated=None, negated=None):
    """Let the tensor read its memory conjugated, negated, or as it lies (None: as before). The memory stays as it is."""
    moved = [kind() for kind, wanted, now in zip((moves.Conjugate, moves.Negative), (conjugated, negated), _waiting(tensor))
             if wanted is not None and bool(wanted) != now]
    if moved:
        tensor._moves = (*tensor._moves, *moved)
        tensor._value, tensor._generation = None, -1


@composite("is_conj(Tensor self) -> bool")
def _is_conj(self):
    """Whether the conjugation of this tensor waits. Source: PyTorch, torch.is_conj."""
    return is_conj(self)


@composite("is_neg(Tensor self) -> bool")
def _is_neg(self):
    """Whether the negation of this tensor waits. Source: PyTorch, torch.is_neg."""
    return is_neg(self)


@view("conj(Tensor self) -> Tensor")
def conj(self):
    """The conjugate, as a view; a real tensor itself. Source: PyTorch, torch.conj."""
    if not self._dtype.is_complex:
        return self
    return self._view(moves.Conjugate(), self._size, self._stride)


@operator("conj_physical(Tensor self) -> Tensor", forms="function method inplace out")
def conj_physical(self):
    """The conjugate, computed. Source: PyTorch, torch.conj_physical."""
    return prims.conj(self) if is_complex(self) else prims.cast(self, dtype=self.dtype)


@composite("resolve_conj(Tensor self) -> Tensor")
def resolve_conj(self):
    """The tensor with no conjugation waiting. Source: PyTorch, torch.resolve_conj."""
    return self.clone() if is_conj(self) else self


@composite("resolve_neg(Tensor self) -> Tensor")
def resolve_neg(self):
    """The tensor with no negation waiting. Source: PyTorch, torch.resolve_neg."""
    return self.clone() if is_neg(self) else self


@view("_neg_view(Tensor self) -> Tensor")
def neg_view(self):
    """The negative, as a view. Source: PyTorch, torch._neg_view."""
    return self._view(moves.Negative(), self._size, self._stride)


@view("adjoint(Tensor self) -> Tensor")
def adjoint(self):
    """The conjugate with the last two dimensions swapped. Source: PyTorch, torch.adjoint."""
    if self.dim() < 2:
        raise RuntimeError(f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {self.dim()}-D tensor.")
    return self.transpose(-2, -1).conj()


for _name, _target in {"_conj": "conj", "_conj_physical": "conj_physical"}.items():
    OPERATORS[_name] = OPERATORS[_target]
    METHODS[_name] = METHODS[_target]


def _abs_in_place(self):
    """The absolute values, in place; not of complex tensors. Source: PyTorch, Tensor.abs_."""
    check_inplace(self)
    if self._dtype.is_complex:
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return _abs_real(self)


_abs_real = METHODS["abs_"]
METHODS["abs_"] = METHODS["absolute_"] = _abs_in_place


# ------------------------------------------------------------------------------------------------ parts as views
def _part(name):
    from .tables import call

    def get(self):
        return call(name, self)

    def set_(self, new):
        part = call(name, self)
        if isinstance(new, Tensor):
            part.copy_(new)
        else:
            part.fill_(new)

    return property(get, set_, doc=f"The {name}inary part." if name == "imag" else "The real part.")


Tensor.real, Tensor.imag = _part("real"), _part("imag")
