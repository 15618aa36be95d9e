"""Running sums, products and extremes; differences and integrals along a dimension."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import constant, value_of
from msadapter_hook.tensor import dtypes
from msadapter_hook.tensor.geometry import wrap_dim

from .promotion import is_complex, is_integral, to
from .reduction import _comparable, at_least_1d, axis_of
from .refusals import not_implemented
from .registry import composite, operator
from .tables import call

ALL = "function method inplace out"


def _along(primitive, value, axis):
    """A scan of a Value that may be zero-dim."""
    if value.ndim:
        return primitive(value, axis=axis)
    return prims.reshape(primitive(at_least_1d(value), axis=0), shape=())


def _wide(self, dtype):
    if dtype is not None:
        return to(self, dtype)
    return to(self, dtypes.int64) if is_integral(self) else self


@operator("cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", forms=ALL)
def cumsum(self, dim, dtype=None):
    """Running sum; integers as int64. Source: PyTorch, torch.cumsum."""
    return _along(prims.cumsum, _wide(self, dtype), axis_of(self, dim))


def _window(value, axis, start, stop):
    lead, tail = value.shape[:axis], value.shape[axis + 1 :]
    return prims.strided_slice(
        value, start=(0,) * axis + (start,) + (0,) * len(tail), stop=lead + (stop,) + tail, step=(1,) * value.ndim
    )


def _reversed_cumsum(value, axis):
    return prims.flip(prims.cumsum(prims.flip(value, axes=(axis,)), axis=axis), axes=(axis,))


def _cumprod_vjp(g, out, a, *, axis):
    """Without zeros the running sum from the end of g * out, over a; else a recurrence that never divides."""
    if not (a.numpy == 0).any():
        return _reversed_cumsum(g * prims.conj_of(out), axis) / prims.conj_of(a)
    n = a.shape[axis]
    x = prims.conj_of(a)
    before = [prims.zeros_like(_window(a, axis, 0, 1)) + 1]
    for i in range(n - 1):
        before.append(before[-1] * _window(x, axis, i, i + 1))
    after = [_window(g, axis, n - 1, n)]
    for i in range(n - 2, -1, -1):
        after.append(_window(g, axis, i, i + 1) + _window(x, axis, i + 1, i + 2) * after[-1])
    return prims.concat(*before, axis=axis) * prims.concat(*after[::-1], axis=axis)


def _cumprod(a, *, axis):
    if a.dtype.itemsize < 4 and a.dtype.kind in "fV":
        return np.cumprod(a, axis, dtype=np.float32).astype(a.dtype)
    return np.cumprod(a, axis, dtype=a.dtype)


_cumprod_primitive = prims.host_call("cumprod", _cumprod, vjp=[_cumprod_vjp])


@operator("cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", forms=ALL, saves="self result")
def cumprod(self, dim, dtype=None):
    """Running product; integers as int64. Source: PyTorch, torch.cumprod."""
    return _along(_cumprod_primitive, _wide(self, dtype), axis_of(self, dim))


def _logcumsumexp(a, *, axis):
    wide = a.astype(np.float32) if a.dtype.itemsize < 4 else a
    if a.dtype.kind == "c":
        return _complex_logcumsumexp(wide, axis)
    return np.logaddexp.accumulate(wide, axis).astype(a.dtype)


def _complex_logcumsumexp(a, axis):
    """log of the running sum of exp, relative to the running maximum of the real parts."""
    out = np.empty_like(a)
    source, target = np.moveaxis(a, axis, 0), np.moveaxis(out, axis, 0)
    if not len(source):
        return out
    target[0] = source[0]
    for i in range(1, len(source)):
        x, y = target[i - 1], source[i]
        high = np.where(x.real >= y.real, x, y)
        low = np.where(x.real >= y.real, y, x)
        target[i] = np.where(np.isneginf(high.real), high, high + np.log1p(np.exp(low - high)))
    return out


_WEIGHTS = 1 << 22


def _logcumsumexp_weights(g, out, a, axis):
    """The same as a product with the matrix of `exp(a[j] - out[i])`, i >= j, none of which exceeds one. Linear in `g` as it is
    written, so it can be differentiated again in forward mode too."""
    axis %= a.ndim
    order = tuple([d for d in range(a.ndim) if d != axis] + [axis])
    back = tuple(sorted(range(a.ndim), key=order.__getitem__))
    g, out, a = [prims.transpose(v, axes=order) for v in (g, out, a)]
    n, lead = a.shape[-1], a.shape[:-1]
    exponent = prims.reshape(a, shape=lead + (1, n)) - prims.reshape(out, shape=lead + (n, 1))
    counts = np.tril(np.ones((n, n), bool)) & (a.numpy != -np.inf).reshape(lead + (1, n))
    weight = prims.exp(prims.where(value_of(np.ascontiguousarray(counts)), exponent, constant(-np.inf, a.dtype)))
    made = prims.sum(prims.reshape(g, shape=lead + (n, 1)) * weight, axes=(a.ndim - 1,), keepdims=False)
    return prims.transpose(made, axes=back)


def _logcumsumexp_vjp(g, out, a, *, axis):
    if is_complex(a):
        return _reversed_cumsum(g * prims.conj_of(prims.exp(prims.neg(out))), axis) * prims.conj_of(prims.exp(a))
    if a.dtype.itemsize < 8:  # differences of logarithms lose digits
        wide = [prims.cast(v, dtype=np.dtype(np.float64)) for v in (g, a)]
        out = _logcumsumexp_primitive(wide[1], axis=axis)
        return prims.cast(_logcumsumexp_vjp(wide[0], out, wide[1], axis=axis), dtype=a.dtype)
    if a.ndim and a.size * a.shape[axis] <= _WEIGHTS:
        return _logcumsumexp_weights(g, out, a, axis)
    zero, lowest = constant(0, g.dtype), constant(-np.inf, g.dtype)
    positive = g > zero
    negative = g < zero
    log_size = prims.log(prims.absolute(prims.where(prims.equal(g, zero), constant(1, g.dtype), g)))

    def half(chosen):
        weight = prims.where(chosen, log_size - out, lowest)
        back = prims.flip(_logcumsumexp_primitive(prims.flip(weight, axes=(axis,)), axis=axis), axes=(axis,))
        return prims.exp(back + a)

    return half(positive) - half(negative)


_logcumsumexp_primitive = prims.host_call("logcumsumexp", _logcumsumexp, vjp=[_logcumsumexp_vjp])


@operator("logcumsumexp(Tensor self, int dim) -> Tensor", forms="function method out", saves="self result")
def logcumsumexp(self, dim):
    """Logarithm of the running sum of exponentials. Source: PyTorch, torch.logcumsumexp."""
    if is_integral(self):
        raise not_implemented("logcumsumexp_out_cpu", self)
    return _along(_logcumsumexp_primitive, self, axis_of(self, dim))


# ------------------------------------------------------------------------------------------------ running extremes
def _last_hits(a, axis, ufunc, at_least):
    """Where the running extreme was met last; a NaN stays the extreme from where it appears."""
    if a.shape[axis] == 0:
        return np.zeros(a.shape, np.int64)
    running = ufunc.accumulate(a, axis)
    hit = at_least(a, running)
    if a.dtype.kind == "f":
        hit = hit | np.isnan(a)
    steps = np.arange(a.shape[axis]).reshape((-1,) + (1,) * (a.ndim - axis - 1))
    return np.maximum.accumulate(np.where(hit, steps, 0), axis)


def _declare_running(name, ufunc, at_least):
    def body(self, dim):
        axis = axis_of(self, dim)
        if is_complex(self):
            raise not_implemented(f"{name}_cpu", self)
        whole = at_least_1d(self)
        array = _comparable(whole.numpy)
        index = value_of(_last_hits(array if array.dtype.kind != "b" else array.astype(np.uint8), axis, ufunc, at_least))
        values = prims.take_along(whole, index, axis=axis)
        if not self.ndim:
            return prims.reshape(values, shape=()), prims.reshape(index, shape=())
        return values, index

    body.__doc__ = f"Running {name[3:]}imum and where it was met last (int64). Source: PyTorch, torch.{name}."
    operator(f"{name}(Tensor self, int dim) -> (Tensor values, Tensor indices)", forms="function method out")(body)


_declare_running("cummax", np.maximum, np.greater_equal)
_declare_running("cummin", np.minimum, np.less_equal)


# ------------------------------------------------------------------------------------------------ differences and integrals
@composite(
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor", forms="function method out"
)
def diff(self, n=1, dim=-1, prepend=None, append=None):
    """n-th differences of neighbours. Source: PyTorch, torch.diff."""
    if not self.dim():
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:
        return self.clone()
    axis = wrap_dim(dim, self.dim())
    for extra in (prepend, append):
        if extra is not None and extra.dim() != self.dim():
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        wrong = [d for d in range(self.dim()) if d != axis and extra is not None and extra._size[d] != self._size[d]]
        if wrong:
            d = wrong[0]
            raise RuntimeError("diff expects the shape of tensor to prepend or append to match that of input except along "
                               f"the differencing dimension; input.size({d}) = {self._size[d]}, but got "
                               f"tensor.size({d}) = {extra._size[d]}")
    if prepend is not None or append is not None:
        self = call("cat", [t for t in (prepend, self, append) if t is not None], axis)
    for _ in range(min(n, self._size[axis])):
        length = self._size[axis]
        after, before = self.narrow(axis, 1, length - 1), self.narrow(axis, 0, length - 1)
        self = after ^ before if self._dtype is dtypes.bool_ else after - before
    return self


def _spacing(x, y, axis):
    """Differences of the positions, shaped to multiply `y`'s intervals."""
    if x.dim() == 0:
        return x
    if x.dim() == 1 and y.dim() != 1:
        if x._size[0] != y._size[axis]:
            raise RuntimeError("trapezoid: There must be one `x` value for each sample point")
        x = x.reshape([-1 if i == axis else 1 for i in range(y.dim())])
    elif x.dim() != y.dim():
        x = x.reshape((1,) * (y.dim() - x.dim()) + tuple(x._size))
    n = x._size[axis]
    return x.narrow(axis, 1, n - 1) - x.narrow(axis, 0, n - 1)


