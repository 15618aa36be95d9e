"""Reductions and scans. `axes` is a tuple of non-negative axes; `keepdims` keeps them with length 1."""

import numpy as np

from msadapter_hook.backend import finite, from_numpy, primitive
from msadapter_hook.tape import Primitive, constant
from msadapter_hook.tape.primitive import FLOATS

from .movement import broadcast_to, flip, reshape, zeros_like
from .pointwise import conj_of, equal, exp, logical_not, logical_or, where

__all__ = [
    "amax",
    "amin",
    "cumsum",
    "log_softmax",
    "logsumexp",
    "max_of_all",
    "mean",
    "min_of_all",
    "prod",
    "safe_root",
    "softmax",
    "sum",
    "var",
    "vector_norm",
]


def kept_shape(shape, axes):
    """`shape` with the reduced axes as length 1."""
    return tuple([1 if i in axes else n for i, n in enumerate(shape)])


def spread(g, a, axes, keepdims):
    """The value of a reduction over `axes` of `a`, broadcast back to the shape of `a`."""
    if not keepdims:
        g = reshape(g, shape=kept_shape(a.shape, axes))
    return broadcast_to(g, shape=a.shape)


def _wide(a):
    return a.dtype if a.dtype.itemsize >= 4 or a.dtype.kind not in "fV" else np.dtype(np.float32)


def _sum(a, *, axes, keepdims):
    return np.add.reduce(a, axis=axes, keepdims=keepdims, dtype=_wide(a)).astype(a.dtype, copy=False)


def _reduce_guard(a, *, axes, keepdims):
    return a.size > 0 and a.ndim > 0


_LARGE, _ROW = 1 << 15, 1024  # elements from which stages pay, and that are added up in a row: longer ones would lose digits


def _in_stages(a, axes, keepdims):
    """The sum over several axes: from the last on as sums of rows, which MindSpore adds three times as fast as several axes
    at once, forward and backward."""
    total, flat = primitive("ReduceSum"), primitive("Reshape")
    shape, left = tuple(a.shape), sorted(axes)
    size = shape
    while left and left[-1] == len(size) - 1:
        row = size[-1]
        size, left = size[:-1], left[:-1]
        while left and left[-1] == len(size) - 1 and row * size[-1] <= _ROW:
            row *= size[-1]
            size, left = size[:-1], left[:-1]
        a = total(flat(a, (-1, row)), (1,))
    if left:
        a = total(flat(a, size), tuple(left))
    return flat(a, tuple([1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes]))


def _mindspore_sum(*, axes, keepdims):
    total = primitive("ReduceSum", keepdims)
    return lambda a: total(a, axes) if len(axes) < 2 or a.size < _LARGE else _in_stages(a, axes, keepdims)


