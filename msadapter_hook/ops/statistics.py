"""Variance, quantiles, histograms, counts and covariance."""

import math
import warnings

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import Value, value_of
from msadapter_hook.tensor import Tensor, dtypes

from .binding import RETURN_TYPES, return_type
from .promotion import is_integral
from .reduction import axes_of, axis_of
from .refusals import not_implemented
from .registry import composite, operator
from .tables import PATH, call

ALL = "function method out"


# ------------------------------------------------------------------------------------------------ variance
def _variance(name, self, dim, correction, keepdim):
    if is_integral(self):
        raise RuntimeError(f"{'std and var' if name in ('std', 'var') else name} only support floating point and complex dtypes")
    axes = axes_of(self, dim)
    correction = 1 if correction is None else correction
    count = math.prod(self.shape[i] for i in axes)
    if count - correction <= 0 and self.ndim >= 0:
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input "
            "numel divided by output numel).",
            UserWarning,
            stacklevel=5,
        )
    if isinstance(correction, float) and correction.is_integer():
        correction = int(correction)
    return prims.var(self, axes=axes, keepdims=keepdim, correction=correction), axes


def _unbiased(unbiased):
    return 1 if unbiased else 0


def _declare_variance(name, finish, returns):
    saves = "self result" if name == "std" else "self"

    def whole(self, unbiased=True):
        return finish(self, *_variance(name, self, None, _unbiased(unbiased), False), False)

    def along(self, dim, unbiased=True, keepdim=False):
        return finish(self, *_variance(name, self, dim, _unbiased(unbiased), keepdim), keepdim)

    def corrected(self, dim=None, correction=None, keepdim=False):
        return finish(self, *_variance(name, self, dim, correction, keepdim), keepdim)

    for body in (whole, along, corrected):
        body.__doc__ = f"{name.replace('_', ' and ')} of all elements or over dimensions. Source: PyTorch, torch.{name}."
    forms = ALL if returns == "Tensor" else "function"
    options = {
        "forms": forms,
        "saves": saves if returns == "Tensor" else "self",
        "grad_name": f"{name.title().replace('_', '')}Backward0",
    }
    operator(
        f"{name}.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> {returns}", **options
    )(corrected)
    operator(f"{name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> {returns}", **options)(along)
    operator(f"{name}(Tensor self, bool unbiased=True) -> {returns}", **options)(whole)


def _with_mean(take):
    def finish(self, variance, axes, keepdim):
        return take(variance), prims.mean(self, axes=axes, keepdims=keepdim)

    return finish


_declare_variance("var", lambda self, v, axes, keepdim: v, "Tensor")
_declare_variance("std", lambda self, v, axes, keepdim: prims.safe_root(v), "Tensor")
_declare_variance("var_mean", _with_mean(lambda v: v), "(Tensor, Tensor)")
_declare_variance("std_mean", _with_mean(prims.safe_root), "(Tensor, Tensor)")


# ------------------------------------------------------------------------------------------------ quantiles
_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _check_quantile(name, self, q, interpolation):
    if not self.numel():
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if self._dtype not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if isinstance(q, Tensor):
        if q.dim() > 1:
            raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
        if q._dtype is not self._dtype:
            raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
        with_range = q.numel() and bool(((q.detach() < 0) | (q.detach() > 1)).any())
        if with_range:
            raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    elif not 0 <= q <= 1:
        raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )


