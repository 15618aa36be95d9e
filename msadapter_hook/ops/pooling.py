"""Pooling: the largest element, the mean or a norm of windows, adaptive and fractional windows, and unpooling."""

import math

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import value_of

from ._contract import shaped
from .arguments import integers
from .promotion import dtype_of
from .registry import operator, plain
from .tables import call

WORDS = {1: "one int", 2: "two ints", 3: "three ints"}


# ------------------------------------------------------------------------------------------------ windows
def _axes(value, n, what, name):
    """One number per axis from an int or a list."""
    value = (value,) if isinstance(value, int) else tuple(value)
    if len(value) == 1:
        return value * n
    if len(value) != n:
        raise RuntimeError(f"{name}: {what} must either be a single int, or a tuple of {WORDS[n]}")
    return value


def _window(n, name, kernel, stride, padding, dilation=(1,)):
    kernel = _axes(kernel, n, "kernel_size", name)
    stride = kernel if stride is None or stride == () else _axes(stride, n, "stride", name)
    return kernel, stride, _axes(padding, n, "padding", name), _axes(dilation, n, "dilation", name)


def pooled_size(size, kernel, stride, padding, dilation, ceil_mode):
    """Spatial shape of pooling; with `ceil_mode` a last window counts that starts inside of input or left padding."""
    out = []
    for n, k, s, p, d in zip(size, kernel, stride, padding, dilation):
        span = n + 2 * p - d * (k - 1) - 1
        o = (span + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (o - 1) * s >= n + p:
            o -= 1
        out.append(o)
    return tuple(out)


def _check_window(x, kernel, stride, padding, dilation, out):
    n = len(kernel)
    if any(s == 0 for s in stride):
        raise RuntimeError("stride should not be zero")
    if any(k <= 0 for k in kernel):
        raise RuntimeError(f"kernel size should be greater than zero, but got kernel size {list(kernel)}")
    if any(d <= 0 for d in dilation):
        letters = "HW" if n == 2 else "TWH"
        parts = " ".join(f"dilation{c}: {d}" for c, d in zip(letters, dilation))
        raise RuntimeError(f"dilation should be greater than zero, but got {parts}")
    for p, k, d in zip(padding, kernel, dilation):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > (d * (k - 1) + 1) // 2:
            raise RuntimeError(f"pad should be at most half of effective kernel size, but got pad={p}, "
                               f"kernel_size={k} and "
                               f"dilation={d}")
    if any(o < 1 for o in out()):
        given, made = ("x".join(map(str, (x.shape[1],) + s)) for s in (x.shape[2:], tuple(max(o, 0) for o in out())))
        raise RuntimeError(f"Given input size: ({given}). Calculated output size: ({made}). Output size is too small")


def _batched(x, n, error):
    """`x` as (N, C, …) and whether the batch was missing."""
    if x.ndim == n + 1:
        return shaped(x, (1,) + x.shape), True
    if x.ndim != n + 2:
        raise RuntimeError(error)
    return x, False


def _unbatched(single, *values):
    return [shaped(v, v.shape[1:]) if single else v for v in values]


# ------------------------------------------------------------------------------------------------ maximum
def _max_pool(n, self, kernel, stride, padding, dilation, ceil_mode, indices):
    name = f"max_pool{n}d"
    if n == 1:
        kernel, stride, padding, dilation = _check_sequence(self, kernel, stride, padding, dilation, ceil_mode)
        x, single = _batched(self, 1, "")
    else:
        x, single = _batched(self, n, f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input")
        kernel, stride, padding, dilation = _window(n, name, kernel, stride, padding, dilation)
        _check_window(x, kernel, stride, padding, dilation,
                      lambda: pooled_size(x.shape[2:], kernel, stride, padding, dilation, ceil_mode))
        if 0 in x.shape[1:]:
            raise RuntimeError(f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for "
                               "input, but "
                               f"got:{list(x.shape)}")
    if x.dtype.kind in "bc":
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype_of(x).scalar_name}'")
    out = pooled_size(x.shape[2:], kernel, stride, padding, dilation, ceil_mode)
    if n == 1:  # as the second of two axes, which has a recorded kernel
        x = shaped(x, x.shape[:2] + (1,) + x.shape[2:])
        kernel, stride, padding, dilation, out = [a + b for a, b in zip(((1,), (1,), (0,), (1,), (1,)),
                                                                        (kernel, stride, padding, dilation, out))]
    attributes = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation, "out": out}
    if not indices:
        made = [prims.max_pool(x, **attributes)]
    else:
        index = prims.max_pool_index(x, **attributes)
        flat = shaped(x, x.shape[:2] + (math.prod(x.shape[2:]),))
        places = shaped(index, index.shape[:2] + (math.prod(out),))
        made = [shaped(prims.places_get(flat, places), index.shape), index]
    if n == 1:
        made = [shaped(v, v.shape[:2] + v.shape[3:]) for v in made]
    made = _unbatched(single, *made)
    return tuple(made) if indices else made[0]


