"""Resampling: interpolate in every mode, sampling at grid positions, affine grids."""

import math
import warnings

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import value_of
from msadapter_hook.tensor import Size

from ._contract import shaped, tied
from .promotion import dtype_of
from .registry import composite, operator, plain

# ------------------------------------------------------------------------------------------------ weights along one axis
from .tables import call

# ------------------------------------------------------------------------------------------------ weights along one axis
_kept = {}


def _scale(n, out, factor, align):
    if align:
        return (n - 1) / (out - 1) if out > 1 else 0.0
    return 1.0 / factor if factor else n / out


def _source(n, out, factor, align, dtype):
    """Where each output element falls on the input axis, in the precision of the computation."""
    wide = np.float64 if dtype == np.float64 else np.float32
    scale = wide(_scale(n, out, factor, align))
    i = np.arange(out).astype(wide)
    return scale * i if align else scale * (i + wide(0.5)) - wide(0.5)


def _nearest(n, out, factor, exact, dtype):
    scale = np.float32(_scale(n, out, factor, False))
    i = np.arange(out).astype(np.float32)
    at = (i + np.float32(0.5)) * scale if exact else i * scale
    return np.minimum(np.floor(at).astype(np.int64), n - 1)


def _scatter(n, out, taps):
    made = np.zeros((out, n))
    rows = np.arange(out)
    for index, weight in taps:
        np.add.at(made, (rows, np.clip(index, 0, n - 1)), weight)
    return made


def _linear(n, out, factor, align, dtype):
    at = np.maximum(_source(n, out, factor, align, dtype), 0)
    low = np.floor(at).astype(np.int64)
    rest = (at - low).astype(np.float64)
    return _scatter(n, out, [(low, 1 - rest), (low + 1, rest)])


def cubic_weights(t, a=-0.75):
    """The four weights of cubic convolution at the fraction t."""
    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return far(t + 1), near(t), near(1 - t), far(2 - t)


def _cubic(n, out, factor, align, dtype):
    at = _source(n, out, factor, align, dtype)
    low = np.floor(at).astype(np.int64)
    weights = cubic_weights((at - low).astype(np.float64))
    return _scatter(n, out, [(low + k - 1, w) for k, w in enumerate(weights)])


def _triangle(x):
    return np.maximum(1 - np.abs(x), 0)


def _keys(x, a=-0.5):
    x = np.abs(x)
    return np.where(x < 1, ((a + 2) * x - (a + 3)) * x * x + 1, np.where(x < 2, (((x - 5) * x + 8) * x - 4) * a, 0))


def _lanczos(x):
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


_FILTERS = {"bilinear": (_triangle, 2), "bicubic": (_keys, 4), "lanczos": (_lanczos, 6)}


def _antialiased(n, out, factor, align, mode):
    """Weights of a filter stretched by the scale, so that shrinking averages."""
    kernel, size = _FILTERS[mode]
    scale = _scale(n, out, factor, align)
    stretch = max(scale, 1.0)
    support = size * 0.5 * stretch
    made = np.zeros((out, n))
    for i in range(out):
        centre = scale * (i + 0.5)
        start, stop = max(int(centre - support + 0.5), 0), min(int(centre + support + 0.5), n)
        weights = kernel((np.arange(start, stop) - centre + 0.5) / stretch)
        made[i, start:stop] = weights / weights.sum()
    return made


def _matrix(mode, n, out, factor, align, antialias, dtype):
    key = (mode, n, out, factor, align, antialias, dtype)
    found = _kept.get(key)
    if found is None:
        if antialias:
            made = _antialiased(n, out, factor, align, mode)
        elif mode == "bicubic":
            made = _cubic(n, out, factor, align, dtype)
        else:
            made = _linear(n, out, factor, align, dtype)
        if len(_kept) > 256:
            _kept.clear()
        found = _kept[key] = value_of(made.astype(dtype))
    return found


# ------------------------------------------------------------------------------------------------ interpolate
@operator("_interpolate(Tensor self, int[] size, str mode, any factors, bool align, bool antialias) -> Tensor", forms="function",
          grad_name="UpsampleBackward0", layout="channels")