def _quantile(name, self, q, dim, keepdim, interpolation, skip_nan):
    _check_quantile(name, self, q, interpolation)
    q = q if isinstance(q, Tensor) else call("full", (), q, dtype=self._dtype)
    if dim is None:
        rows, axis = self.flatten(), 0
        shape = (1,) * self.dim() if keepdim else ()
    else:
        axis = axis_of(self.value, dim) if self.dim() else 0
        rows = self if self.dim() else self.reshape(1)
        shape = (
            tuple(1 if i == axis else n for i, n in enumerate(self._size))
            if keepdim
            else tuple(n for i, n in enumerate(self._size) if i != axis)
        )
    rows = rows.movedim(axis, -1).sort(-1)[0] if rows.dim() > 1 else rows.sort(-1)[0]
    lead = tuple(rows._size[:-1])
    flat_q = q.reshape(-1)
    missing = rows.isnan()
    if skip_nan:
        last = (~missing).sum(-1, keepdim=True) - 1
        ranks = flat_q * last.to(self._dtype)
        ranks = ranks.clamp(min=0) if bool((last < 0).any()) else ranks
    else:
        last = rows._size[-1] - 1
        ranks = (flat_q * last).expand(lead + (flat_q._size[0],))
        ranks = ranks.masked_fill(missing.any(-1, keepdim=True), last)
    if interpolation == "lower":
        ranks = ranks.floor()
    elif interpolation == "higher":
        ranks = ranks.ceil()
    elif interpolation == "nearest":
        ranks = ranks.round()
    below = ranks.detach().to(dtypes.int64)
    values = rows.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        weight = call("full_like", ranks, 0.5) if interpolation == "midpoint" else ranks - below
        above = ranks.detach().ceil().to(dtypes.int64)
        values = values.lerp(rows.gather(-1, above), weight)
    made = values.movedim(-1, 0).reshape((flat_q._size[0],) + shape) if q.dim() else values.reshape(shape)
    # PyTorch shapes the result in place, which shows in the version counter.
    made._history.version.count += (interpolation in ("linear", "midpoint")) + (3 if q.dim() else 1)
    return made


def _declare_quantile(name, skip_nan):
    def body(self, q, dim=None, keepdim=False, interpolation="linear"):
        return _quantile(name, self, q, dim, keepdim, interpolation, skip_nan)

    body.__doc__ = f"Quantiles of all elements or along a dimension. Source: PyTorch, torch.{name}."
    composite(
        f'{name}(Tensor self, Operand q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor', forms=ALL
    )(body)


_declare_quantile("quantile", False)
_declare_quantile("nanquantile", True)


# ------------------------------------------------------------------------------------------------ histograms and counts
def _edges(low, high, bins, dtype):
    return np.linspace(low, high, bins + 1).astype(dtype)


def _range_of(array, low, high, name):
    if low == high and array.size:
        low, high = float(array.min()), float(array.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"{name}: range of [{low:g}, {high:g}] is not finite")
    if low == high:
        low, high = low - 1, high + 1
    return low, high


def _counted(array, edges, weight):
    """How much falls between neighbouring edges; the last bin takes its right edge."""
    flat = array.reshape(-1)
    place = np.searchsorted(edges, flat, "right") - 1
    place = np.where(flat == edges[-1], len(edges) - 2, place)
    inside = (flat >= edges[0]) & (flat <= edges[-1])
    weights = None if weight is None else weight.reshape(-1)[inside]
    return np.bincount(place[inside], weights, len(edges) - 1).astype(edges.dtype)


def _evenly_counted(array, low, high, bins):
    flat = array.reshape(-1)
    flat = flat[(flat >= low) & (flat <= high)]
    place = (
        ((flat - low) * (bins / (high - low))).astype(np.int64)
        if flat.dtype == np.float64
        else ((flat - flat.dtype.type(low)) / flat.dtype.type(high - low) * bins).astype(np.int64)
    )
    place = np.minimum(place, bins - 1)
    edges = _edges(low, high, bins, flat.dtype)
    place = np.where(flat < edges[place], place - 1, place)  # rounding may have put it one bin off
    place = np.where((place + 1 < bins) & (flat >= edges[np.minimum(place + 1, bins)]), place + 1, place)
    return np.bincount(place, minlength=bins)


@operator("histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", forms=ALL)
def histc(self, bins=100, min=0, max=0):
    """How many elements fall into equal bins; the dtype of the input. Source: PyTorch, torch.histc."""
    if self.dtype.name not in ("float32", "float64", "float16", "bfloat16"):
        raise not_implemented("histogram_cpu", self)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if min > max:
        raise RuntimeError("torch.histc: max must be larger than min")
    array = self.numpy if self.dtype.itemsize >= 4 else self.numpy.astype(np.float32)
    low, high = _range_of(array, min, max, "torch.histc")
    return value_of(_evenly_counted(array, low, high, bins).astype(self.dtype))