def _check_sequence(self, kernel, stride, padding, dilation, ceil_mode):
    if self.ndim not in (2, 3) or 0 in self.shape[1 if self.ndim == 3 else 0:]:
        raise RuntimeError("max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for "
                           "input, but got:"
                           f"{list(self.shape)}")
    kernel, stride, padding, dilation = _window(1, "max_pool1d", kernel, stride, padding, dilation)
    for word, value in (("kernel_size", kernel), ("stride", stride)):
        if value[0] <= 0:
            raise RuntimeError(f"max_pool1d() {word} must be greater than zero, but got {value[0]}")
    if padding[0] < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding[0]}")
    if padding[0] > kernel[0] // 2:
        raise RuntimeError(f"max_pool1d() padding should be at most half of kernel size, but got padding={padding[0]} "
                           "and "
                           f"kernel_size={kernel[0]}")
    if dilation[0] <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {dilation[0]}")
    out = pooled_size(self.shape[-1:], kernel, stride, padding, dilation, ceil_mode)[0]
    if out <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {out}")
    return kernel, stride, padding, dilation


_POOL = "int[1] kernel_size, int[1]? stride=None, int[1] padding=0, int[1] dilation=1, bool ceil_mode=False"


def _declare_max(n):
    backward = "SqueezeBackward1" if n == 1 else f"MaxPool{n}DWithIndicesBackward0"

    @operator(f"_max_pool{n}d(Tensor self, {_POOL}) -> Tensor", forms="function", saves="self", layout="channels",
              grad_name=backward, aliases=(f"max_pool{n}d",))
    def values(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
        return _max_pool(n, self, kernel_size, stride, padding, dilation, ceil_mode, False)

    @operator(f"_max_pool{n}d_with_indices(Tensor self, {_POOL}) -> (Tensor, Tensor)", forms="function", saves="self", layout="channels",
              grad_name=backward, aliases=(f"max_pool{n}d_with_indices",) if n == 1 else ())
    def indexed(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
        return _max_pool(n, self, kernel_size, stride, padding, dilation, ceil_mode, True)

    def max_pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        name = f"_max_pool{n}d_with_indices" if return_indices else f"_max_pool{n}d"
        return call(name, input, kernel_size, stride, padding, dilation, ceil_mode)

    def max_pool_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        return call(f"_max_pool{n}d_with_indices", input, kernel_size, stride, padding, dilation, ceil_mode)

    max_pool.__name__ = max_pool.__qualname__ = f"max_pool{n}d"
    max_pool_with_indices.__name__ = max_pool_with_indices.__qualname__ = f"max_pool{n}d_with_indices"
    max_pool.__doc__ = (f"The largest element of each window; with `return_indices` also its flat position.\n\n"
                        f"    Source: PyTorch, torch.nn.functional.max_pool{n}d.\n    ")
    max_pool_with_indices.__doc__ = max_pool.__doc__
    plain(max_pool, name=f"nn.functional.max_pool{n}d")
    plain(max_pool_with_indices, name=f"nn.functional.max_pool{n}d_with_indices")


for _n in (1, 2, 3):
    _declare_max(_n)


# ------------------------------------------------------------------------------------------------ mean
def avg_values(n, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor):
    """Mean pooling of a batched Value."""
    ones = (1,) * n
    _check_window(x, kernel, stride, padding, ones, lambda: pooled_size(x.shape[2:], kernel, stride, padding, ones, ceil_mode))
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")
    out = pooled_size(x.shape[2:], kernel, stride, padding, ones, ceil_mode)
    if n == 1:
        x = shaped(x, x.shape[:2] + (1,) + x.shape[2:])
        kernel, stride, padding, out = (1,) + kernel, (1,) + stride, (0,) + padding, (1,) + out
    made = prims.avg_pool(x, kernel=kernel, stride=stride, padding=padding, out=out, count_padding=count_include_pad,
                          divisor=divisor or 0)
    return shaped(made, made.shape[:2] + made.shape[3:]) if n == 1 else made


def _declare_avg(n):
    extra = ", int? divisor_override=None" if n > 1 else ""

    backward = "SqueezeBackward1" if n == 1 else f"AvgPool{n}DBackward0"

    @operator(f"avg_pool{n}d(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, bool ceil_mode=False, "
              f"bool count_include_pad=True{extra}) -> Tensor", namespace="nn.functional", saves="input", grad_name=backward,
              forms="function" if n == 1 else "function out", aliases=("avg_pool1d",) if n == 1 else (),
              layout="channels" if n == 2 else None)
    def avg_pool(input, kernel_size, stride=None, padding=(0,), ceil_mode=False, count_include_pad=True, divisor_override=None):
        if n == 1:
            if input.ndim not in (2, 3):
                raise RuntimeError(f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument "
                                   "#1 'self' (while "
                                   "checking arguments for avg_pool1d)")
        elif n == 2 and input.ndim < 3:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-input.ndim}, {input.ndim - 1}], "
                             "but got -3)")
        x, single = _batched(input, n, f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input")
        if x.dtype.kind in "bc":
            raise NotImplementedError(f"\"avg_pool{n}d\" not implemented for '{dtype_of(x).scalar_name}'")
        if 0 in x.shape[1:]:
            raise RuntimeError(f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
                               f"got:{list(x.shape)}")
        kernel, stride, padding, _ = _window(n, f"avg_pool{n}d", kernel_size, stride, padding)
        made = avg_values(n, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)
        return _unbatched(single, made)[0]

    avg_pool.__doc__ = f"The mean of each window. Source: PyTorch, torch.nn.functional.avg_pool{n}d."


for _n in (1, 2, 3):
    _declare_avg(_n)


# ------------------------------------------------------------------------------------------------ norms
def _lp_pool(n, input, norm_type, kernel_size, stride, ceil_mode):
    p = float(norm_type)
    volume = math.prod(_axes(kernel_size, n, "kernel_size", f"lp_pool{n}d"))
    powered = call("pow", input, p)
    if stride is None or stride == ():
        stride = kernel_size
    mean = call(f"nn.functional.avg_pool{n}d", powered, kernel_size, stride, 0, ceil_mode)
    return call("pow", call("mul", call("mul", call("sign", mean), call("relu", call("abs", mean))), volume), 1.0 / p)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window. Source: PyTorch, torch.nn.functional.lp_pool1d."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window. Source: PyTorch, torch.nn.functional.lp_pool2d."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window. Source: PyTorch, torch.nn.functional.lp_pool3d."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


for _f in (lp_pool1d, lp_pool2d, lp_pool3d):
    plain(_f, name="nn.functional." + _f.__name__)


# ------------------------------------------------------------------------------------------------ adaptive windows
def _bounds(n, out):
    """Start and stop of each adaptive window along an axis."""
    i = np.arange(out)
    return i * n // out, -(-(i + 1) * n // out)


def averaging_matrix(n, out, dtype):
    """(out, n): the mean over each adaptive window."""
    start, stop = _bounds(n, out)
    at = np.arange(n)
    inside = (at >= start[:, None]) & (at < stop[:, None])
    return value_of((inside / np.maximum(stop - start, 1)[:, None]).astype(dtype))


def _output_size(output_size, x, n, name):
    size = (output_size,) * n if isinstance(output_size, int) or output_size is None else tuple(output_size)
    if len(size) == 1:
        size = size * n
    if len(size) != n:
        raise RuntimeError(name)
    return tuple([x.shape[i - n] if s is None else int(s) for i, s in enumerate(size)])


def _check_rank(x, output_size):
    """ValueError where a list of sizes leaves no axis of channels."""
    if isinstance(output_size, (tuple, list)) and x.ndim <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")


def _need_elements(x, n, name):
    for i in range(x.ndim - n, x.ndim):
        if x.shape[i] == 0:
            raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input "
                               "has sizes "
                               f"{list(x.shape)} with dimension {i} being empty")


