"""Window functions. All take a length M and, by keyword, `sym` (False: one period without its last point, for spectra),
dtype (float32 or float64), layout, device and requires_grad."""

import functools
import math

from ... import cos, empty, exp, float32, float64, get_default_dtype, i0, linspace, ones, sin, sqrt, strided, tensor

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming",
           "hann",
           "kaiser", "nuttall"]


def _window(make):
    """Checks and the two trivial lengths around `make(M, span, options, sym, **shape)`; `span` is the length of the
    period."""

    @functools.wraps(make)
    def window(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False, **shape):
        dtype = dtype or get_default_dtype()
        if M < 0:
            raise ValueError(f"{make.__name__} requires non-negative window length, got M={M}")
        if layout is not strided:
            raise ValueError(f"{make.__name__} is implemented for strided tensors only, got: {layout}")
        if dtype not in (float32, float64):
            raise ValueError(f"{make.__name__} expects float32 or float64 dtypes, got: {dtype}")
        options = {"dtype": dtype, "device": device}
        check = getattr(make, "check", None)
        if check is not None:
            check(sym=sym, **shape)
        if M == 0:
            return empty((0,), requires_grad=requires_grad, **options)
        if M == 1:
            return ones((1,), requires_grad=requires_grad, **options)
        made = make(M, M - 1 if sym else M, options, sym, **shape)
        return made.requires_grad_() if requires_grad else made

    return window


def _ramp(start, step, M, options):
    """start, start + step, … : M numbers."""
    return linspace(start, start + (M - 1) * step, M, **options)


def _checked(**rules):
    """`rules`: argument → (test, message)."""

    def attach(make):
        def check(sym, **shape):
            for name, (test, message) in rules.items():
                if name in shape and not test(shape[name], sym):
                    raise ValueError(message.format(shape[name]))

        make.check = check
        return make

    return attach


@_window
@_checked(center=(lambda c, sym: c is None or not sym, "Center must be None for symmetric windows"),
          tau=(lambda t, sym: t > 0, "Tau must be positive, got: {} instead."))
def exponential(M, span, options, sym, *, center=None, tau=1.0):
    """exp(-|n - center| / tau). Source: PyTorch, torch.signal.windows.exponential."""
    center = span / 2.0 if center is None else center
    return exp(-_ramp(-center / tau, 1 / tau, M, options).abs())


@_window
def cosine(M, span, options, sym):
    """Half a period of the sine. Source: PyTorch, torch.signal.windows.cosine."""
    step = math.pi / (span + 1)
    return sin(_ramp(0.5 * step, step, M, options))


@_window
@_checked(std=(lambda s, sym: s > 0, "Standard deviation must be positive, got: {} instead."))
def gaussian(M, span, options, sym, *, std=1.0):
    """exp(-(n / std)² / 2) about the middle. Source: PyTorch, torch.signal.windows.gaussian."""
    step = 1 / (std * math.sqrt(2))
    return exp(-_ramp(-span / 2.0 * step, step, M, options) ** 2)


@_window
@_checked(beta=(lambda b, sym: b >= 0, "beta must be non-negative, got: {} instead."))
def kaiser(M, span, options, sym, *, beta=12.0):
    """I0(beta * sqrt(1 - x²)) / I0(beta), x from -1 to 1. Source: PyTorch, torch.signal.windows.kaiser."""
    step = 2.0 * beta / span
    at = linspace(-beta, min(beta, -beta + (M - 1) * step), M, **options)
    whole = tensor(beta, **options)
    return i0(sqrt(whole * whole - at ** 2)) / i0(whole)


@_window
@_checked(a=(lambda a, sym: len(a) > 0, "Coefficients cannot be empty"))
def _cosines(M, span, options, sym, *, a):
    at = _ramp(0, 2 * math.pi / span, M, options)
    terms = tensor([(-1) ** i * w for i, w in enumerate(a)], **options)
    order = tensor([float(i) for i in range(len(a))], **options)
    return (terms.unsqueeze(-1) * cos(order.unsqueeze(-1) * at)).sum(0)


def _named(name, a):
    """The sum of cosines with coefficients `a`, its errors under `name`."""

    def window(M, **keywords):
        try:
            return _cosines(M, a=a, **keywords)
        except ValueError as e:
            raise ValueError(str(e).replace("_cosines", name)) from None

    return window


def general_cosine(M, *, a, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """Sum of cosines with coefficients `a`, their signs alternating. Source: PyTorch,
    torch.signal.windows.general_cosine."""
    if not isinstance(a, (list, tuple)) and not hasattr(a, "__iter__"):
        raise TypeError("Coefficients must be a list/tuple")
    return _named("general_cosine", a)(M, sym=sym, dtype=dtype, layout=layout, device=device,
                                       requires_grad=requires_grad)


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """alpha - (1 - alpha) cos. Source: PyTorch, torch.signal.windows.general_hamming."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)


def hamming(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """general_hamming with 0.54. Source: PyTorch, torch.signal.windows.hamming."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """general_hamming with 0.5. Source: PyTorch, torch.signal.windows.hann."""
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device,
                           requires_grad=requires_grad)


def blackman(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """Three cosines. Source: PyTorch, torch.signal.windows.blackman."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)


def nuttall(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """Four cosines. Source: PyTorch, torch.signal.windows.nuttall."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype, layout=layout,
                          device=device,
                          requires_grad=requires_grad)


@_window
def bartlett(M, span, options, sym):
    """A triangle. Source: PyTorch, torch.signal.windows.bartlett."""
    return 1 - _ramp(-1.0, 2 / span, M, options).abs()