def _histogram(self, bins, range, weight, density):
    if self.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise not_implemented("histogram_cpu", self)
    array = self.numpy
    if weight is not None and weight.shape != self.shape:
        raise RuntimeError(
            "torch.histogramdd(): if weight tensor is provided it should have the same shape as the input tensor "
            f"excluding its innermost dimension, but got input with shape {list(self.shape)} and weight with shape "
            f"{list(weight.shape)}"
        )
    if isinstance(bins, Value):
        edges = bins.numpy
    else:
        if bins <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
        low, high = range if range is not None else (0.0, 0.0) if not array.size else (float(array.min()), float(array.max()))
        if low > high:
            raise RuntimeError(f"torch.histogram(): min should not exceed max, but got min {low:g} max {high:g} for dimension 0")
        if low == high:
            low, high = (low - 0.5, high + 0.5) if array.size or range is not None else (0.0, 1.0)
        edges = _edges(low, high, bins, array.dtype)
    hist = _counted(array, edges, None if weight is None else weight.numpy)
    if density:
        hist = hist / (hist.sum() * np.diff(edges))
    return value_of(hist.astype(array.dtype)), value_of(edges)


@operator(
    "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> "
    "(Tensor hist, Tensor bin_edges)",
    forms=ALL,
)
@operator(
    "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> "
    "(Tensor hist, Tensor bin_edges)",
    forms=ALL,
)
def histogram(self, bins, *rest):
    """How much falls into equal or given bins, and the edges. Source: PyTorch, torch.histogram."""
    range, weight, density = rest if len(rest) == 3 else (None, *rest)
    return _histogram(self, bins, range, weight, density)


RETURN_TYPES.setdefault("histogramdd", return_type("histogramdd", ("hist", "bin_edges")))


@composite(
    "histogramdd(Tensor self, any bins, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor",
    forms="function method",
)
def histogramdd(self, bins, range=None, weight=None, density=False):
    """A histogram of points (..., D) over D dimensions, and the edges. Source: PyTorch, torch.histogramdd."""
    if self.dim() < 2:
        raise RuntimeError(f"torch.histogramdd(): input tensor should have at least 2 dimensions, but got {self.dim()}")
    n = self._size[-1]
    points = self.detach().value.numpy.reshape(-1, n)
    bins = [bins] * n if isinstance(bins, int) else list(bins)
    if len(bins) != n:
        raise RuntimeError("torch.histogramdd(): expected " + str(n) + f" dimensions in bins, but got {len(bins)}")
    edges = []
    for d, b in enumerate(bins):
        if isinstance(b, Tensor):
            edges.append(b.detach().value.numpy)
            continue
        low, high = (
            range[2 * d : 2 * d + 2]
            if range is not None
            else ((float(points[:, d].min()), float(points[:, d].max())) if len(points) else (0.0, 1.0))
        )
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges.append(_edges(low, high, b, points.dtype))
    counts = np.zeros([len(e) - 1 for e in edges], points.dtype)
    place, inside = [], np.ones(len(points), bool)
    for d, e in enumerate(edges):
        at = np.searchsorted(e, points[:, d], "right") - 1
        place.append(np.where(points[:, d] == e[-1], len(e) - 2, at))
        inside &= (points[:, d] >= e[0]) & (points[:, d] <= e[-1])
    weights = 1 if weight is None else weight.detach().value.numpy.reshape(-1)[inside]
    np.add.at(counts, tuple(p[inside] for p in place), weights)
    if density:
        volume = np.ones(())
        for d, e in enumerate(edges):
            volume = volume * np.diff(e).reshape([-1 if i == d else 1 for i in np.arange(n)])
        counts = counts / (counts.sum() * volume)
    wrap = lambda array: Tensor._make(value_of(np.ascontiguousarray(array)))  # noqa: E731
    return RETURN_TYPES["histogramdd"](wrap(counts.astype(points.dtype)), tuple(wrap(e.copy()) for e in edges))


