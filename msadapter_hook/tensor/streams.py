"""The streams of PyTorch's CPU generator as NumPy arrays: what each random operator draws, in its order and bit for bit
(for float64 normals and logarithms up to the last place). Samplers by rejection are in samplers.py."""

import math

import numpy as np

from msadapter_hook.tensor import dtype as dt
from msadapter_hook.tensor import lanes
from msadapter_hook.tensor.normal import box_muller_double, box_muller_float

F32, F64 = np.float32, np.float64
_MASK24, _MASK53 = 0xFFFFFF, (1 << 53) - 1
# C++'s names, as they stand in the errors about bounds
_CPP = {
    dt.uint8: "unsigned char", dt.int8: "signed char", dt.int16: "short", dt.int32: "int", dt.int64: "int64_t",
    dt.bool_: "bool", dt.uint16: "unsigned short", dt.uint32: "unsigned int", dt.uint64: "uint64_t",
    dt.float16: "c10::Half", dt.bfloat16: "c10::BFloat16", dt.float32: "float", dt.float64: "double",
}
# The integers up to which a floating type holds every integer
_DIGITS = {dt.float16: 11, dt.bfloat16: 8, dt.float32: 24, dt.float64: 53}


def _narrow(values, t):
    """float64 as the type of a tensor; the low types by way of float32, as C++ converts them."""
    with np.errstate(over="ignore"):  # what is too large is infinite, without a warning
        return values.astype(t.numpy) if t in (dt.float32, dt.float64) else values.astype(F32).astype(t.numpy)


def _no_kernel(name, t):
    return NotImplementedError(f"\"{name}\" not implemented for '{t.scalar_name}'")


# ---------------------------------------------------------------- uniform


def _uniform24(g, n):
    """`n` float32 of 24 bits."""
    if n == 1:
        return np.array([(g.draw() & _MASK24) * 2.0**-24], F32)
    raw = g.draws(n)
    raw &= raw.dtype.type(_MASK24)
    out = raw.astype(F32)
    out *= F32(2.0**-24)
    return out


def _uniform53(g, n):
    """`n` float64 of 53 bits."""
    if n == 1:
        return np.array([g.draw53()])
    raw = g.draws64(n)
    raw &= np.uint64(_MASK53)
    out = raw.astype(F64)
    out *= 2.0**-53
    return out


def rand(g, n, dtype=dt.float32):
    """`n` uniforms in [0, 1): float64 of 53 bits, others the float32 stream rounded; complex: two of its parts each.

    Source: PyTorch, torch.rand."""
    if dtype is dt.float32:
        return _uniform24(g, n)
    if dtype is dt.float64:
        return _uniform53(g, n)
    if dtype.is_complex:
        return _as_complex(rand(g, 2 * n, dtype.to_real()), dtype)
    if dtype.category != dt.FLOATING or dtype in dt.FLOAT8:
        raise _no_kernel("check_uniform_bounds", dtype)
    return _wrap_top(_uniform24(g, n).astype(dtype.numpy), 0.0, 1.0)


def _wrap_top(values, low, high):
    """The interval is open above: what rounding brought to `high` becomes `low`. In place."""
    values[values == values.dtype.type(high)] = low
    return values


def _as_complex(parts, dtype):
    """Pairs of real parts as complex numbers of `dtype` (complex32 is kept in complex64)."""
    if dtype is dt.complex32:
        parts = parts.astype(F32)
    return parts.view(dtype.numpy)


def uniform(g, n, low=0.0, high=1.0, dtype=dt.float32):
    """`n` uniforms in [low, high). RuntimeError for bad bounds. Source: PyTorch, Tensor.uniform_."""
    low, high = float(low), float(high)
    if dtype.is_complex:
        return _as_complex(uniform(g, 2 * n, low, high, dtype.to_real()), dtype)
    if dtype.category != dt.FLOATING or dtype in dt.FLOAT8:
        raise _no_kernel("check_uniform_bounds", dtype)
    if not low <= high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if high - low > dt.finfo(dtype).max:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{dtype.scalar_name}>::max(), but found to={high:g} and "
            f"from={low:g} which result in to-from to exceed the limit"
        )
    if dtype is dt.float64:
        u = _uniform53(g, n)
        if high - low > 2.0**900:  # the exact product would overflow on its way; powers of two scale exactly
            return _wrap_top(_fma64(u, (high - low) * 2.0**-100, low * 2.0**-100) * 2.0**100, low, high)
        return u if (low, high) == (0.0, 1.0) else _wrap_top(_fma64(u, high - low, low), low, high)
    u = _uniform24(g, n)
    if (low, high) != (0.0, 1.0):
        # u * (high - low) + low rounded once, in float32; the bounds are not rounded to a lower type.
        a, b = F32(low), F32(high)
        u = (u.astype(F64) * float(b - a) + float(a)).astype(F32)
    return _wrap_top(u if dtype is dt.float32 else u.astype(dtype.numpy), low, high)