def _mindspore_mean(*, axes, keepdims):
    average, divide = primitive("ReduceMean", keepdims), primitive("RealDiv")

    def run(a):
        if len(axes) < 2 or a.size < _LARGE:
            return average(a, axes)
        made = _in_stages(a, axes, keepdims)
        return divide(made, float(a.size // max(made.size, 1)))

    return run


sum = Primitive(
    "sum",
    host=_sum,
    mindspore=_mindspore_sum,
    vjp=[lambda g, out, a, *, axes, keepdims: spread(g, a, axes, keepdims)],
    uses_output=False,
    dtypes=FLOATS,
    guard=_reduce_guard,
)


def _count(a, axes):
    n = 1
    for i in axes:
        n *= a.shape[i]
    return n


def _mean(a, *, axes, keepdims):
    return (
        np.mean(a, axis=axes, keepdims=keepdims, dtype=_wide(a)).astype(a.dtype, copy=False)
        if a.size
        else _sum(a, axes=axes, keepdims=keepdims) / np.asarray(_count(a, axes)).astype(a.dtype)
    )


mean = Primitive(
    "mean",
    host=_mean,
    mindspore=_mindspore_mean,
    vjp=[lambda g, out, a, *, axes, keepdims: spread(g / max(_count(a, axes), 1), a, axes, keepdims)],
    uses_output=False,
    dtypes=FLOATS,
    guard=_reduce_guard,
)


def _extreme_vjp(g, out, a, *, axes, keepdims):
    hit = equal(a, spread(out, a, axes, keepdims))
    mask = where(hit, constant(1, a.dtype), constant(0, a.dtype))
    return spread(g, a, axes, keepdims) * mask / spread(sum(mask, axes=axes, keepdims=keepdims), a, axes, keepdims)


def _extreme(name):
    """MindSpore's ReduceMax and ReduceMin may pass over a NaN; where one stands, value and gradient are NaN."""

    def kernel(*, axes, keepdims):
        best, somewhere = primitive(name, keepdims), primitive("ReduceAny", keepdims)
        differ, fill, ones, product = map(primitive, ("NotEqual", "MaskedFill", "OnesLike", "Mul"))

        def run(a):
            found = best(a, axes)
            if finite(a):
                return found
            return product(found, fill(ones(found), somewhere(differ(a, a), axes), np.nan))

        return run

    return kernel


amax = Primitive(  # ties share the gradient, in MindSpore's kernel too
    "amax",
    host=lambda a, *, axes, keepdims: np.max(a, axis=axes, keepdims=keepdims),
    mindspore=_extreme("ReduceMax"),
    vjp=[_extreme_vjp],
    guard=_reduce_guard,
)
amin = Primitive(
    "amin",
    host=lambda a, *, axes, keepdims: np.min(a, axis=axes, keepdims=keepdims),
    mindspore=_extreme("ReduceMin"),
    vjp=[_extreme_vjp],
    guard=_reduce_guard,
)


def _whole(name, worst):
    """MindSpore's kernel for the extreme of all elements: several NaN share the gradient as other ties do."""

    def kernel():
        best, total, somewhere = primitive(name), primitive("ReduceSum"), primitive("ReduceAny")
        differ, other, fill, ones = map(primitive, ("NotEqual", "LogicalNot", "MaskedFill", "OnesLike"))
        quotient, larger, choose, flat = map(primitive, ("Div", "Maximum", "Select", "Reshape"))

        def run(a):
            a = flat(a, (-1,))
            if finite(a):
                return best(a)
            lost = differ(a, a)
            kept = other(lost)
            share = quotient(total(fill(a, kept, 0.0)), larger(total(fill(ones(a), kept, 0.0)), 1.0))
            return choose(somewhere(lost), share, best(fill(a, lost, worst)))

        return run

    return kernel


def _whole_vjp(g, out, a):
    hit = logical_or(equal(a, broadcast_to(out, shape=a.shape)), logical_not(equal(a, a)))  # a NaN hides every other value
    mask = where(hit, constant(1, a.dtype), constant(0, a.dtype))
    return broadcast_to(g, shape=a.shape) * mask / broadcast_to(sum(mask, axes=tuple(range(a.ndim)), keepdims=False), shape=a.shape)


def _whole_guard(a):
    return a.size > 0


max_of_all = Primitive("max_of_all", host=np.max, mindspore=_whole("ReduceMax", -np.inf), vjp=[_whole_vjp], guard=_whole_guard)
min_of_all = Primitive("min_of_all", host=np.min, mindspore=_whole("ReduceMin", np.inf), vjp=[_whole_vjp], guard=_whole_guard)


def _cumsum_vjp(g, out, a, *, axis):
    return flip(cumsum(flip(g, axes=(axis,)), axis=axis), axes=(axis,))


def _cumsum(a, *, axis):
    if a.dtype.itemsize < 4 and a.dtype.kind in "fV":
        return np.cumsum(a, axis, dtype=np.float32).astype(a.dtype)
    return np.cumsum(a, axis, dtype=a.dtype)


cumsum = Primitive(
    "cumsum",
    host=_cumsum,
    mindspore=lambda *, axis: lambda a, _p=primitive("CumSum"): _p(a, axis),
    vjp=[_cumsum_vjp],
    uses_output=False,
    guard=lambda a, *, axis: a.size > 0,
)


# ------------------------------------------------------------------------------------------------ spread around the mean
def _deviation(a, axes):
    wide = a.astype(np.float32) if a.dtype.itemsize < 4 else a
    return wide - np.mean(wide, axis=axes, keepdims=True)


def _var(a, *, axes, keepdims, correction):
    d = _deviation(a, axes)
    squares = d.real * d.real + d.imag * d.imag if a.dtype.kind == "c" else d * d
    total = np.add.reduce(squares, axis=axes, keepdims=keepdims)
    real = np.empty(0, a.dtype).real.dtype
    return np.asarray(total / max(_count(a, axes) - correction, 0)).astype(real)


def _var_ms(*, axes, keepdims, correction):
    average, total = primitive("ReduceMean", True), primitive("ReduceSum", keepdims)
    sub, square, divide = primitive("Sub"), primitive("Square"), primitive("RealDiv")

    def run(a):
        count = 1
        for i in axes:
            count *= a.shape[i]
        return divide(total(square(sub(a, average(a, axes))), axes), float(count - correction))

    return run


def _var_vjp(g, out, a, *, axes, keepdims, correction):
    freedom = _count(a, axes) - correction
    center = a - spread(mean(a, axes=axes, keepdims=keepdims), a, axes, keepdims)
    if a.dtype.kind == "c":
        from .movement import cast

        g = cast(g, dtype=a.dtype)
    factor = 2 / freedom if freedom > 0 else float("inf") if freedom == 0 else float("nan")
    return spread(g, a, axes, keepdims) * center * factor


var = Primitive(  # of complex numbers the sum of the variances of both parts
    "var",
    host=_var,
    mindspore=_var_ms,
    vjp=[_var_vjp],
    uses_output=False,
    guard=lambda a, *, axes, keepdims, correction: a.size > 0 and a.ndim > 0 and _count(a, axes) > correction,
)


# ------------------------------------------------------------------------------------------------ norms
def _norm(a, *, p, axes, keepdims):
    wide = a.astype(np.float32) if a.dtype.itemsize < 4 and a.dtype.kind in "fV" else a
    size = np.abs(wide)
    real = np.empty(0, a.dtype).real.dtype
    if p == 0:
        found = np.add.reduce((size != 0).astype(size.dtype), axis=axes, keepdims=keepdims)
    elif p == 1:
        found = np.add.reduce(size, axis=axes, keepdims=keepdims)
    elif p == 2:
        found = np.sqrt(np.add.reduce(size * size, axis=axes, keepdims=keepdims))
    elif p == np.inf:
        found = np.maximum.reduce(size, axis=axes, keepdims=keepdims)
    elif p == -np.inf:
        found = np.minimum.reduce(size, axis=axes, keepdims=keepdims)
    else:
        found = np.add.reduce(size ** size.dtype.type(p), axis=axes, keepdims=keepdims) ** size.dtype.type(1 / p)
    return np.asarray(found).astype(real)


def _norm_vjp(g, out, a, *, p, axes, keepdims):
    """The gradient at zero is the subgradient 0."""
    from .movement import cast
    from .pointwise import absolute, isnan, logical_or, pow, sgn

    if p == 0:
        return None
    g, n = spread(g, absolute(a), axes, keepdims), spread(out, absolute(a), axes, keepdims)
    size = absolute(a)
    zero = constant(0, size.dtype)

    def directed(weight):
        return sgn(a) * (cast(weight, dtype=a.dtype) if a.dtype.kind == "c" else weight)

    none = equal(n, zero)
    safe = where(none, constant(1, n.dtype), n)
    if p == 1:
        return directed(g)
    if p == 2:
        factor = where(none, zero, g / safe)
        return a * (cast(factor, dtype=a.dtype) if a.dtype.kind == "c" else factor)
    if p in (np.inf, -np.inf):
        hit = logical_or(equal(size, n), isnan(n))
        mask = where(hit, constant(1, size.dtype), zero)
        return directed(g * mask / spread(sum(mask, axes=axes, keepdims=keepdims), size, axes, keepdims))
    if p < 1:
        flat = equal(size, zero)
        weight = where(flat, zero, pow(where(flat, constant(1, size.dtype), size), constant(p - 1, size.dtype)))
        return directed(weight * g * pow(safe, constant(1 - p, n.dtype)))
    weight = pow(size, constant(p - 1, size.dtype))
    return directed(where(none, zero, weight * g / pow(safe, constant(p - 1, n.dtype))))


def _norm_ms(*, p, axes, keepdims):
    """The Euclidean norm whose gradient at zero is zero."""
    total, square, root, select, same = (primitive("ReduceSum", keepdims), *map(primitive, ("Square", "Sqrt", "Select", "Equal")))
    zero, one = (from_numpy(np.array(x, np.float32)) for x in (0, 1))

    def run(a):
        squares = total(square(a), axes)
        none = same(squares, zero)
        return select(none, zero, root(select(none, one, squares)))

    return run


vector_norm = Primitive(
    "vector_norm",
    host=_norm,
    mindspore=_norm_ms,
    vjp=[_norm_vjp],
    guard=lambda a, *, p, axes, keepdims: p == 2 and a.size > 0 and a.ndim > 0,
)


def _safe_root_ms():
    root, select, same = primitive("Sqrt"), primitive("Select"), primitive("Equal")
    zero, one = (from_numpy(np.array(x, np.float32)) for x in (0, 1))

    def run(a):
        none = same(a, zero)
        return select(none, zero, root(select(none, one, a)))

    return run


safe_root = Primitive(  # the square root without a gradient at zero: standard deviations
    "safe_root",
    host=lambda a: np.sqrt(a.astype(np.float32)).astype(a.dtype) if a.dtype.itemsize < 4 else np.sqrt(a),
    mindspore=_safe_root_ms,
    guard=lambda a: a.size > 0,
    vjp=[lambda g, out, a: where(equal(out, constant(0, out.dtype)), constant(0, g.dtype), g / (out * 2))],
)


def _prod_vjp(g, out, a, *, axes, keepdims):
    """Products of all the others: exclusive products from the left and from the right, so that zeros are exact."""
    if a.size and not a.abstract and not (a.numpy == 0).any():
        return spread(g * conj_of(out), a, axes, keepdims) / conj_of(a)
    rest = [i for i in range(a.ndim) if i not in axes]
    from .movement import transpose

    order = tuple(rest) + tuple(axes)
    moved = transpose(a, axes=order)
    kept = tuple([a.shape[i] for i in rest])
    flat = reshape(moved, shape=kept + (_count(a, axes),))
    others = exclusive_product(flat)
    back = reshape(others, shape=moved.shape)
    inverse = tuple([order.index(i) for i in range(a.ndim)])
    return spread(g, a, axes, keepdims) * conj_of(transpose(back, axes=inverse))


def exclusive_product(a):
    """For each element along the last axis the product of all the others."""
    from .movement import concat, strided_slice

    n = a.shape[-1]
    if n == 0:
        return zeros_like(a)
    lead = a.shape[:-1]

    def part(v, start, stop):
        return strided_slice(v, start=(0,) * len(lead) + (start,), stop=lead + (stop,), step=(1,) * a.ndim)

    one = zeros_like(part(a, 0, 1)) + 1
    left, right = [one], [one]
    for i in range(n - 1):
        left.append(left[-1] * part(a, i, i + 1))
        right.append(right[-1] * part(a, n - 1 - i, n - i))
    axis = a.ndim - 1
    if n == 1:
        return one
    return concat(*left, axis=axis) * concat(*right[::-1], axis=axis)


prod = Primitive(
    "prod", host=lambda a, *, axes, keepdims: np.multiply.reduce(a, axis=axes, keepdims=keepdims, dtype=a.dtype), vjp=[_prod_vjp]
)


def _halved(kernel):
    def run(a, **attributes):
        if a.dtype.itemsize < 4:
            return kernel(a.astype(np.float32), **attributes).astype(a.dtype)
        return kernel(a, **attributes)

    return run


def _softmax(a, *, axis):
    if a.size == 0:
        return a.copy()
    e = np.exp(a - np.max(a, axis=axis, keepdims=True))
    e /= np.add.reduce(e, axis=axis, keepdims=True)
    return e


def _log_softmax(a, *, axis):
    if a.size == 0:
        return a.copy()
    shifted = a - np.max(a, axis=axis, keepdims=True)
    return shifted - np.log(np.add.reduce(np.exp(shifted), axis=axis, keepdims=True))


def _softmax_guard(a, *, axis):
    return a.size > 0 and a.ndim > 0


def _softmax_vjp(g, out, a, *, axis):
    weighted = g * out
    return weighted - out * broadcast_to(sum(weighted, axes=(axis,), keepdims=True), shape=a.shape)


def _log_softmax_vjp(g, out, a, *, axis):
    return g - exp(out) * broadcast_to(sum(g, axes=(axis,), keepdims=True), shape=a.shape)


def _softmax_ms(*, axis):
    """The exponential of LogSoftmax. MindSpore's Softmax cannot be trusted [measured]: along the last axis it fills other rows
    with garbage where one row is -inf throughout, and along others its gradient, after some hundred different programs in
    one process, leaves out the sum over the axis."""
    log, power = primitive("LogSoftmax", axis), primitive("Exp")
    return lambda a: power(log(a))


def _softmax_pays(a, *, axis):
    """Small inputs go to the host: MindSpore's Exp is off by up to 5e-6, which is worth it only where it is fast."""
    return a.size > 16384


softmax = Primitive("softmax", host=_halved(_softmax), mindspore=_softmax_ms, vjp=[_softmax_vjp], guard=_softmax_pays)
log_softmax = Primitive(
    "log_softmax",
    host=_halved(_log_softmax),
    mindspore=lambda *, axis: primitive("LogSoftmax", axis),
    vjp=[_log_softmax_vjp],
    guard=_softmax_guard,
)


def _logsumexp(a, *, axes, keepdims):
    if not a.size:
        return np.log(_sum(a, axes=axes, keepdims=keepdims))
    high = np.max(a.real, axis=axes, keepdims=True)
    high = np.where(np.isfinite(high), high, np.zeros((), high.dtype))
    total = np.log(np.add.reduce(np.exp(a - high), axis=axes, keepdims=True)) + high
    return (total if keepdims else total.reshape([n for i, n in enumerate(a.shape) if i not in axes])).astype(a.dtype, copy=False)


def _logsumexp_vjp(g, out, a, *, axes, keepdims):
    return spread(g, a, axes, keepdims) * conj_of(exp(a - spread(out, a, axes, keepdims)))


def _logsumexp_ms(*, axes, keepdims):
    top, total, flat = primitive("ReduceMax", True), primitive("ReduceSum", True), primitive("Reshape")
    exp_, log_, sub, add, lowest, highest = map(primitive, ("Exp", "Log", "Sub", "Add", "Maximum", "Minimum"))
    limit = np.finfo(np.float32).max
    low, high = from_numpy(np.array(-limit)), from_numpy(np.array(limit))

    def run(a):
        m = highest(lowest(top(a, axes), low), high)
        found = add(log_(total(exp_(sub(a, m)), axes)), m)
        return found if keepdims else flat(found, tuple([n for i, n in enumerate(a.shape) if i not in axes]))

    return run


logsumexp = Primitive("logsumexp", host=_halved(_logsumexp), mindspore=_logsumexp_ms, vjp=[_logsumexp_vjp], guard=_reduce_guard)