def _areas(y, x, dx, axis):
    n = y._size[axis]
    if isinstance(dx, (bool,)):
        raise RuntimeError("trapezoid: Currently, we only support dx as a real number.")
    if not n:
        return None
    pairs = y.narrow(axis, 1, n - 1) + y.narrow(axis, 0, n - 1)
    return (pairs * (_spacing(x, y, axis) if x is not None else dx)) / 2.0


def _refuse_bool(name, y, x=None):
    for label, t in (("y", y), ("x", x)):
        if t is not None and t._dtype is dtypes.bool_:
            raise RuntimeError(f"{name}: received a bool input for `{label}`, but bool is not supported")


def _zeros(y, axis, keep):
    size = list(y._size)
    size[axis : axis + 1] = [0] if keep else []
    return y.new_zeros(size) if y._dtype.is_floating_point or y._dtype.is_complex else call("zeros", size)


@composite("trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", forms="function", aliases=("trapz",))
def trapezoid_x(y, x, dim=-1):
    """Integral by the trapezoidal rule over given positions. Source: PyTorch, torch.trapezoid."""
    _refuse_bool("trapezoid", y, x)
    axis = wrap_dim(dim, y.dim(), scalar=False)
    areas = _areas(y, x, 1, axis)
    return _zeros(y, axis, False) if areas is None else areas.sum(axis)