def _adaptive_avg(n, input, output_size):
    name = f"adaptive_avg_pool{n}d"
    if n > 1:
        _check_rank(input, output_size)
    if n == 1 and input.ndim not in (2, 3):
        raise RuntimeError(f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 "
                           "'self' (while checking "
                           "arguments for adaptive_avg_pool1d)")
    x, single = _batched(input, n, f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got {list(input.shape)}")
    size = _output_size(output_size, x, n, f"{name}: output_size must be {n}")
    if any(s < 0 for s in size):
        inside = ", ".join(map(str, size))
        raise RuntimeError(f"{name}: elements of output_size must be greater than or equal to 0 but received "
                           f"{{{inside}}}")
    _need_elements(x, n, name)
    if x.dtype.kind not in "fV":
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{dtype_of(x).scalar_name}'".replace("pool1d", "pool2d"))
    if all(s == 1 for s in size):
        made = prims.mean(x, axes=tuple(range(2, x.ndim)), keepdims=True)
    elif all(s and k % s == 0 for k, s in zip(x.shape[2:], size)):
        kernel = tuple([k // s for k, s in zip(x.shape[2:], size)])
        made = avg_values(n, x, kernel, kernel, (0,) * n, False, True, None)
    else:
        made = x
        for i, s in enumerate(size):
            if s != x.shape[2 + i]:
                made = prims.axis_map(made, averaging_matrix(x.shape[2 + i], s, x.dtype), axis=2 + i)
    return _unbatched(single, made)[0]


def _adaptive_max(n, input, output_size):
    name = f"adaptive_max_pool{n}d"
    if n > 1:
        _check_rank(input, output_size)
    if n == 1 and input.ndim not in (2, 3):
        raise RuntimeError(f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 "
                           "'self' (while checking "
                           "arguments for adaptive_max_pool1d)")
    x, single = _batched(input, n, f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got: {list(input.shape)}")
    if n == 1 and not isinstance(output_size, int) and len(output_size) != 1:
        raise RuntimeError("adaptive_max_pool1d() argument 'output_size' should contain one int (got "
                           f"{len(output_size)})")
    size = _output_size(output_size, x, n, f"{name}(): internal error: output_size.size() must be {n}")
    if any(s < 0 for s in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(x.shape[:2] + size)}")
    _need_elements(x, n, name)
    if x.dtype.kind not in "fV":
        raise NotImplementedError(f"\"adaptive_max_pool{n}d\" not implemented for '{dtype_of(x).scalar_name}'")
    index = _adaptive_index(x, size=size)
    flat = shaped(x, x.shape[:2] + (math.prod(x.shape[2:]),))
    places = shaped(index, index.shape[:2] + (math.prod(size),))
    made = shaped(prims.places_get(flat, places), index.shape)
    return tuple(_unbatched(single, made, index))


def _adaptive_index_host(x, *, size):
    n = len(size)
    bounds = [_bounds(k, s) for k, s in zip(x.shape[2:], size)]
    index = np.zeros(x.shape[:2] + size, np.int64)
    spatial = x.shape[2:]
    for at in np.ndindex(*size):
        starts = [bounds[i][0][at[i]] for i in range(n)]
        stops = [bounds[i][1][at[i]] for i in range(n)]
        part = x[(slice(None), slice(None)) + tuple(map(slice, starts, stops))]
        index[(slice(None), slice(None)) + at] = first_largest(part, starts, spatial)
    return index


def first_largest(part, starts, spatial):
    """Flat position, in the whole, of the first largest element of a window (N, C, …); the last NaN wins."""
    flat = part.reshape(part.shape[:2] + (math.prod(part.shape[2:]),))
    flat = flat.astype(np.float32) if flat.dtype.itemsize < 4 else flat
    bad = flat != flat
    best = np.where(bad.any(2), flat.shape[2] - 1 - bad[..., ::-1].argmax(2), np.where(bad, -np.inf, flat).argmax(2))
    places = np.unravel_index(best, part.shape[2:])
    out = np.zeros(part.shape[:2], np.int64)
    for p, s, n in zip(places, starts, spatial):
        out = out * n + p + s
    return out


_adaptive_index = prims.host_call("adaptive_max_index", _adaptive_index_host, differentiable=False)


def _declare_adaptive(n):
    @operator(f"adaptive_avg_pool{n}d(Tensor input, any output_size) -> Tensor", namespace="nn.functional", forms="function",
              grad_name=f"AdaptiveAvgPool{n}DBackward0", aliases=("adaptive_avg_pool1d",) if n == 1 else (),
              layout="channels" if n == 2 else None)
    def adaptive_avg(input, output_size):
        return _adaptive_avg(n, input, output_size)

    @operator(f"_adaptive_max_pool{n}d(Tensor self, any output_size) -> (Tensor, Tensor)", forms="function", saves="self",
              grad_name=f"AdaptiveMaxPool{n}DBackward0", aliases=("adaptive_max_pool1d",) if n == 1 else (),
              layout="channels" if n == 2 else None)
    def adaptive_max(self, output_size):
        return _adaptive_max(n, self, output_size)

    def adaptive_max_pool(input, output_size, return_indices=False):
        made = call(f"_adaptive_max_pool{n}d", input, output_size)
        return made if return_indices else made[0]

    def adaptive_max_pool_with_indices(input, output_size, return_indices=False):
        return call(f"_adaptive_max_pool{n}d", input, output_size)

    adaptive_avg.__doc__ = f"Means of windows, by output size. Source: PyTorch, torch.nn.functional.adaptive_avg_pool{n}d."
    adaptive_max_pool.__doc__ = adaptive_max_pool_with_indices.__doc__ = (
        "Largest elements of windows chosen for an output size.\n\n    Source: PyTorch, "
        f"torch.nn.functional.adaptive_max_pool{n}d.\n")
    for f, name in ((adaptive_max_pool, f"adaptive_max_pool{n}d"),
                    (adaptive_max_pool_with_indices, f"adaptive_max_pool{n}d_with_indices")):
        f.__name__ = f.__qualname__ = name
        plain(f, name="nn.functional." + name)


for _n in (1, 2, 3):
    _declare_adaptive(_n)


# ------------------------------------------------------------------------------------------------ unpooling
@operator("_max_unpool(Tensor self, Tensor indices, int[] output_size) -> Tensor", forms="function",
          grad_name="MaxUnpool2DBackward0", layout="channels")
def _max_unpool(self, indices, output_size):
    n = len(output_size)
    if indices.dtype != np.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {dtype_of(indices).scalar_name}")
    if self.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"Input to max_unpooling{n}d should be a {n + 1}d or {n + 2}d Tensor, but got a tensor "
                           f"with {self.ndim} "
                           "dimensions.")
    if indices.shape != self.shape:
        raise RuntimeError(f"Expected shape of indices to be same as that of the input tensor ({list(self.shape)}) "
                           "but got indices tensor "
                           f"with shape: {list(indices.shape)}")
    lead = self.shape[:-n]
    rows, count, volume = math.prod(lead), math.prod(self.shape[-n:]), math.prod(output_size)
    at = indices.numpy
    bad = (at < 0) | (at >= volume)
    if bad.any():
        sizes = "x".join(map(str, output_size))
        raise RuntimeError(f"Found an invalid max index: {int(at[bad].flat[0])} (output volumes are of size {sizes})")
    made = _unpool(shaped(self, (rows, count)), shaped(indices, (rows, count)), size=volume)
    return shaped(made, lead + tuple(output_size))


def _unpool_host(a, index, *, size):
    out = np.zeros((a.shape[0], size), a.dtype)
    np.put_along_axis(out, index, a, 1)
    return out


_unpool = prims.host_call("max_unpool", _unpool_host, uses_output=False,
                          vjp=[lambda g, out, a, index, *, size: prims.take_along(g, index, axis=1), None])


def _unpool_size(input, kernel, stride, padding, output_size):
    n = len(kernel)
    size = input.shape[-n:]
    default = [(s - 1) * t + k - 2 * p for s, t, k, p in zip(size, stride, kernel, padding)]
    if output_size is None:
        return default
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
                         f"'{len(output_size)}'")
    for d in range(n):
        low, high = default[d] - stride[d], default[d] + stride[d]
        if not low < output_size[d] < high:
            raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {low} and {high})')
    return list(output_size)


def _declare_unpool(n):
    def max_unpool(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        name = f"max_unpool{n}d"
        kernel, stride, padding, _ = _window(n, name, integers(kernel_size, n), stride if stride is None else integers(stride, n),
                                             integers(padding, n))
        return call("_max_unpool", input, indices, _unpool_size(input, kernel, stride, padding, output_size))

    max_unpool.__name__ = max_unpool.__qualname__ = f"max_unpool{n}d"
    max_unpool.__doc__ = (f"The elements put back at the positions that max_pool{n}d gave; zeros elsewhere.\n\n"
                          f"    Source: PyTorch, torch.nn.functional.max_unpool{n}d.\n    ")
    plain(max_unpool, name=f"nn.functional.max_unpool{n}d")


for _n in (1, 2, 3):
    _declare_unpool(_n)


# ------------------------------------------------------------------------------------------------ fractional windows
def _fractional_index_host(x, samples, *, kernel, size):
    n = len(kernel)
    spatial = x.shape[2:]
    starts = []
    for axis in range(n):
        # PyTorch draws one number per axis, the last axis first for images
        u = samples[..., n - 1 - axis] if n == 2 else samples[..., axis]
        reach = spatial[axis] - kernel[axis]
        place = np.full(u.shape + (size[axis],), reach, np.int64)
        if size[axis] > 1:
            alpha = u.dtype.type(reach) / u.dtype.type(size[axis] - 1)
            i = np.arange(size[axis] - 1)
            place[..., :-1] = ((i + u[..., None]) * alpha).astype(np.int64) - (u * alpha).astype(np.int64)[..., None]
        starts.append(place)
    index = np.zeros(x.shape[:2] + size, np.int64)
    for b, c in np.ndindex(*x.shape[:2]):
        for at in np.ndindex(*size):
            begin = [starts[i][b, c, at[i]] for i in range(n)]
            part = x[b:b + 1, c:c + 1][(slice(None), slice(None)) + tuple(slice(s, s + k) for s, k in zip(begin, kernel))]
            index[(b, c) + at] = first_largest(part, begin, spatial)[0, 0]
    return index


_fractional_index = prims.host_call("fractional_max_index", _fractional_index_host, differentiable=False)


@operator("_fractional_max_pool(Tensor self, int[] kernel_size, int[] output_size, Tensor samples) -> (Tensor, Tensor)",
          forms="function", grad_name="FractionalMaxPool2DBackward0")
def _fractional_max_pool(self, kernel_size, output_size, samples):
    n = len(kernel_size)
    name = f"fractional_max_pool{n}d()" if n == 2 else "fractional_max_pool3d_out()"
    x, single = _batched(self, n, f"{name}: Expected {n + 1}D or {n + 2}D tensor, but got: {list(self.shape)}")
    words = ("height", "width") if n == 2 else ("time", "height", "width")
    for word, k, o, s in zip(words, kernel_size, output_size, x.shape[2:]):
        if o + k - 1 > s:
            raise RuntimeError(f"{name}: pool {word} {k} too large relative to input {word} {s}")
    if samples.ndim != 3 or samples.shape != (x.shape[0], x.shape[1], n):
        raise RuntimeError(f"Expect _random_samples to have size {[x.shape[0], x.shape[1], n]}, got {list(samples.shape)}")
    index = _fractional_index(x, samples, kernel=tuple(kernel_size), size=tuple(output_size))
    flat = shaped(x, x.shape[:2] + (math.prod(x.shape[2:]),))
    places = shaped(index, index.shape[:2] + (math.prod(output_size),))
    made = shaped(prims.places_get(flat, places), index.shape)
    return tuple(_unbatched(single, made, index))


def _declare_fractional(n):
    name = f"fractional_max_pool{n}d"

    def with_indices(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            if len(output_ratio) != n:
                raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints." if n == 2 else
                                 f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
            output_size = [int(input.size(i - n) * output_ratio[i]) for i in range(n)]
        if _random_samples is None:
            lead = (input.size(0), input.size(1)) if input.dim() == n + 2 else (1, input.size(0))
            _random_samples = call("rand", *lead, n, dtype=input.dtype, device=input.device)
        return call("_fractional_max_pool", input, integers(kernel_size, n), integers(output_size, n), _random_samples)

    def pool(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        made = with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)
        return made if return_indices else made[0]

    for f, label in ((with_indices, name + "_with_indices"), (pool, name)):
        f.__name__ = f.__qualname__ = label
        f.__doc__ = f"Largest elements of windows placed at random. Source: PyTorch, torch.nn.functional.{name}."
        plain(f, name="nn.functional." + label)


for _n in (2, 3):
    _declare_fractional(_n)