@operator("bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor", forms="function method")
def bincount(self, weights=None, minlength=0):
    """How often each non-negative integer occurs; with weights, their sums. Source: PyTorch, torch.bincount."""
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if self.dtype.kind not in "iu":
        raise not_implemented("bincount_cpu", self)
    if self.ndim == 1 and not self.size:
        return value_of(np.zeros(minlength, np.int64))
    if self.ndim != 1 or (self.numpy < 0).any():
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.shape != self.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    counted = np.bincount(self.numpy, None if weights is None else weights.numpy, minlength)
    if weights is None:
        return value_of(counted.astype(np.int64))
    return value_of(counted.astype(np.float32 if weights.dtype == np.float32 else np.float64))


# ------------------------------------------------------------------------------------------------ covariance
@composite("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor")
def cov(self, correction=1, fweights=None, aweights=None):
    """Covariance of variables in rows. Source: PyTorch, torch.cov."""
    if self.dim() > 2:
        raise RuntimeError(f"cov(): expected input to have two or fewer dimensions but got an input with {self.dim()} dimensions")
    if self._dtype is dtypes.bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    data = self if self._dtype.is_floating_point or self._dtype.is_complex else self.to(dtypes.get_default_dtype())
    rows = data.reshape(1, -1) if data.dim() < 2 else data
    count = rows._size[1]
    weight = _weights(fweights, aweights, count)
    if weight is None:
        norm = count - correction
        centered = rows - (rows.mean(1, keepdim=True) if count else rows.sum(1, keepdim=True))
        weighted = centered
    else:
        total = weight.sum()
        mean = (rows * weight).sum(1, keepdim=True) / total
        centered = rows - mean
        weighted = centered * weight
        if aweights is not None and correction:
            norm = total - correction * (weight * aweights).sum() / total
        else:
            norm = total - correction
    factor = norm.clamp(min=0) if isinstance(norm, Tensor) else max(norm, 0)
    if bool(factor <= 0):
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            UserWarning,
            stacklevel=3,
        )
    made = weighted @ centered.t().conj() / factor
    return made.squeeze()


def _weights(frequencies, importances, count):
    weight = None
    if frequencies is not None:
        if frequencies.dim() > 1:
            raise RuntimeError(
                f"cov(): expected fweights to have one or fewer dimensions but got fweights with {frequencies.dim()} dimensions"
            )
        if frequencies._dtype.is_floating_point or frequencies._dtype.is_complex or frequencies._dtype is dtypes.bool_:
            raise RuntimeError(
                f"cov(): expected fweights to have integral dtype but got fweights with {frequencies._dtype.scalar_name} dtype"
            )
        if frequencies.numel() != count:
            raise RuntimeError(
                f"cov(): expected fweights to have the same numel as there are observations in the input but got "
                f"{frequencies.numel()} != {count}"
            )
        if bool((frequencies < 0).any()):
            raise RuntimeError("cov(): fweights cannot be negative")
        weight = frequencies
    if importances is not None:
        if importances.dim() > 1:
            raise RuntimeError(
                f"cov(): expected aweights to have one or fewer dimensions but got aweights with {importances.dim()} dimensions"
            )
        if not importances._dtype.is_floating_point:
            raise RuntimeError(
                f"cov(): expected aweights to have floating point dtype but got aweights with "
                f"{importances._dtype.scalar_name} dtype"
            )
        if importances.numel() != count:
            raise RuntimeError(
                f"cov(): expected aweights to have the same numel as there are observations in the input but got "
                f"{importances.numel()} != {count}"
            )
        if bool((importances < 0).any()):
            raise RuntimeError("cov(): aweights cannot be negative")
        weight = importances if weight is None else weight * importances
    if weight is not None and bool(weight.sum() == 0):
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    return weight


@composite("corrcoef(Tensor self) -> Tensor")
def corrcoef(self):
    """Correlation coefficients of variables in rows. Source: PyTorch, torch.corrcoef."""
    if self.dim() > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {self.dim()} dimensions"
        )
    c = cov(self)
    if not c.dim():
        return c / c
    d = c.diagonal()
    spread = (d.real if d._dtype.is_complex else d).sqrt()
    c = c / spread.unsqueeze(1) / spread.unsqueeze(0)
    if c._dtype.is_complex:
        return call("complex", c.real.clamp(-1, 1), c.imag.clamp(-1, 1))
    return c.clamp(-1, 1)

for _name in ("histc", "histogram", "histogramdd", "bincount"):
    PATH[_name] = "host"