@composite("trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", forms="function", aliases=("trapz",))
def trapezoid(y, dx=1, dim=-1):
    """Integral by the trapezoidal rule over equal steps. Source: PyTorch, torch.trapezoid."""
    _refuse_bool("trapezoid", y)
    axis = wrap_dim(dim, y.dim(), scalar=False)
    if not y._size[axis]:
        return _zeros(y, axis, False)
    return (y.sum(axis) - (y.select(axis, 0) + y.select(axis, -1)) * 0.5) * dx


@composite("cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", forms="function")
def cumulative_trapezoid_x(y, x, dim=-1):
    """Running integral over given positions. Source: PyTorch, torch.cumulative_trapezoid."""
    _refuse_bool("cumulative_trapezoid", y, x)
    axis = wrap_dim(dim, y.dim(), scalar=False)
    areas = _areas(y, x, 1, axis)
    return _zeros(y, axis, True) if areas is None else areas.cumsum(axis)


@composite("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", forms="function")
def cumulative_trapezoid(y, dx=1, dim=-1):
    """Running integral over equal steps. Source: PyTorch, torch.cumulative_trapezoid."""
    _refuse_bool("cumulative_trapezoid", y)
    axis = wrap_dim(dim, y.dim(), scalar=False)
    areas = _areas(y, None, dx, axis)
    return _zeros(y, axis, True) if areas is None else areas.cumsum(axis)
