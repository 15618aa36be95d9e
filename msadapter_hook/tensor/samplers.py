"""Samplers by rejection (Poisson, gamma, Dirichlet, binomial): draw for draw as PyTorch's on CPU.
How many draws an element takes depends on what was drawn, so these walk element by element."""

import math

import numpy as np

from msadapter_hook.tensor import dtype as dt
from msadapter_hook.tensor import lanes
from msadapter_hook.tensor.streams import scalar_normal


def _kind(array, kernel, low=False):
    """The dtype of `array`; NotImplementedError unless float32 or float64 (or, if `low`, float16 or bfloat16)."""
    kind = dt.from_numpy_dtype(array.dtype)
    if kind not in (dt.float32, dt.float64) and not (low and kind in (dt.float16, dt.bfloat16)):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{kind.scalar_name}'")
    return kind


# ---------------------------------------------------------------- Poisson


def _poisson_one(g, rate):
    """A Poisson count: products of uniforms below a rate of 10, Hörmann's rejection (PTRS) from there on."""
    if rate == 0:
        return 0
    uniform = g.draw53
    if rate < 10:
        limit, count, product = math.exp(-rate), 0, 1.0
        while True:
            product *= uniform()
            if product <= limit:
                return count
            count += 1
    root, log_rate = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = uniform() - 0.5
        v = uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= v_r:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        left = math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if left <= -rate + k * log_rate - math.lgamma(k + 1):
            return k


def poisson(g, rates):
    """A count for each element of `rates` (floating), in its type. RuntimeError for a negative rate.

    Source: PyTorch, torch.poisson."""
    rates = np.asarray(rates)
    _kind(rates, "poisson_cpu", low=True)
    out = np.empty(rates.size, rates.dtype)
    for i, rate in enumerate(rates.ravel().astype(float).tolist()):
        if not rate >= 0:
            raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
        out[i] = _poisson_one(g, rate)
    return out.reshape(rates.shape)


# ---------------------------------------------------------------- gamma and Dirichlet


_THIRD = np.float32(1.0 / 3.0)  # PyTorch keeps this constant in single precision; it shows in the 9th digit


def _gamma_one(g, alpha, real):
    """A gamma value of rate 1: Marsaglia and Tsang, with the boost for a shape below one.

    What depends on the shape alone is computed in the type `real`, the rest in double."""
    scale = 1.0
    if alpha < 1.0:
        if alpha == 0.0:
            return 0.0
        scale = math.pow(1.0 - g.draw53(), float(real(1.0) / real(alpha)))
        alpha += 1.0
    d = float(real(alpha) - real(_THIRD))
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        while True:
            x = scalar_normal(g)
            y = 1.0 + c * x
            if y > 0:
                break
        v = y * y * y
        u = 1.0 - g.draw53()
        xx = x * x
        if u < 1.0 - 0.0331 * xx * xx or math.log(u) < 0.5 * xx + d * (1.0 - v + math.log(v)):
            return scale * d * v


def _gammas(g, alpha, real=np.float64):
    """Gamma values in float64. A shape that is not positive has no distribution and gives 0, with nothing drawn."""
    shapes = alpha.ravel().astype(float).tolist()
    return np.array([_gamma_one(g, a, real) if a > 0 else 0.0 for a in shapes], np.float64)


def standard_gamma(g, alpha):
    """A gamma value for each shape parameter in `alpha`, in its type, at least the smallest normal number.

    Source: PyTorch, torch._standard_gamma."""
    alpha = np.asarray(alpha)
    kind = _kind(alpha, "gamma_cpu")
    values = _gammas(g, alpha, alpha.dtype.type).reshape(alpha.shape)
    return np.maximum(values, dt.finfo(kind).tiny).astype(alpha.dtype)


def sample_dirichlet(g, alpha):
    """A point of the simplex for each row (last dimension) of `alpha`, in its type.

    Source: PyTorch, torch._sample_dirichlet."""
    alpha = np.asarray(alpha)
    kind = _kind(alpha, "dirichlet")
    info = dt.finfo(kind)
    values = np.maximum(_gammas(g, alpha).reshape(alpha.shape), np.finfo(np.float64).tiny)
    ratio = values / values.sum(-1, keepdims=True)
    largest = 1.0 - info.eps / 2
    return np.minimum(np.maximum(ratio, info.tiny), largest).astype(alpha.dtype)


# ---------------------------------------------------------------- binomial

# ln k! less Stirling's formula, for k = 0 … 9
_TAILS = [
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
]


def _stirling_tail(k):
    if k <= 9:
        return _TAILS[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


def _binomial_inversion(g, count, p):
    """Sum geometric waiting times until they exceed `count`; for few expected successes."""
    log_miss = math.log1p(-p)
    total, successes = 0.0, 0
    while True:
        u = g.draw53()
        if u == 0.0:
            return successes
        total += math.ceil(math.log(u) / log_miss)
        if total > count:
            return successes
        successes += 1


def _binomial_rejection(g, count, p):
    """Hörmann's transformed rejection with squeeze (BTRS), p ≤ 1/2 and count × p ≥ 10."""
    deviation = math.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = count * p + 0.5
    v_r = 0.92 - 4.2 / b
    r = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = math.floor((count + 1) * p)
    while True:
        u = g.draw53() - 0.5
        v = g.draw53()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + c)
        if us >= 0.07 and v <= v_r:
            return k
        if k < 0 or k > count:
            continue
        v = math.log(v * alpha / (a / (us * us) + b))
        bound = (
            (m + 0.5) * math.log((m + 1) / (r * (count - m + 1)))
            + (count + 1) * math.log((count - m + 1) / (count - k + 1))
            + (k + 0.5) * math.log(r * (count - k + 1) / (k + 1))
            + _stirling_tail(m) + _stirling_tail(count - m) - _stirling_tail(k) - _stirling_tail(count - k)
        )
        if v <= bound:
            return k


def _binomial_one(g, count, p):
    if count <= 0.0 or p <= 0.0:
        return 0.0
    if p >= 1.0:
        return count
    if not p < 1.0:
        return math.nan
    rare, few = (p, False) if p <= 0.5 else (1.0 - p, True)
    draw = _binomial_rejection if count * rare >= 10.0 else _binomial_inversion
    successes = draw(g, count, rare)
    return count - successes if few else successes


def binomial(g, count, prob):
    """Successes among `count` trials of probability `prob` (floating arrays of one type, broadcast together).

    Source: PyTorch, torch.binomial."""
    count, prob = np.broadcast_arrays(np.asarray(count), np.asarray(prob))
    kind = dt.from_numpy_dtype(count.dtype)
    if kind.category != dt.FLOATING:
        raise ValueError(f"binomial only supports floating-point dtypes for count, got: {kind.scalar_name}")
    _kind(count, "binomial_cpu")
    pairs = zip(count.ravel().astype(float).tolist(), prob.ravel().astype(float).tolist(), strict=True)
    return np.array([_binomial_one(g, n, p) for n, p in pairs], count.dtype).reshape(count.shape)


# ---------------------------------------------------------------- lanes
for _name in ("poisson", "standard_gamma", "sample_dirichlet", "binomial"):
    globals()[_name] = lanes.together(globals()[_name])