def _split(x):
    """Veltkamp's split of float64 into two halves of 26 bits."""
    t = 134217729.0 * x
    high = t - (t - x)
    return high, x - high


def _fma64(x, scale, shift):
    """x * scale + shift with one rounding (up to exact ties), for moderate magnitudes."""
    product = x * scale
    xh, xl = _split(x)
    sh, sl = _split(scale)
    lost = ((xh * sh - product) + xh * sl + xl * sh) + xl * sl
    total = product + shift
    part = total - product
    return total + (((product - (total - part)) + (shift - part)) + lost)


# ---------------------------------------------------------------- normal


def scalar_normal(g):
    """One standard normal of the scalar path (Box-Muller in double); its partner is kept in the generator."""
    cached = g.cached_normal
    if cached is not None:
        g.cached_normal = None
        return cached
    angle = 2.0 * math.pi * g.draw53()
    radius = math.sqrt(-2.0 * math.log1p(-g.draw53()))
    g.cached_normal = radius * math.sin(angle)
    return radius * math.cos(angle)


def _scalar_normals(g, n):
    """`n` values of the scalar path, as float64."""
    if n < 64:
        return np.array([scalar_normal(g) for _ in range(n)], F64)
    kept = [] if g.cached_normal is None else [g.cached_normal]
    g.cached_normal = None
    pairs = (n - len(kept) + 1) // 2
    u = _uniform53(g, 2 * pairs).reshape(pairs, 2)
    radius = np.sqrt(-2.0 * np.log1p(-u[:, 1]))
    angle = (2.0 * math.pi) * u[:, 0]
    out = np.concatenate([kept, np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()])
    if out.size > n:
        g.cached_normal = float(out[n])
    return out[:n]


def normal(g, n, mean=0.0, std=1.0, dtype=dt.float32, scattered=False):
    """`n` normals. From 16 on, and contiguous, they come in blocks of 16; otherwise (`scattered`: the elements do not
    lie one after the other) by the scalar path. Complex: both parts with std / sqrt(2).

    RuntimeError for a negative std. Source: PyTorch, torch.randn and Tensor.normal_."""
    mean, std = float(mean), float(std)
    if not std >= 0.0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if dtype.is_complex:
        # Both parts of each element are neighbours; the mean goes to both, as PyTorch has it.
        return _as_complex(normal(g, 2 * n, mean, std / math.sqrt(2.0), dtype.to_real(), scattered), dtype)
    if dtype.category != dt.FLOATING or dtype in dt.FLOAT8:
        raise _no_kernel("normal_kernel_cpu", dtype)
    if n < 16 or scattered:
        values = _scalar_normals(g, n)
        if (mean, std) != (0.0, 1.0):
            values = values * std + mean
        return _narrow(values, dtype)
    tail = n % 16
    if dtype is dt.float64:
        out = _uniform53(g, n)
        box_muller_double(out[: n - tail], mean, std)
        if tail:
            out[n - 16 :] = box_muller_double(_uniform53(g, 16), mean, std)
        return out
    if dtype is dt.float32:
        out = _uniform24(g, n)
    else:  # the low types draw for whole blocks only
        out = np.concatenate([_uniform24(g, n - tail), np.zeros(tail, F32)])
    box_muller_float(out[: n - tail], mean, std)
    if tail:  # the last 16 are drawn anew
        out[n - 16 :] = box_muller_float(_uniform24(g, 16), mean, std)
    return out if dtype is dt.float32 else out.astype(dtype.numpy)


def log_normal(g, n, mean=1.0, std=2.0, dtype=dt.float32):
    """exp of the scalar path's normals. RuntimeError unless std > 0. Source: PyTorch, Tensor.log_normal_."""
    if dtype.category != dt.FLOATING or dtype in dt.FLOAT8:
        raise _no_kernel("log_normal_cpu", dtype)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={float(std):g}")
    return _narrow(np.exp(_scalar_normals(g, n) * float(std) + float(mean)), dtype)


# ---------------------------------------------------------------- integers


def _bounded(g, n, low, span):
    """`n` int64 in [low, low + span), span ≤ 2**64: one word each below a span of 2**28, else two."""
    if span >= 1 << 64:
        return g.draws64(n).view(np.int64)
    if span >= 1 << 28:
        values = g.draws64(n) % np.uint64(span)
        return (values + np.uint64(low & 0xFFFFFFFFFFFFFFFF)).view(np.int64)
    if n == 1:
        return np.array([g.draw() % span + low], np.int64)
    raw = g.draws(n)
    out = (raw % raw.dtype.type(span)).astype(np.int64)
    return out + low if low else out


