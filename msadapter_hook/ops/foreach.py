"""The `_foreach_*` functions: an operator over lists of tensors, one after the other."""

from msadapter_hook.tensor import Tensor

from .arguments import type_name
from .registry import plain
from .tables import METHODS, OPERATORS

_UNARY = ("abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round "
          "rsqrt sigmoid sign sin sinh sqrt tan tanh trunc").split()
_BINARY = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "maximum": "clamp_min", "minimum": "clamp_max",
           "clamp_min": "clamp_min", "clamp_max": "clamp_max", "pow": "pow"}


def _lists(name, *lists):
    """Checks that the lists hold tensors and are as long as the first."""
    for given in lists:
        if not isinstance(given, (list, tuple)) or not all(isinstance(t, Tensor) for t in given):
            raise TypeError(f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not {type_name(given)}")
        if not given:
            raise RuntimeError("Tensor list must have at least one tensor.")
        if len(given) != len(lists[0]):
            raise RuntimeError(f"Tensor lists must have the same number of tensors, got {len(lists[0])} and {len(given)}")


def _each(name, tensors, values):
    """One operand for each tensor: from a list of tensors, a list of numbers, or one number or zero-dim tensor."""
    if isinstance(values, (list, tuple)):
        if len(values) != len(tensors):
            if values and isinstance(values[0], Tensor):
                raise RuntimeError("Tensor lists must have the same number of tensors, got "
                                   f"{len(tensors)} and {len(values)}")
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        return values
    if isinstance(values, Tensor) and values.dim():
        raise RuntimeError(f"scalar tensor expected to be 0 dim but it has {values.dim()} dimensions and "
                           f"{values.numel()} elements.")
    return [values] * len(tensors)


def _two_forms(name, apply, in_place):
    """Publish `_foreach_name` (a tuple of results) and `_foreach_name_` (each tensor written; gives the list)."""

    def function(self, *args, **kwargs):
        return tuple(apply(self, *args, **kwargs))

    def method(self, *args, **kwargs):
        in_place(self, *args, **kwargs)
        return self

    function.__doc__ = f"{name} of each tensor of a list. Source: PyTorch, torch._foreach_{name}."
    method.__doc__ = f"{name} of each tensor of a list, in place. Source: PyTorch, torch._foreach_{name}_."
    plain(function, f"_foreach_{name}")
    plain(method, f"_foreach_{name}_")


def _one(name):
    def apply(self):
        _lists(f"_foreach_{name}", self)
        return [OPERATORS[name](t) for t in self]

    def in_place(self):
        _lists(f"_foreach_{name}_", self)
        for t in self:
            METHODS[name + "_"](t)

    _two_forms(name, apply, in_place)


def _operation(name, other):
    """The operator that stands behind a binary one for this operand."""
    if name in ("maximum", "minimum") and isinstance(other, Tensor):
        return name
    return _BINARY[name]


def _pair(name):
    def apply(self, other, *, alpha=None):
        if name == "pow" and not isinstance(self, (list, tuple)):  # one base, a list of exponents
            return [OPERATORS["pow"](self, o) for o in other]
        _lists(f"_foreach_{name}", self)
        more = {} if alpha is None else {"alpha": alpha}
        return [OPERATORS[_operation(name, o)](t, o, **more) for t, o in zip(self, _each(name, self, other))]

    def in_place(self, other, *, alpha=None):
        _lists(f"_foreach_{name}_", self)
        more = {} if alpha is None else {"alpha": alpha}
        for t, o in zip(self, _each(name, self, other)):
            operation = _operation(name, o)
            if operation + "_" in METHODS:
                METHODS[operation + "_"](t, o, **more)
            else:
                t.copy_(OPERATORS[operation](t, o))

    _two_forms(name, apply, in_place)


def _fused(name):
    """addcmul and addcdiv: `value` or `scalars` scales the product or quotient."""

    def scales(self, value, scalars):
        given = scalars if scalars is not None else value
        if isinstance(given, Tensor) and given.dim() == 1:
            given = given.tolist()
        return _each(name, self, given)

    def apply(self, tensor1, tensor2, value=1, *, scalars=None):
        _lists(f"_foreach_{name}", self, tensor1, tensor2)
        return [OPERATORS[name](t, a, b, value=v) for t, a, b, v in zip(self, tensor1, tensor2,
                                                                      scales(self, value, scalars))]

    def in_place(self, tensor1, tensor2, value=1, *, scalars=None):
        _lists(f"_foreach_{name}_", self, tensor1, tensor2)
        for t, a, b, v in zip(self, tensor1, tensor2, scales(self, value, scalars)):
            METHODS[name + "_"](t, a, b, value=v)

    _two_forms(name, apply, in_place)


def _lerp(self, tensors1, weight):
    _lists("_foreach_lerp", self, tensors1)
    return [OPERATORS["lerp"](a, b, w) for a, b, w in zip(self, tensors1, _each("lerp", self, weight))]


def _lerp_(self, tensors1, weight):
    _lists("_foreach_lerp_", self, tensors1)
    for a, b, w in zip(self, tensors1, _each("lerp", self, weight)):
        METHODS["lerp_"](a, b, w)


def _foreach_copy_(self, src, non_blocking=False):
    """Each tensor takes the elements of its partner. Source: PyTorch, torch._foreach_copy_."""
    _lists("_foreach_copy_", self, src)
    for t, s in zip(self, src):
        t.copy_(s)
    return self


def _foreach_zero_(self):
    """Each tensor set to zero. Source: PyTorch, torch._foreach_zero_."""
    _lists("_foreach_zero_", self)
    for t in self:
        t.zero_()
    return self


def _foreach_clone(self, *, memory_format=None):
    """A copy of each tensor. Source: PyTorch, torch._foreach_clone."""
    return tuple([t.clone(memory_format=memory_format) for t in self])


def _foreach_norm(self, ord=2, dtype=None):
    """The vector norm of each tensor. Source: PyTorch, torch._foreach_norm."""
    _lists("_foreach_norm", self)
    return tuple([OPERATORS["linalg.vector_norm"](t, ord, dtype=dtype) for t in self])


def _foreach_max(self):
    """The largest element of each tensor. Source: PyTorch, torch._foreach_max."""
    _lists("_foreach_max", self)
    return tuple([OPERATORS["max"](t) for t in self])


def publish():
    """Declare the functions whose operators are there."""
    for name in _UNARY:
        if name in OPERATORS and name + "_" in METHODS:
            _one(name)
    for name in _BINARY:
        if name in OPERATORS:
            _pair(name)
    for name in ("addcmul", "addcdiv"):
        if name in OPERATORS:
            _fused(name)
    if "lerp" in OPERATORS:
        _two_forms("lerp", _lerp, _lerp_)
    for function in (_foreach_copy_, _foreach_zero_, _foreach_clone, _foreach_norm, _foreach_max):
        plain(function)


publish()