def _interpolate(self, size, mode, factors, align, antialias):
    n = len(size)
    if 0 in self.shape[1:]:
        raise RuntimeError(f"Non-empty {self.ndim}D data tensor expected but got a tensor with sizes "
                           f"{list(self.shape)}")
    if min(size) <= 0:
        axes = ("W", "HW", "DHW")[n - 1]
        given, made = (", ".join(f"{a}: {s}" for a, s in zip(axes, sizes)) for sizes in (self.shape[2:], size))
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input ({given}) output ({made})")
    name = f"upsample_{mode.replace('-', '_')}" + (f"{n}d" if mode.startswith("nearest") else "2d")
    if self.dtype.kind not in "fV" and self.dtype != np.uint8:
        raise NotImplementedError(f"\"{name}_channels_last\" not implemented for '{dtype_of(self).scalar_name}'")
    made = self
    if mode.startswith("nearest"):
        for i, (s, f) in enumerate(zip(size, factors)):
            if s != self.shape[2 + i] or f:
                index = _nearest(self.shape[2 + i], s, f, mode == "nearest-exact", self.dtype)
                have = self.shape[2 + i]
                if s % have == 0 and np.array_equal(index, np.repeat(np.arange(have), s // have)):
                    made = prims.axis_repeat(made, axis=2 + i, times=s // have)
                else:
                    made = prims.axis_take(made, value_of(index), axis=2 + i)
        return prims.copy(made) if made is self else made
    single = self.dtype.itemsize < 4
    if single:
        made = prims.cast(made, dtype=np.dtype(np.float32))
    for i in range(n - 1, -1, -1):
        if size[i] == self.shape[2 + i] and not (factors[i] and factors[i] != 1):
            continue
        matrix = _matrix(mode, self.shape[2 + i], size[i], factors[i], align, antialias, made.dtype)
        made = prims.axis_map(made, matrix, axis=2 + i)
    if self.dtype == np.uint8:
        made = value_of(np.clip(np.rint(made.numpy), 0, 255))
    if made is self:
        return prims.copy(made)
    return prims.cast(made, dtype=self.dtype) if single else made


_ANY = ("nearest", "nearest-exact", "area")
_MODES = {3: (*_ANY, "linear"), 4: (*_ANY, "bilinear", "bicubic", "lanczos"), 5: (*_ANY, "trilinear")}
_NEEDS = {"linear": 3, "bilinear": 4, "trilinear": 5}


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
                antialias=False):
    """Resize the spatial axes of (N, C, …) to `size` or by `scale_factor`.

    ValueError or NotImplementedError for arguments that do not fit. Source: PyTorch, torch.nn.functional.interpolate.
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | "
                             "bicubic | "
                             "trilinear")
    align = bool(align_corners)
    n = input.dim() - 2
    spatial = list(input.shape[2:])
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    factors = None
    if size is not None:
        if isinstance(size, (list, tuple)):
            if len(size) != n:
                raise ValueError("Input and output must have the same number of spatial dimensions, but got input "
                                 "with spatial "
                                 f"dimensions of {spatial} and output size of {size}. Please provide input tensor in "
                                 "(N, C, d1, d2, "
                                 "...,dK) format and output size in (o1, o2, ...,oK) format.")
            size = [int(s) for s in size]
        else:
            size = [int(size)] * n
        if recompute_scale_factor:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    elif scale_factor is not None:
        if isinstance(scale_factor, (list, tuple)):
            if len(scale_factor) != n:
                raise ValueError("Input and scale_factor must have the same number of spatial dimensions, but got "
                                 "input with spatial "
                                 f"dimensions of {spatial} and scale_factor of shape {scale_factor}. Please provide "
                                 "input tensor in "
                                 "(N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format.")
            factors = [float(f) for f in scale_factor]
        else:
            factors = [float(scale_factor)] * n
        size = [int(math.floor(float(s) * f)) for s, f in zip(spatial, factors)]
        if recompute_scale_factor or mode == "area":
            factors = None
    else:
        raise ValueError("either size or scale_factor should be defined")
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.dim() == 4):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D "
                         "tensor as input")
    if mode not in _MODES.get(input.dim(), ()):
        if mode in _NEEDS and input.dim() in _MODES:
            raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {_NEEDS[mode]}D input")
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | "
            "linear | bilinear | "
            f"bicubic | trilinear | lanczos | area | nearest-exact (got {mode})")
    if mode == "lanczos" and not antialias:
        raise ValueError("lanczos interpolation mode is only supported with antialias=True")
    if mode == "area":
        return call(f"nn.functional.adaptive_avg_pool{n}d", input, size)
    return call("_interpolate", input, size, mode, tuple(factors or [None] * n), align, antialias)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """As interpolate. Source: PyTorch, torch.nn.functional.upsample."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """As interpolate with nearest neighbours. Source: PyTorch, torch.nn.functional.upsample_nearest."""
    warnings.warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """As interpolate, bilinear with aligned corners. Source: PyTorch, torch.nn.functional.upsample_bilinear."""
    warnings.warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


for _f in (interpolate, upsample, upsample_nearest, upsample_bilinear):
    plain(_f, name="nn.functional." + _f.__name__)


# ------------------------------------------------------------------------------------------------ sampling at positions
def _unnormalized(g, n, align):
    return (g + 1) * ((n - 1) / 2) if align else ((g + 1) * n - 1) * 0.5


def _clipped(x, n):
    """x within [0, n - 1]; beyond it no gradient."""
    a = x.numpy
    inside = (a > 0) & (a < n - 1)
    return prims.where(value_of(inside), x, value_of(np.clip(np.nan_to_num(a, nan=0.0), 0, n - 1).astype(a.dtype)))


def _reflected(x, n, align):
    """x mirrored at both borders until it is inside."""
    low2, high2 = (0, 2 * (n - 1)) if align else (-1, 2 * n - 1)
    if low2 == high2:
        return x * 0
    start, span = low2 / 2, (high2 - low2) / 2
    a = x.numpy - start
    sign = np.where(a < 0, -1, 1).astype(a.dtype)
    folds = np.floor(np.abs(a) / span)
    even = folds % 2 == 0
    # |x - start| - folds * span, from below or from above
    rest = (x - start) * value_of(sign) - value_of((folds * span).astype(a.dtype))
    made = prims.where(value_of(even), rest + start, span - rest + start)
    return made


def _placed(x, n, padding, align):
    if padding == "border":
        return _clipped(x, n)
    if padding == "reflection":
        return _clipped(_reflected(x, n, align), n)
    return x


def _fetch(flat, places, sizes):
    """(N, C, K) elements at integer positions, one array (N, K) per axis; zeros outside."""
    inside = np.ones(places[0].shape, bool)
    index = np.zeros(places[0].shape, np.int64)
    for p, n in zip(places, sizes):
        inside &= (p >= 0) & (p < n)
        index = index * n + np.clip(p, 0, n - 1)
    shape = (index.shape[0], flat.shape[1], index.shape[1])
    got = prims.places_get(flat, value_of(np.ascontiguousarray(np.broadcast_to(index[:, None], shape))))
    if inside.all():
        return got
    return got * value_of(inside[:, None].astype(got.dtype))


def _integers(a):
    return np.nan_to_num(a, nan=-1.0, posinf=-100.0, neginf=-100.0).clip(-2**31, 2**31).astype(np.int64)


@operator("_grid_sample(Tensor input, Tensor grid, str mode, str padding_mode, bool align_corners) -> Tensor", forms="function",
          saves="input grid", grad_name="GridSampler2DBackward0")
def _grid_sample(input, grid, mode, padding_mode, align_corners):
    n = input.ndim - 2
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError("grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
                           f"{list(input.shape)} and grid with sizes {list(grid.shape)}")
    if grid.ndim != input.ndim:
        raise RuntimeError("grid_sampler(): expected grid and input to have same number of dimensions, but got input "
                           "with sizes "
                           f"{list(input.shape)} and grid with sizes {list(grid.shape)}")
    if grid.shape[-1] != n:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {n} in last dimension, but got grid with sizes "
                           f"{list(grid.shape)}")
    for i in range(2, input.ndim):
        if input.shape[i] == 0:
            raise RuntimeError("grid_sampler(): expected input to have non-empty spatial dimensions, but input has "
                               "sizes "
                               f"{list(input.shape)} with dimension {i} being empty")
    if n not in (2, 3):
        raise RuntimeError(f"grid_sampler(): expected 4D or 5D input, but got input with sizes {list(input.shape)}")
    if mode == "bicubic" and n != 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if input.dtype != grid.dtype:
        raise RuntimeError(f"expected scalar type {dtype_of(input).scalar_name} but found {dtype_of(grid).scalar_name}")
    sizes = input.shape[2:]
    batch, channels, out = input.shape[0], input.shape[1], grid.shape[1:-1]
    count = math.prod(out)
    flat = shaped(input, (batch, channels, math.prod(sizes)))
    rows = shaped(grid, (batch, count, n))
    at = []
    for axis in range(n):  # the grid names the last axis first
        g = prims.strided_slice(rows, start=(0, 0, n - 1 - axis), stop=(batch, count, n - axis), step=(1, 1, 1))
        at.append(_unnormalized(shaped(g, (batch, count)), sizes[axis], align_corners))
    if mode == "bicubic":
        made = _bicubic(flat, at, sizes, padding_mode, align_corners)
    else:
        at = [_placed(x, s, padding_mode, align_corners) for x, s in zip(at, sizes)]
        if mode == "nearest":
            made = tied(_fetch(flat, [_integers(np.rint(x.numpy)) for x in at], sizes), grid)
        else:
            made = _multilinear(flat, at, sizes)
    return shaped(made, (batch, channels) + out)


def _multilinear(flat, at, sizes):
    low = [np.floor(x.numpy) for x in at]
    rest = [x - value_of(f) for x, f in zip(at, low)]
    low = [_integers(f) for f in low]
    total = None
    for corner in np.ndindex(*(2,) * len(at)):
        weight = None
        for c, r in zip(corner, rest):
            part = r if c else 1 - r
            weight = part if weight is None else weight * part
        got = _fetch(flat, [f + c for f, c in zip(low, corner)], sizes)
        term = got * shaped(weight, (weight.shape[0], 1, weight.shape[1]))
        total = term if total is None else total + term
    return total


def _bicubic(flat, at, sizes, padding, align):
    low = [np.floor(x.numpy) for x in at]
    weights = [cubic_weights(x - value_of(f)) for x, f in zip(at, low)]
    places = []
    for f, n in zip(low, sizes):
        row = [_placed(value_of(f + (k - 1)), n, padding, align).numpy for k in range(4)]
        places.append([_integers(np.rint(p)) for p in row])
    total = None
    for i in range(4):
        for j in range(4):
            got = _fetch(flat, [places[0][i], places[1][j]], sizes)
            weight = weights[0][i] * weights[1][j]
            term = got * shaped(weight, (weight.shape[0], 1, weight.shape[1]))
            total = term if total is None else total + term
    return total


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Elements of (N, C, H, W) or (N, C, D, H, W) at positions in [-1, 1]: grid (N, …, 2 or 3).

    Source: PyTorch, torch.nn.functional.grid_sample.
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError("nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but "
                         f"got: '{mode}'")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
                         "'reflection', but got: "
                         f"'{padding_mode}'")
    if align_corners is None:
        warnings.warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
                      "Please specify "
                      "align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
                      "details.",
                      stacklevel=2)
        align_corners = False
    return call("_grid_sample", input, grid, mode, padding_mode, align_corners)


plain(grid_sample, name="nn.functional.grid_sample")


def _grid_sampler(n):
    def sampler(input, grid, interpolation_mode, padding_mode, align_corners):
        modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
        return call("_grid_sample", input, grid, modes[interpolation_mode], paddings[padding_mode], align_corners)

    sampler.__name__ = sampler.__qualname__ = "grid_sampler" if n is None else f"grid_sampler_{n}d"
    sampler.__doc__ = "As nn.functional.grid_sample, with modes by number. Source: PyTorch, torch.grid_sampler."
    plain(sampler)


for _n in (None, 2, 3):
    _grid_sampler(_n)


@composite("affine_grid(Tensor theta, any size, bool? align_corners=None) -> Tensor", namespace="nn.functional", forms="function")
def affine_grid(theta, size, align_corners=None):
    """Positions for grid_sample from matrices (N, 2, 3) or (N, 3, 4).

    Source: PyTorch, torch.nn.functional.affine_grid.
    """
    if align_corners is None:
        warnings.warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
                      "Please specify "
                      "align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
                      "details.",
                      stacklevel=6)
        align_corners = False
    if not theta.dtype.is_floating_point:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    size = Size(size)
    if len(size) not in (4, 5):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
                                  "respectively. Got size "
                                  f"{tuple(size)}.")
    n = len(size) - 2
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != (n, n + 1):
        raise ValueError(f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {tuple(size)}. Got "
                         f"{Size(theta.shape)}.")
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(size)}")
    if align_corners and min(size[2:]) == 1:
        warnings.warn("Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is not an "
                      "intended use case of affine_grid. See the documentation of affine_grid for details.", stacklevel=2)
    return call("_affine_grid", theta, list(size[2:]), align_corners)


@operator("_affine_grid(Tensor theta, int[] sizes, bool align_corners) -> Tensor", forms="function", grad_name="ViewBackward0")
def _affine_grid(theta, sizes, align_corners):
    n = len(sizes)
    axes = []
    for s in sizes:
        line = np.linspace(-1, 1, s) if s > 1 else np.zeros(1)
        axes.append(line if align_corners else line * (s - 1) / s)
    mesh = np.meshgrid(*axes, indexing="ij")
    base = np.stack([*mesh[::-1], np.ones_like(mesh[0])], -1).reshape(1, -1, n + 1).astype(theta.dtype)
    rows = value_of(np.ascontiguousarray(np.broadcast_to(base, (theta.shape[0],) + base.shape[1:])))
    made = prims.matmul(rows, theta, transpose_b=True)
    return shaped(made, (theta.shape[0], *sizes, n))


plain(lambda theta, size, align_corners: affine_grid(theta, size, align_corners), name="affine_grid_generator")