def randint(g, n, low, high, dtype=dt.int64):
    """`n` integers in [low, high). RuntimeError for an empty range or bounds the type cannot hold.

    Source: PyTorch, torch.randint and Tensor.random_(from, to)."""
    low, high = int(low), int(high)
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    _check_bounds(dtype, (("from", low), ("to - 1", high - 1)))
    return _bounded(g, n, low, high - low).astype(dtype.numpy, copy=False)


def _check_bounds(t, bounds):
    if t not in _CPP:
        raise _no_kernel("check_random_bounds", t)
    if t.is_floating_point:
        lowest, highest = dt.finfo(t).min, dt.finfo(t).max
    elif t is dt.bool_:
        lowest, highest = 0, 1
    else:
        info = dt.iinfo(t)
        lowest, highest = info.min, info.max
    for name, value in bounds:
        if not lowest <= value <= highest:
            raise RuntimeError(f"{name} is out of bounds for {_CPP[t]}")


def random_(g, n, dtype, low=None, high=None):
    """`n` integers: of [low, high), of [0, high), from `low` to the type's largest, or of all it holds from 0 on.

    Source: PyTorch, Tensor.random_."""
    if high is not None:
        return randint(g, n, 0 if low is None else low, high, dtype)
    if low is not None:
        low = int(low)
        _check_bounds(dtype, (("from", low),))
        if dtype.is_floating_point:
            top = 1 << _DIGITS[dtype]
        else:
            top = 1 if dtype is dt.bool_ else dt.iinfo(dtype).max
        return _bounded(g, n, low, top - low + 1).astype(dtype.numpy, copy=False)
    if dtype is dt.int64:
        return (g.draws64(n) & np.uint64((1 << 63) - 1)).view(np.int64)
    if dtype is dt.float64:
        return (g.draws64(n) % np.uint64((1 << 53) + 1)).astype(F64)
    if dtype in _DIGITS:
        span = (1 << _DIGITS[dtype]) + 1
    elif dtype is dt.bool_:
        span = 2
    elif dtype in (dt.uint8, dt.int8, dt.int16, dt.int32):
        span = dt.iinfo(dtype).max + 1
    else:
        raise _no_kernel("random_kernel_cpu", dtype)
    raw = g.draws(n)
    return (raw % raw.dtype.type(span)).astype(dtype.numpy)


def random_int64(g):
    """One value of `random_()` on an int64 tensor, as a Python int (the base seed of loaders and samplers)."""
    high = g.draw()
    return ((high << 32) | g.draw()) & ((1 << 63) - 1)


def randperm(g, n):
    """A permutation of range(n) as int64: n - 1 draws, Fisher and Yates. Source: PyTorch, torch.randperm."""
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if n < 2:
        return np.arange(n, dtype=np.int64)
    if n >= (1 << 32) // 20:
        raise NotImplementedError("torch.randperm of more than 214,748,363 elements: permute parts instead")
    if n <= 500:
        values = list(range(n))
        for i, draw in enumerate(g.draws(n - 1).tolist()):
            j = i + draw % (n - i)
            values[i], values[j] = values[j], values[i]
        return np.array(values, np.int64)
    # LAPACK's row interchanges are exactly this sequence of swaps, in compiled code; doubles hold the numbers exactly.
    from scipy.linalg.lapack import dlaswp

    rows = np.arange(n - 1, dtype=np.uint32)
    targets = (g.draws(n - 1).astype(np.uint32, copy=False) % (np.uint32(n) - rows) + rows).astype(np.int32)
    return dlaswp(np.arange(n, dtype=F64).reshape(n, 1), targets, overwrite_a=1)[:, 0].astype(np.int64)


# ---------------------------------------------------------------- yes or no, and waiting times


def bernoulli_p(g, n, p):
    """`n` truth values, true with probability `p` (53-bit uniforms). Dropout's mask is `bernoulli_p(1 - rate)`.

    Source: PyTorch, Tensor.bernoulli_(p)."""
    p = float(p)
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if n == 1:
        return np.array([g.draw53() < p])
    # u < p over the integers: the 53-bit draws need no conversion
    return (g.draws64(n) & np.uint64(_MASK53)) < np.uint64(math.ceil(p * 2.0**53))


