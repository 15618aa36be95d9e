"""Tensors from numbers alone: linspace, logspace, eye, triangles of indices, windows, and what `new_*` and strided
factories make."""

import builtins
import warnings

import numpy as np

from msadapter_hook.tape import value_of
from msadapter_hook.tensor import Tensor, dtypes, from_array, geometry
from msadapter_hook.tensor.device import device as Device

from .creation import _OPTIONS, _filled, finish, from_data
from .registry import composite
from .tables import METHODS, call


def _plain_number(x):
    return x.item() if isinstance(x, Tensor) else x


# ------------------------------------------------------------------------------------------------ ranges
def _space(name, start, end, steps, dtype):
    for label, x in (("start", start), ("end", end)):
        if isinstance(x, Tensor) and x.dim():
            raise RuntimeError(f"{name} only supports 0-dimensional start and end tensors, but got {label} with "
                               f"{x.dim()} dimension(s).")
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    is_complex = any(isinstance(x, complex) or isinstance(x, Tensor) and x._dtype.is_complex for x in (start, end))
    start, end = _plain_number(start), _plain_number(end)
    if dtype is None:
        return start, end, dtypes.get_default_complex_dtype() if is_complex else dtypes.get_default_dtype()
    if is_complex and not dtype.is_complex:
        raise RuntimeError(f"torch.{name}(): inferred dtype {dtypes.get_default_complex_dtype()} can't be safely cast "
                           f"to passed dtype {dtype}")
    return start, end, dtype


def _line(start, end, steps, dtype):
    """`steps` numbers from start to end, counted from both ends so that either is exact, in the dtype's own
    arithmetic."""
    if steps == 0:
        return np.empty(0, dtype.numpy)
    if steps == 1:
        return np.array([start]).astype(dtype.numpy)
    kind = dtype.numpy
    wide = kind if dtype.is_complex or dtype.is_floating_point and kind.itemsize >= 4 else np.dtype(np.float32)
    if not (dtype.is_floating_point or dtype.is_complex):
        wide = np.dtype(np.float64)
        start, end = int(start), int(end)
    with np.errstate(all="ignore"):
        low, high = np.array(start).astype(wide), np.array(end).astype(wide)
        step = ((high - low) / wide.type(steps - 1)).astype(wide)
        at = np.arange(steps)
        half = steps // 2
        # one rounding per element, as a fused multiply-add gives it
        double = np.dtype(np.complex128 if wide.kind == "c" else np.float64)
        up = (low.astype(double) + step.astype(double) * at).astype(wide)
        down = (high.astype(double) - step.astype(double) * (steps - 1 - at)).astype(wide)
        out = np.where(at < half, up, down)
    if dtype.is_floating_point or dtype.is_complex:
        return out.astype(kind)
    return np.trunc(out).astype(kind)


