"""Gradients of functions of single numbers, block by block in one piece of memory, of many numbers on two processors."""

import math
from functools import partial

import numpy as np

from msadapter_hook.tape.kernel import Kernel

from .. import activation, pointwise
from .elementwise import SLOW_HALVES, in_halves, swept
from .layout import BITS, alike, dense
from .linear import FLOATS


# ------------------------------------------------------------------------------------------------ derivatives, put into d
def _times(derivative):
    """The gradient that `derivative` makes of g."""

    def slope(d, x, y, g, **attributes):
        derivative(d, x, y, **attributes)
        d *= g

    return slope


def _exp(d, x, y, g):
    np.multiply(y, g, out=d)


def _exp2(d, x, y):
    np.multiply(y, math.log(2), out=d)


def _expm1(d, x, y):
    np.add(y, 1, out=d)


def _inverse(d):
    np.divide(1, d, out=d)


def _log_to(base):
    def log(d, x, y):
        np.multiply(x, math.log(base), out=d)
        _inverse(d)

    return log


def _log(d, x, y):
    np.divide(1, x, out=d)


def _log1p(d, x, y):
    np.add(x, 1, out=d)
    _inverse(d)


def _sqrt(d, x, y):
    np.multiply(y, 2, out=d)
    _inverse(d)


def _rsqrt(d, x, y):
    np.multiply(y, y, out=d)
    d *= y
    d *= -0.5


def _reciprocal(d, x, y):
    np.multiply(y, y, out=d)
    np.negative(d, out=d)


def _square(d, x, y):
    np.multiply(x, 2, out=d)


def _sin(d, x, y):
    np.cos(x, out=d)


def _cos(d, x, y):
    np.sin(x, out=d)
    np.negative(d, out=d)


def _tan(d, x, y):
    np.multiply(y, y, out=d)
    d += 1


def _sinh(d, x, y):
    np.cosh(x, out=d)


def _cosh(d, x, y):
    np.sinh(x, out=d)


def _atan(d, x, y):
    np.multiply(x, x, out=d)
    d += 1
    _inverse(d)


def _softplus(d, x, y, *, beta=1, threshold=math.inf):
    np.multiply(x, -beta, out=d)
    np.exp(d, out=d)
    d += 1
    _inverse(d)
    if beta < 0 or not np.maximum.reduce(x) * beta <= threshold:  # or there is a NaN
        d[np.multiply(x, d.dtype.type(beta)) > threshold] = 1


def _bell(factor):
    def bell(d, x, y):
        np.multiply(x, x, out=d)
        np.negative(d, out=d)
        np.exp(d, out=d)
        d *= factor

    return bell


def _absolute(d, x, y, g):
    """`g` with the sign turned where x is negative; NumPy's sign takes six times as long as an operation on bits."""
    np.abs(x, out=d)
    if np.minimum.reduce(d) > 0:
        kind = BITS[d.itemsize]
        bits = d.view(kind)
        np.bitwise_and(x.view(kind), kind(-1 << 8 * d.itemsize - 1), out=bits)
        np.bitwise_xor(bits, g.view(kind), out=bits)
        return
    np.sign(x, out=d)
    d[np.isnan(d)] = 0  # the sign of NaN
    d *= g


def _power(d, x, y, *, exponent):
    if exponent == 2:
        d[...] = x
    elif exponent == 3:
        np.multiply(x, x, out=d)
    else:
        d[...] = pointwise.pow_number.host(x, exponent=exponent - 1)
    d *= d.dtype.type(exponent)


# ------------------------------------------------------------------------------------------------ kernels
_SLOW = frozenset("exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh atan erf erfc softplus softplus_beta pow_number".split())


def _kernel(primitive, slope):
    name, host = primitive.name, primitive.host

    def put(x, y, attributes):
        y[...] = host(x, **attributes)

    def forward(keep, a, **attributes):
        slow = name in _SLOW and a.size >= SLOW_HALVES
        if not a.ndim or not (keep or slow) or attributes.get("exponent") == 0:
            return None
        a = dense(a)
        y = in_halves(partial(put, attributes=attributes), a) if slow else alike(host(a, **attributes), a)
        return y, (a, y)

    def backward(kept, grads, needs, a, **attributes):
        a, y = kept
        return [swept(partial(slope, **attributes), a, y, alike(grads[0], a))]

    return Kernel(forward, backward, dtypes=FLOATS)


def _divide(keep, a, b):
    """Of arrays of one shape, or of a number by an array."""
    if not keep or not b.ndim or a.ndim and (a.shape != b.shape or a.strides != b.strides):
        return None
    b = dense(b)
    y = alike(a / b, b)
    return y, (y, b)


def _divide_back(kept, grads, needs, a, b):
    y, b = kept
    g, found = alike(grads[0], b), [None, None]
    if needs[0]:
        found[0] = swept(lambda d, x, g: np.divide(g, x, out=d), b, g)
        if not a.ndim:
            found[0] = np.asarray(np.add.reduce(found[0], None))

    def slope(d, x, y, g):
        np.divide(y, x, out=d)
        d *= g
        np.negative(d, out=d)

    if needs[1]:
        found[1] = swept(slope, b, y, g)
    return found


_SLOPES = {"exp": _exp, "absolute": _absolute, **{name: _times(derivative) for name, derivative in {
    "exp2": _exp2, "expm1": _expm1, "log": _log, "log2": _log_to(2), "log10": _log_to(10), "log1p": _log1p, "sqrt": _sqrt,
    "rsqrt": _rsqrt, "reciprocal": _reciprocal, "square": _square, "sin": _sin, "cos": _cos, "tan": _tan, "sinh": _sinh,
    "cosh": _cosh, "atan": _atan, "softplus": _softplus, "erf": _bell(2 / math.sqrt(math.pi)),
    "erfc": _bell(-2 / math.sqrt(math.pi)), "pow_number": _power,
}.items()}}
KERNELS = {
    **{getattr(pointwise, name): _kernel(getattr(pointwise, name), slope) for name, slope in _SLOPES.items()},
    activation.softplus_beta: _kernel(activation.softplus_beta, _times(_softplus)),
    pointwise.div: Kernel(_divide, _divide_back, dtypes=FLOATS),
}