def bernoulli_t(g, p):
    """Truth values of the shape of `p`, an array of probabilities; uniforms of its own type.

    Source: PyTorch, torch.bernoulli(input) and Tensor.bernoulli_(tensor)."""
    p = np.asarray(p)
    kind = dt.from_numpy_dtype(p.dtype)
    if kind.category != dt.FLOATING or kind in dt.FLOAT8:
        raise _no_kernel("bernoulli_tensor_cpu_p_", kind)
    wide = p if kind is dt.float64 else p.astype(F32)
    if not ((wide >= 0) & (wide <= 1)).all():
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  "
            "If so, please report an enhancement request to PyTorch.)"
        )
    u = _uniform53(g, p.size) if kind is dt.float64 else _uniform24(g, p.size)
    return u.reshape(p.shape) < wide


# The names that C++ prints for types, where they differ from those in _CPP
_CPP_LONG = {
    dt.int64: "long int", dt.int16: "short int", dt.complex64: "c10::complex<float>",
    dt.complex128: "c10::complex<double>",
}


def _require_floating(t, name, cpp=False):
    if t.category != dt.FLOATING:
        what = _CPP_LONG.get(t) or _CPP.get(t, t.scalar_name) if cpp else t.scalar_name
        raise RuntimeError(
            f"{name} distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {what}"
        )
    if t in dt.FLOAT8:
        raise _no_kernel(f"{name.lower()}_cpu", t)


def exponential(g, n, lambd=1.0, dtype=dt.float32):
    """`n` waiting times of rate `lambd`. Source: PyTorch, Tensor.exponential_."""
    _require_floating(dtype, "Exponential")
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={float(lambd):g}")
    return _narrow(np.log1p(-_uniform53(g, n)) * (-1.0 / float(lambd)), dtype)


def geometric(g, n, p, dtype=dt.float32):
    """`n` numbers of trials up to the first success. Source: PyTorch, Tensor.geometric_."""
    p = float(p)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if dtype.is_complex or dtype is dt.bool_ or dtype in dt.FLOAT8:
        raise _no_kernel("geometric_cpu", dtype)
    with np.errstate(divide="ignore"):
        values = np.ceil(np.log(_uniform53(g, n)) / math.log(1.0 - p))
    if dtype.is_floating_point:
        return values.astype(dtype.numpy)
    return values.astype(np.int64).astype(dtype.numpy)  # wraps round in the narrow types


def cauchy(g, n, median=0.0, sigma=1.0, dtype=dt.float32):
    """`n` Cauchy values. Source: PyTorch, Tensor.cauchy_."""
    _require_floating(dtype, "Cauchy", cpp=True)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={float(sigma):g}")
    return _narrow(float(median) + float(sigma) * np.tan(math.pi * (_uniform53(g, n) - 0.5)), dtype)


# ---------------------------------------------------------------- choosing by weight


def multinomial(g, weights, k, replacement=False):
    """`k` indices per row of `weights` (1 or 2 dimensions, floating), int64.

    Without replacement, or for one index: the largest of weight / Exp(1), as many draws as there are weights. Otherwise
    a 53-bit uniform each, searched in the running sum. RuntimeError for weights without a distribution.
    Source: PyTorch, torch.multinomial."""
    weights = np.asarray(weights)
    kind = dt.from_numpy_dtype(weights.dtype)
    if kind.category != dt.FLOATING:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {kind.scalar_name}")
    if weights.ndim not in (1, 2) or (weights.size == 0 and weights.shape[-1] == 0):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if k <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and k > weights.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    rows = weights.reshape(-1, weights.shape[-1])
    if not rows.size:
        return np.empty((0, k), np.int64)
    wide = rows.astype(F64)
    if not (np.isfinite(wide) & (wide >= 0)).all():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if (wide.sum(-1) == 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if replacement and k > 1:
        out = np.empty((len(rows), k), np.int64)
        for i, row in enumerate(rows):
            total = np.cumsum(row, dtype=row.dtype)
            total = (total / total[-1]).astype(F64)
            total[-1] = 1.0
            out[i] = np.searchsorted(total, _uniform53(g, k))
    else:
        waits = exponential(g, rows.size, 1.0, kind).reshape(rows.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            keys = (rows / waits).astype(F64)
        out = keys.argmax(-1)[:, None] if k == 1 else np.argsort(-keys, axis=-1, kind="stable")[:, :k]
    return out.astype(np.int64).reshape(*weights.shape[:-1], k)


# ---------------------------------------------------------------- lanes
for _name in ("rand", "uniform", "normal", "log_normal", "randint", "random_", "bernoulli_p", "exponential", "geometric",
              "cauchy"):
    globals()[_name] = lanes.split(globals()[_name])
for _name in ("randperm", "bernoulli_t", "multinomial"):
    globals()[_name] = lanes.together(globals()[_name])