@composite(f"linspace(Operand start, Operand end, int steps, {_OPTIONS}) -> Tensor", forms="function out")
def linspace(start, end, steps, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """`steps` evenly spaced numbers from `start` to `end`, both included. Source: PyTorch, torch.linspace."""
    start, end, dtype = _space("linspace", start, end, steps, dtype)
    return finish(from_array(_line(start, end, steps, dtype), dtype), device, requires_grad, layout)


@composite(f"logspace(Operand start, Operand end, int steps, float base=10.0, {_OPTIONS}) -> Tensor",
           forms="function out")
def logspace(start, end, steps, base=10.0, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """Powers of `base` with evenly spaced exponents. Source: PyTorch, torch.logspace."""
    start, end, dtype = _space("logspace", start, end, steps, dtype)
    if dtype.is_floating_point or dtype.is_complex:
        wide = dtypes.complex128 if dtype.is_complex else dtypes.float64
        exponents = _line(start, end, steps, wide)
    else:
        exponents = _line_float(int(start), int(end), steps)
    with np.errstate(all="ignore"):
        flat = np.power(np.array(base, exponents.dtype), exponents).astype(dtype.numpy)
    return finish(from_array(flat, dtype), device, requires_grad, layout)


def _line_float(start, end, steps):
    """The exponents of an integral logspace: stepped in single precision, as PyTorch steps them."""
    if steps <= 1:
        return np.full(steps, float(start))
    single, at = np.float32, np.arange(steps)
    step = single(single(end - start) / single(steps - 1))
    up = single(start) + step * at.astype(single)
    down = single(end) - step * (steps - 1 - at).astype(single)
    return np.where(at < steps // 2, up, down).astype(np.float64)


@composite(f"eye(int n, {_OPTIONS}) -> Tensor", forms="function out")
@composite(f"eye.m(int n, int m, {_OPTIONS}) -> Tensor", forms="function out")
def eye(n, *rest):
    """Ones on the diagonal, zeros elsewhere. Source: PyTorch, torch.eye."""
    *m, dtype, layout, device, _, requires_grad = rest
    m = m[0] if m else n
    if n < 0 or m < 0:
        raise RuntimeError(f"{'n' if n < 0 else 'm'} must be greater or equal to 0, got {n if n < 0 else m}")
    dtype = dtype or dtypes.get_default_dtype()
    return finish(from_array(np.eye(n, m, dtype=dtype.numpy), dtype), device, requires_grad, layout)


@composite(f"range(Scalar start, Scalar end, Scalar step=1, {_OPTIONS}) -> Tensor", forms="function out")
def range_(start, end, step=1, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """From `start` to `end` included. Source: PyTorch, torch.range."""
    warnings.warn("torch.range is deprecated and will be removed in a future release because its behavior is "
                  "inconsistent with Python's range builtin. Instead, use torch.arange, which produces values in "
                  "[start, end).",
                  stacklevel=4)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    dtype = dtype or dtypes.get_default_dtype()
    count = int((end - start) / step + 1)
    return finish(from_array((start + step * np.arange(count, dtype=np.float64)).astype(dtype.numpy), dtype), device,
                  requires_grad)


def _triangle(name, indices):
    @composite(f"{name}(int row, int col, int offset=0, {_OPTIONS}) -> Tensor", forms="function")
    def body(row, col, offset=0, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
        if row < 0 or col < 0:
            raise RuntimeError(f"{'row' if row < 0 else 'col'} must be non-negative, got{row if row < 0 else col}")
        dtype = dtype or dtypes.int64
        return finish(from_array(np.stack(indices(row, offset, col)).astype(dtype.numpy), dtype), device, requires_grad,
                      layout)

    body.__doc__ = f"Rows and columns of a triangle of a matrix; int64 (2, n). Source: PyTorch, torch.{name}."


_triangle("tril_indices", np.tril_indices)
_triangle("triu_indices", np.triu_indices)


@composite("vander(Tensor self, int? N=None, bool increasing=False) -> Tensor", forms="function")
def vander(self, N=None, increasing=False):
    """Powers of each element of a vector, as rows. Source: PyTorch, torch.vander."""
    if self.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = self.numel() if N is None else N
    if count < 0:
        raise RuntimeError(f"N must be non-negative, got {count}.")
    x = self if self._dtype.is_floating_point or self._dtype.is_complex else self.to(dtypes.int64)
    columns = [call("ones_like", x)] if count else []
    while len(columns) < count:
        columns.append(columns[-1] * x)
    if not columns:
        return call("empty", (self.numel(), 0), dtype=x._dtype)
    return call("stack", columns if increasing else columns[::-1], 1)


@composite("vander(Tensor x, *, int? N=None) -> Tensor", forms="function", namespace="linalg")
def linalg_vander(x, N=None):
    """Powers 0 … N-1 of each element along a new last dimension. Source: PyTorch, torch.linalg.vander."""
    if N is not None and N <= 1:
        raise RuntimeError("N must be greater than 1.")
    if x._dtype is dtypes.bool_:
        raise RuntimeError("linalg.vander supports floating point, complex, and integer tensors, but got Bool")
    x = x if x.dim() else x.unsqueeze(-1)
    if not (x._dtype.is_floating_point or x._dtype.is_complex):
        x = x.to(dtypes.int64)
    columns = [call("ones_like", x)]
    for _ in builtins.range((x.size(-1) if N is None else N) - 1):
        columns.append(columns[-1] * x)
    return call("stack", columns, x.dim())


# ------------------------------------------------------------------------------------------------ empty and new_*
def _strided(size, stride, dtype, value=0):
    size, stride = tuple(size), tuple(stride)
    if len(size) != len(stride):
        raise RuntimeError(f"dimensionality of sizes ({len(size)}) must match dimensionality of strides "
                           f"({len(stride)})")
    if any(s < 0 for s in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    for n in size:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(size)}")
    length = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride))
    if geometry.is_dense(size, stride) and not geometry.overlaps(size, stride) and 0 not in size:
        return Tensor._make(value_of(np.zeros(size, dtype.numpy)), dtype, stride)
    return from_array(np.zeros(length, dtype.numpy), dtype).as_strided(size, stride)


@composite(f"empty_strided(int[] size, int[] stride, {_OPTIONS}) -> Tensor", forms="function")
def empty_strided(size, stride, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """Memory with the given size and strides. Source: PyTorch, torch.empty_strided."""
    return finish(_strided(size, stride, dtype or dtypes.get_default_dtype()), device, requires_grad, layout)


@composite(f"empty_permuted(int[] size, int[] physical_layout, {_OPTIONS}) -> Tensor", forms="function")
def empty_permuted(size, physical_layout, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """Dense memory whose dimensions lie in the given order. Source: PyTorch, torch.empty_permuted."""
    if len(size) != len(physical_layout):
        raise RuntimeError("Number of dimensions in size does not match the length of the physical_layout; i.e. "
                           f"len(size) = {len(size)} is not equal to len(physical_layout) = {len(physical_layout)}")
    if sorted(physical_layout) != list(range(len(size))):
        if any(not 0 <= d < len(size) for d in physical_layout):
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got "
                               f"{next(d for d in physical_layout if not 0 <= d < len(size))})")
        raise RuntimeError("Duplicate dim not allowed")
    made = _strided(size, geometry.permuted_stride(size, physical_layout), dtype or dtypes.get_default_dtype())
    return finish(made, device, requires_grad, layout)


@composite(f"scalar_tensor(Scalar s, {_OPTIONS}) -> Tensor", forms="function")
def scalar_tensor(s, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """A number as a zero-dim tensor, floating point by default. Source: PyTorch, torch.scalar_tensor."""
    made = _filled((), s,
                   dtype
                   or (dtypes.get_default_complex_dtype() if isinstance(s, complex) else dtypes.get_default_dtype()))
    return finish(made, device, requires_grad, layout)


def _new(name, value):
    @composite(f"{name}(Tensor self, int[] size, {_OPTIONS}) -> Tensor", forms="method")
    def body(self, size, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
        return finish(_filled(size, value, dtype or self._dtype), device or self.device, requires_grad, layout)

    body.__doc__ = f"A new tensor of this one's dtype and device. Source: PyTorch, Tensor.{name}."


_new("new_zeros", 0)
_new("new_ones", 1)
_new("new_empty", 0)


@composite(f"new_full(Tensor self, int[] size, Scalar fill_value, {_OPTIONS}) -> Tensor", forms="method")
def new_full(self, size, fill_value, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """A constant of this tensor's dtype and device. Source: PyTorch, Tensor.new_full."""
    return finish(_filled(size, fill_value, dtype or self._dtype), device or self.device, requires_grad, layout)


@composite(f"new_empty_strided(Tensor self, int[] size, int[] stride, {_OPTIONS}) -> Tensor", forms="method")
def new_empty_strided(self, size, stride, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """Memory of this tensor's dtype with the given size and strides. Source: PyTorch, Tensor.new_empty_strided."""
    return finish(_strided(size, stride, dtype or self._dtype), device or self.device, requires_grad, layout)


def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """A copy of `data` in this tensor's dtype and device. Source: PyTorch, Tensor.new_tensor."""
    if isinstance(data, Tensor):
        warnings.warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                      "sourceTensor.detach().clone().requires_grad_(True), rather than "
                      "tensor.new_tensor(sourceTensor).",
                      UserWarning, stacklevel=2)
    made = from_data(data, dtype or self._dtype)
    return finish(made, self.device if device is None else Device(device), requires_grad)


METHODS["new_tensor"] = new_tensor


# ------------------------------------------------------------------------------------------------ windows
def _cosines(length, coefficients, periodic):
    """Sum of cosines over one period (or up to its last point), in float64."""
    span = length if periodic else length - 1
    at = 2 * np.pi * np.arange(length) / max(span, 1)
    return sum((-1) ** k * a * np.cos(k * at) for k, a in enumerate(coefficients))


def _window(name, length, make, dtype, device, requires_grad, layout):
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    dtype = dtype or dtypes.get_default_dtype()
    if not dtype.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: TensorOptions(dtype={dtype.type_name}, device=cpu, "
                           "layout=Strided (default), requires_grad=false (default), pinned_memory=false, "
                           "memory_format=(nullopt))")
    array = np.ones(length) if length <= 1 else make(length)
    return finish(from_array(np.asarray(array).astype(dtype.numpy), dtype), device, requires_grad, layout)


def _cosine_window(name, extra, coefficients):
    @composite(f"{name}(int window_length, bool periodic=True{extra}, {_OPTIONS}) -> Tensor", forms="function")
    def body(window_length, periodic, *rest):
        *shape, dtype, layout, device, _, requires_grad = rest
        return _window(name, window_length, lambda n: _cosines(n, coefficients(*shape), periodic), dtype, device,
                       requires_grad,
                       layout)

    body.__doc__ = f"A window of raised cosines. Source: PyTorch, torch.{name}."


_cosine_window("hann_window", "", lambda: (0.5, 0.5))
_cosine_window("hamming_window", ", float alpha=0.54, float beta=0.46", lambda alpha=0.54, beta=0.46: (alpha, beta))
_cosine_window("blackman_window", "", lambda: (0.42, 0.5, 0.08))


@composite(f"bartlett_window(int window_length, bool periodic=True, {_OPTIONS}) -> Tensor", forms="function")
def bartlett_window(window_length, periodic=True, dtype=None, layout=None, device=None, pin_memory=None,
                    requires_grad=False):
    """A triangle. Source: PyTorch, torch.bartlett_window."""
    return _window("bartlett_window", window_length,
                   lambda n: 1 - np.abs(2 * np.arange(n) / (n if periodic else n - 1) - 1), dtype, device,
                   requires_grad, layout)


@composite(f"kaiser_window(int window_length, bool periodic=True, float beta=12.0, {_OPTIONS}) -> Tensor",
           forms="function")
def kaiser_window(window_length, periodic=True, beta=12.0, dtype=None, layout=None, device=None, pin_memory=None,
                  requires_grad=False):
    """A window of modified Bessel functions. Source: PyTorch, torch.kaiser_window."""
    from scipy import special

    def make(n):
        at = 2 * np.arange(n) / (n if periodic else n - 1) - 1
        return special.i0(beta * np.sqrt(np.maximum(0, 1 - at * at))) / special.i0(beta)

    return _window("kaiser_window", window_length, make, dtype, device, requires_grad, layout)
