"""Functions of single numbers, of many on two processors: NumPy's as they are, and formulas of oneDNN in blocks of sizes that are
powers of two, so that a new shape needs no new operation."""

from functools import partial

import numpy as np

from msadapter_hook.backend import onednn, threads
from msadapter_hook.backend.onednn import SOURCE, TARGET, TRAINING, Description, Operation, Shared, gradient

from .layout import dense, memory_of
from .trust import Family

_BLOCK = 1 << 16  # numbers of the largest operation
_HEAD_START = 1 << 14  # numbers computed until a helper begins
_HALVES = 1 << 18  # numbers from which on a second processor pays for a formula of the library
_STEP = 1 << 18  # numbers of a sweep: more do not stay in the cache with their result, fewer cost more calls
SLOW_HALVES = 1 << 16  # the same for functions of NumPy that take a nanosecond a number or more


def in_halves(function, a):
    """`function(x, y)`, which puts the results for a vector x into y, over all numbers of `a`; the result lies in memory as `a`."""
    a = dense(a)
    made = np.empty_like(a)
    x, y = memory_of(a), memory_of(made)
    middle = a.size // 2 if a.size >= SLOW_HALVES else 0
    threads.each([partial(function, x[at], y[at]) for at in ([slice(0, middle), slice(middle, None)] if middle else [slice(None)])])
    return made


def beside(host):
    """The forward of a kernel: NumPy's `host` over two halves of many numbers; fewer are left to it."""

    def put(x, y, attributes):
        y[...] = host(x, **attributes)

    def forward(keep, a, **attributes):
        if a.size < SLOW_HALVES or not a.ndim:
            return None
        return in_halves(partial(put, attributes=attributes), a), None

    return forward


def swept(slope, x, *others):
    """A new array like `x`, which is dense, filled by `slope(d, x, *others)` block by block; the others lie in memory as `x`."""
    made = np.empty_like(x)
    vectors = [memory_of(a) for a in (made, x, *others)]

    def sweep(start, stop):
        for at in range(start, stop, _STEP):
            slope(*[v[at:min(at + _STEP, stop)] for v in vectors])

    middle = x.size // 2
    threads.each([partial(sweep, 0, middle), partial(sweep, middle, x.size)] if x.size >= _HALVES else [partial(sweep, 0, x.size)])
    return made


class Formula:
    """`count` numbers through a formula with two parameters."""

    def __init__(self, backward, count, formula, alpha, beta):
        flat, parameters = onednn.layout((count,)), (onednn.number(alpha), onednn.number(beta))
        made, roles = Description("eltwise_forward", TRAINING, formula, flat, flat, *parameters), (SOURCE, TARGET)
        if backward:
            made = Description("eltwise_backward", formula, flat, flat, flat, *parameters, made)
            roles = SOURCE, gradient(TARGET), gradient(SOURCE)
        self._operation = Shared(partial(Operation, made, [(role, flat) for role in roles]))

    def __call__(self, *arrays):
        self._operation(*arrays)


def _cover(make, arrays):
    """Every number once at least: the last block may lie over the one before."""
    n = arrays[0].size
    block = min(_BLOCK, 1 << n.bit_length() - 1)
    made = make(block)
    for start in range(0, n - block + 1, block):
        made(*[a[start:start + block] for a in arrays])
    if n % block:
        made(*[a[n - block:] for a in arrays])


def available():
    """Whether formulas of the library can be evaluated."""
    return _family.trusted


def evaluate(backward, formula, alpha, beta, *arrays):
    """The result of the formula for x, or (`backward`) the gradient of x from x and that of the result; all lie in memory as x
    does, which is dense. None where the library cannot be used, or there is nothing to compute."""
    if not arrays[0].size or not available():
        return None
    result = np.empty_like(arrays[0])
    _compute(backward, formula, alpha, beta, *map(memory_of, arrays), memory_of(result))
    return result


def _compute(backward, formula, alpha, beta, *flat):
    def make(block):
        return _operation(backward, block, formula, float(alpha), float(beta))

    n = flat[0].size
    at = n // 2 + _HEAD_START
    cuts = [slice(0, at), slice(at, n)] if n >= _HALVES else [slice(0, n)]
    threads.each([partial(_cover, make, [a[cut] for a in flat]) for cut in cuts])


def _check():
    x = np.linspace(-4, 4, 99, dtype=np.float32)
    for formula, alpha, beta, function in _CHECKED:
        flat, step = x.astype(np.float64), 1e-4
        y, d = np.empty_like(x), np.empty_like(x)
        _compute(False, formula, alpha, beta, x, y)
        yield y, function(flat)
        _compute(True, formula, alpha, beta, x, x, d)
        yield d, flat * (function(flat + step) - function(flat - step)) / (2 * step)


_CHECKED = []  # (formula, parameters, the function in float64)
_family = Family("activations", _check)
_operation = _family.operation(Formula)


def formula(number, alpha, beta, function):
    """Name a formula of the library with parameters of an example, for the comparison with `function`."""
    _CHECKED.append((number, alpha, beta, function))
    return number
