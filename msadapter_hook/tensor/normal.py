"""Box-Muller over blocks of 16 uniforms (8 radii, 8 angles), in place.
In float32 it gives the very bits of PyTorch's vectorised kernel; chunks are small so that the work stays in cache."""

import math

import numpy as np

F32, F64 = np.float32, np.float64
_BLOCKS = 1024  # a chunk: 8,192 radii and as many angles, 64 KB a double buffer

# The classic single-precision approximations of Cephes (logf, sinf, cosf). PyTorch's kernel evaluates the polynomials
# with fused multiply-adds; in double a product of two floats is exact, so multiply, add and one rounding do the same.
_LOG = [F64(F32(c)) for c in (
    -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1,
    -2.4999993993e-1, 3.3333331174e-1,
)]
_LOG_FIRST = F32(7.0376836292e-2)
_LN2_HIGH, _LN2_LOW = F32(0.693359375), F32(-2.12194440e-4)
_SQRT_HALF = F32(0.707106781186547524)
_QUARTERS = [F64(F32(c)) for c in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)]
_COS = (F32(2.443315711809948e-5), F64(F32(-1.388731625493765e-3)), F64(F32(4.166664568298827e-2)))
_SIN = (F32(-1.9515295891e-4), F64(F32(8.3321608736e-3)), F64(F32(-1.6666654611e-1)))


def _horner(first, coefficients, x):
    """A polynomial in x (float64 holding floats), rounded to float32 after every fused step."""
    wide = x * F64(first)
    wide += coefficients[0]
    for c in coefficients[1:]:
        wide = wide.astype(F32).astype(F64)
        wide *= x
        wide += c
    return wide.astype(F32)


def _log(x):
    """Natural logarithm of positive normal float32."""
    bits = x.view(np.int32)
    exponent = ((bits >> 23) - 126).astype(F32)
    mantissa = ((bits & np.int32(0x007FFFFF)) | np.int32(0x3F000000)).view(F32)
    small = mantissa < _SQRT_HALF
    exponent -= small
    m = mantissa - F32(1)
    m += np.where(small, mantissa, F32(0))
    y = _horner(_LOG_FIRST, _LOG, m.astype(F64))
    z = m * m
    y *= m
    wide = y.astype(F64)
    wide *= z
    wide += exponent * _LN2_LOW
    y = wide.astype(F32)
    y -= z * F32(0.5)
    m += y
    m += exponent * _LN2_HIGH
    return m


def _sincos(x):
    """Sine and cosine of non-negative float32."""
    octant = (x * F32(1.27323954473516)).astype(np.int32)
    octant += 1
    octant &= ~1
    y = octant.astype(F64)
    for part in _QUARTERS:
        x = (y * part + x).astype(F32)
    z = x * x
    z_wide = z.astype(F64)
    c = _horner(_COS[0], _COS[1:], z_wide)
    c *= z
    wide = c.astype(F64)
    wide *= z_wide
    wide -= z * F32(0.5)
    c = wide.astype(F32)
    c += F32(1)
    s = _horner(_SIN[0], _SIN[1:], z_wide)
    s *= z
    wide = s.astype(F64)
    wide *= x
    wide += x
    s = wide.astype(F32)
    swap = (octant & 2).astype(bool)
    # The sign bit of each: bit 2 of the octant for the sine, and of the octant less two, inverted, for the cosine.
    sine = np.where(swap, c, s).view(np.int32) ^ ((octant & 4) << 29)
    cosine = np.where(swap, s, c).view(np.int32) ^ ((~(octant - 2) & 4) << 29)
    return sine.view(F32), cosine.view(F32)


def box_muller_float(u, mean=0.0, std=1.0):
    """Turn the uniforms of `u` (float32, a multiple of 16 long) into normals, in place; returns `u`."""
    blocks = u.reshape(-1, 2, 8)
    two_pi = F32(2.0 * math.pi)
    mean, std = F32(mean), F32(std)
    plain = mean == 0 and std == 1
    for start in range(0, len(blocks), _BLOCKS):
        part = blocks[start : start + _BLOCKS]
        radius = np.sqrt(F32(-2) * _log(F32(1) - part[:, 0]))
        sine, cosine = _sincos(two_pi * part[:, 1])
        cosine *= radius
        sine *= radius
        if plain:
            part[:, 0] = cosine
            part[:, 1] = sine
        else:  # one rounding
            part[:, 0] = cosine.astype(F64) * F64(std) + F64(mean)
            part[:, 1] = sine.astype(F64) * F64(std) + F64(mean)
    return u


def box_muller_double(u, mean=0.0, std=1.0):
    """The same for float64, with NumPy's logarithm, sine and cosine (right to the last place or two)."""
    blocks = u.reshape(-1, 2, 8)
    for start in range(0, len(blocks), _BLOCKS):
        part = blocks[start : start + _BLOCKS]
        radius = np.sqrt(-2.0 * np.log(1.0 - part[:, 0]))
        angle = (2.0 * math.pi) * part[:, 1]
        part[:, 0] = radius * np.cos(angle) * std + mean
        part[:, 1] = radius * np.sin(angle) * std + mean
    return u
