"""torch.fft: discrete Fourier transforms by pocketfft, and the short-time transform."""

import math
import warnings

import numpy as np
import scipy.fft

from msadapter_hook import prims
from msadapter_hook.tape import value_of
from msadapter_hook.tensor import dtypes, from_array
from msadapter_hook.tensor.geometry import wrap_dim

from ._contract import permuted, shaped
from .creation import _OPTIONS, finish
from .promotion import dtype_of, floating, promote
from .registry import composite, operator, warn_once
from .tables import call

FFT = {"namespace": "fft", "forms": "function out"}


# ------------------------------------------------------------------------------------------------ primitives
def _scaled(a, scale):
    if scale != 1:
        a *= a.real.dtype.type(scale)
    return a


def _c2c_host(a, *, axes, forward, scale):
    made = scipy.fft.fftn(a, axes=axes) if forward else scipy.fft.ifftn(a, axes=axes, norm="forward")
    return _scaled(made, scale)


_c2c = prims.host_call(  # the transpose of a transform is the transform the other way round
    "fft_c2c", _c2c_host, uses_output=False,
    vjp=[lambda g, out, a, *, axes, forward, scale: _c2c(g, axes=axes, forward=not forward, scale=scale)])


def _r2c_host(a, *, axis, forward, scale):
    made = scipy.fft.rfft(a, axis=axis)
    return _scaled(made if forward else np.conj(made), scale)


def _r2c_vjp(g, out, a, *, axis, forward, scale):
    n = a.shape[axis]
    full = _resized(g, axis, n)
    return prims.real(_c2c(full, axes=(axis,), forward=not forward, scale=scale))


_r2c = prims.host_call("fft_r2c", _r2c_host, uses_output=False, vjp=[_r2c_vjp])


def _c2r_host(a, *, axis, n, forward, scale):
    made = scipy.fft.irfft(np.conj(a) if forward else a, n, axis=axis, norm="forward")
    return _scaled(made, scale)


def _c2r_vjp(g, out, a, *, axis, n, forward, scale):
    made = _r2c(g, axis=axis, forward=not forward, scale=scale)
    twice = np.ones([made.shape[axis] if i == axis else 1 for i in range(made.ndim)], g.dtype)
    middle = [slice(None)] * made.ndim
    middle[axis] = slice(1, (n + 1) // 2)  # each stands for itself and its conjugate
    twice[tuple(middle)] = 2
    return made * prims.cast(value_of(twice), dtype=made.dtype)


_c2r = prims.host_call("fft_c2r", _c2r_host, uses_output=False, vjp=[_c2r_vjp])


# ------------------------------------------------------------------------------------------------ arguments
def _resized(v, axis, n):
    """The axis cut or filled up with zeros to the length n."""
    have = v.shape[axis]
    if have > n:
        stop = v.shape[:axis] + (n,) + v.shape[axis + 1:]
        return prims.strided_slice(v, start=(0,) * v.ndim, stop=stop, step=(1,) * v.ndim)
    if have < n:
        after = tuple([n - have if i == axis else 0 for i in range(v.ndim)])
        return prims.pad(v, before=(0,) * v.ndim, after=after, value=0)
    return v


def _scale(norm, count, forward):
    norm = norm or "backward"
    if norm not in ("backward", "forward", "ortho"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    if norm == "ortho":
        return 1 / math.sqrt(count)
    return 1 / count if (norm == "forward") == forward else 1.0


def _check_dtype(v):
    v = floating(v)
    if dtype_of(v).to_real().itemsize < 4:
        raise RuntimeError(f"Unsupported dtype {dtype_of(v).scalar_name}")
    return v


def _complex(v):
    v = _check_dtype(v)
    return v if v.dtype.kind == "c" else prims.cast(v, dtype=np.result_type(v.dtype, np.complex64))


def _real(v, name):
    if v.dtype.kind == "c":
        words = {"rfftn": "rfftn expects a real-valued input tensor, but got", "ihfftn": "Only supports floating-point dtypes, but found:"}
        raise RuntimeError(f"{words.get(name, f'{name} expects a real input tensor, but got')} {dtype_of(v).scalar_name}")
    return _check_dtype(v)


def _one_axis(v, dim):
    if v.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, v.ndim)


def _points(n):
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def _several(v, s, dim):
    """Axes and lengths of a transform over several dimensions."""
    if dim is not None:
        axes = tuple([wrap_dim(d, v.ndim, scalar=False) for d in dim])
        if len(set(axes)) != len(axes):
            raise RuntimeError("FFT dims must be unique")
    if s is not None:
        if dim is None:
            if len(s) > v.ndim:
                raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {v.ndim} dimensions.")
            axes = tuple(range(v.ndim - len(s), v.ndim))
        elif len(s) != len(axes):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        lengths = [v.shape[a] if n == -1 else n for a, n in zip(axes, s)]
    else:
        axes = tuple(range(v.ndim)) if dim is None else axes
        lengths = [v.shape[a] for a in axes]
    return axes, lengths


def _fitted(v, axes, lengths):
    for a, n in zip(axes, lengths):
        v = _resized(v, a, _points(n))
    return v


# ------------------------------------------------------------------------------------------------ over several dimensions
def _many_c2c(v, s, dim, norm, forward):
    v = _complex(v)
    axes, lengths = _several(v, s, dim)
    v = _fitted(v, axes, lengths)
    if not axes:
        return prims.copy(v)
    return _c2c(v, axes=axes, forward=forward, scale=_scale(norm, math.prod(lengths), forward))


def _many_r2c(v, s, dim, norm, forward, name):
    v = _real(v, name)
    axes, lengths = _several(v, s, dim)
    if not axes:
        raise RuntimeError(f"{name} must transform at least one axis")
    v = _fitted(v, axes, lengths)
    made = _r2c(v, axis=axes[-1], forward=forward, scale=_scale(norm, math.prod(lengths), forward))
    return _c2c(made, axes=axes[:-1], forward=forward, scale=1.0) if axes[1:] else made


def _many_c2r(v, s, dim, norm, forward, name):
    v = _complex(v)
    axes, lengths = _several(v, s, dim)
    if not axes:
        raise RuntimeError(f"{name} must transform at least one axis")
    if s is None or s[-1] == -1:
        lengths[-1] = 2 * (v.shape[axes[-1]] - 1)
    n = _points(lengths[-1])
    v = _fitted(v, axes, lengths[:-1] + [n // 2 + 1])
    if axes[1:]:
        v = _c2c(v, axes=axes[:-1], forward=forward, scale=1.0)
    return _c2r(v, axis=axes[-1], n=n, forward=forward, scale=_scale(norm, math.prod(lengths), forward))


# ------------------------------------------------------------------------------------------------ operators
_ONE = "(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor"
_TWO = "(Tensor self, int[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor"
_MANY = "(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor"
_KINDS = {"fft": (_many_c2c, True), "ifft": (_many_c2c, False), "rfft": (_many_r2c, True), "ihfft": (_many_r2c, False),
          "irfft": (_many_c2r, False), "hfft": (_many_c2r, True)}
_SAYS = {"fft": "Fourier transform", "ifft": "Inverse Fourier transform", "rfft": "Half of the Fourier transform of "
                                                                                  "real input",
         "irfft": "Real signal from half of its transform", "hfft": "Real transform of half of a Hermitian signal",
         "ihfft": "Half of the inverse transform of real input"}


def _declare(name, kernel, forward):
    backward = {"c2c": "FftC2CBackward0", "r2c": "FftR2CBackward0", "c2r": "FftC2RBackward0"}[kernel.__name__[-3:]]

    def run(v, s, dim, norm, label):
        return kernel(v, s, dim, norm, forward) if kernel is _many_c2c else kernel(v, s, dim, norm, forward, label)

    @operator(name + _ONE, grad_name=backward, **FFT)
    def one(self, n=None, dim=-1, norm=None):
        axis = _one_axis(self, dim)
        return run(self, None if n is None else (n,), (axis,), norm, name)

    @operator(name + "2" + _TWO, grad_name=backward, **FFT)
    def two(self, s=None, dim=(-2, -1), norm=None):
        return run(self, s, dim, norm, name + "n")

    @operator(name + "n" + _MANY, grad_name=backward, **FFT)
    def many(self, s=None, dim=None, norm=None):
        return run(self, s, dim, norm, name + "n")

    for body, suffix in ((one, ""), (two, "2"), (many, "n")):
        body.__doc__ = f"{_SAYS[name]}. Source: PyTorch, torch.fft.{name}{suffix}."


for _name, (_kernel, _forward) in _KINDS.items():
    _declare(_name, _kernel, _forward)


# ------------------------------------------------------------------------------------------------ frequencies and shifts
@composite(f"fftfreq(int n, float d=1.0, {_OPTIONS}) -> Tensor", **FFT)
def fftfreq(n, d=1.0, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """The frequencies of the elements of a transform of length n. Source: PyTorch, torch.fft.fftfreq."""
    i = np.arange(n)
    return finish(_frequency_values(np.where(i < (n + 1) // 2, i, i - n), n, d, dtype, "fftfreq"), device, requires_grad, layout)


@composite(f"rfftfreq(int n, float d=1.0, {_OPTIONS}) -> Tensor", **FFT)
def rfftfreq(n, d=1.0, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """The frequencies of the elements of a half transform of length n. Source: PyTorch, torch.fft.rfftfreq."""
    return finish(_frequency_values(np.arange(n // 2 + 1), n, d, dtype, "rfftfreq"), device, requires_grad, layout)


def _frequency_values(i, n, d, dtype, name):
    dtype = dtype or dtypes.get_default_dtype()
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    kind = dtype.numpy
    return from_array((i.astype(kind) * np.asarray(1.0 / (n * d), kind)).astype(kind), dtype)


def _shift(self, dim, sign):
    dims = tuple(range(self.dim())) if dim is None else ((dim,) if isinstance(dim, int) else tuple(dim))
    sizes = [self.size(d) for d in dims]
    return call("roll", self, [n // 2 if sign > 0 else (n + 1) // 2 for n in sizes], list(dims))


@composite("fftshift(Tensor self, int[1]? dim=None) -> Tensor", namespace="fft", forms="function")
def fftshift(self, dim=None):
    """Frequency zero in the middle. Source: PyTorch, torch.fft.fftshift."""
    return _shift(self, dim, 1)


@composite("ifftshift(Tensor self, int[1]? dim=None) -> Tensor", namespace="fft", forms="function")
def ifftshift(self, dim=None):
    """The inverse of fftshift. Source: PyTorch, torch.fft.ifftshift."""
    return _shift(self, dim, -1)


# ------------------------------------------------------------------------------------------------ short-time transform
def _kind(v):
    return {"float32": "torch.FloatTensor", "float64": "torch.DoubleTensor", "complex64": "CPUComplexFloatType",
            "complex128": "CPUComplexDoubleType"}.get(v.dtype.name, "torch.Tensor")


def _describe_window(w):
    return "None" if w is None else f"{_kind(w)}{{{list(w.shape)}}}"


def _padded_window(window, win_length, n_fft, dtype):
    """The window in the middle of n_fft; ones where none is given."""
    if window is None:
        window = value_of(np.ones(win_length, dtype))
    if win_length == n_fft:
        return window
    left = (n_fft - win_length) // 2
    return prims.pad(window, before=(left,), after=(n_fft - win_length - left,), value=0)


@operator("_stft(Tensor self, int n_fft, int hop_length, int win_length, Tensor? window, bool normalized, bool? "
          "onesided, "
          "bool return_complex) -> Tensor", forms="function", grad_name="TransposeBackward0")
def _stft(self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex):
    text = (f"stft({_kind(self)}{list(self.shape)}, n_fft={n_fft}, hop_length={hop_length}, win_length={win_length}, "
            f"window={_describe_window(window)}, normalized={int(normalized)}, onesided={onesided}, return_complex="
            f"{int(return_complex)}, align_to_window=None) ")
    if self.dtype.kind not in "fc":
        raise RuntimeError(f"{text}: expected a tensor of floating point or complex values")
    if self.ndim not in (1, 2):
        raise RuntimeError(f"{text}: expected a 1D or 2D tensor")
    single = self.ndim == 1
    x = shaped(self, (1,) + self.shape) if single else self
    length = x.shape[1]
    if not 0 < n_fft <= length:
        raise RuntimeError(f"{text}: expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    if hop_length <= 0:
        raise RuntimeError(f"{text}: expected hop_length > 0, but got hop_length={hop_length}")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(f"{text}: expected 0 < win_length <= n_fft, but got win_length={win_length}")
    if window is not None and window.shape != (win_length,):
        raise RuntimeError(f"{text}: expected a 1D window tensor of size equal to win_length={win_length}, but got "
                           "window with size "
                           f"{list(window.shape)}")
    frames = 1 + (length - n_fft) // hop_length
    at = np.arange(frames)[:, None] * hop_length + np.arange(n_fft)[None]
    parts = prims.gather(x, value_of(at), axis=1)
    if window is not None or win_length < n_fft:
        w = _padded_window(window, win_length, n_fft, x.dtype if x.dtype.kind == "f" else np.zeros((), x.dtype).real.dtype)
        parts = prims.mul(*promote(parts, w))
    scale = 1 / math.sqrt(n_fft) if normalized else 1.0
    half = onesided if onesided is not None else parts.dtype.kind == "f"
    if parts.dtype.kind == "c":
        if half:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        made = _c2c(parts, axes=(2,), forward=True, scale=scale)
    elif half:
        made = _r2c(parts, axis=2, forward=True, scale=scale)
    else:
        made = _c2c(_complex(parts), axes=(2,), forward=True, scale=scale)
    made = permuted(made, (0, 2, 1))
    if single:
        made = shaped(made, made.shape[1:])
    if return_complex:
        return made
    return prims.stack(prims.real(made), prims.imag(made), axis=made.ndim)


@composite("stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
           "center=True, "
           "str pad_mode='reflect', bool normalized=False, bool? onesided=None, bool? return_complex=None, "
           "bool? align_to_window=None) -> Tensor", forms="function method")
def stft(self, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False,
         onesided=None, return_complex=None, align_to_window=None):
    """Transforms of overlapping windowed frames: (L,) or (B, L) → (…, frequencies, frames).

    Source: PyTorch, torch.stft.
    """
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    if window is None:
        warnings.warn("stft without a window takes a rectangular one, which leaks between frequencies; "
                      "torch.hann_window is a usual "
                      "choice.", stacklevel=6)
    if return_complex is False:
        warnings.warn("stft with return_complex=False is deprecated; view_as_real gives the same from a complex "
                      "result.", stacklevel=6)
    if return_complex is None:
        if not (self.is_complex() or window is not None and window.is_complex()):
            raise RuntimeError("stft requires the return_complex parameter be given for real inputs, and will further "
                               "require that "
                               "return_complex=True in a future PyTorch release.")
        return_complex = True
    if center:
        if align_to_window:
            raise RuntimeError("stft align_to_window should only be set when center = false.")
        wide = self.reshape([1] * (3 - self.dim()) + list(self.shape)) if self.dim() < 3 else self
        wide = call("nn.functional.pad", wide, [n_fft // 2, n_fft // 2], pad_mode)
        self = wide.reshape(list(wide.shape[3 - self.dim():])) if self.dim() < 3 else wide
    return call("_stft", self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex)


@operator("istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
          "center=True, "
          "bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor",
          forms="function method", grad_name="SliceBackward0")
def istft(self, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None,
          length=None, return_complex=False):
    """The signal of overlapping windowed transforms. RuntimeError where the windows leave gaps.

    Source: PyTorch, torch.istft.
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    text = (f"istft({_kind(self)}{list(self.shape)}, n_fft={n_fft}, hop_length={hop}, win_length={width}, "
            f"window={_describe_window(window)}, center={int(center)}, normalized={int(normalized)}, "
            f"onesided={onesided}, "
            f"length={length}, return_complex={int(return_complex)}) ")
    if self.dtype.kind != "c":
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with "
                           "return_complex=True.")
    if self.size == 0:
        raise RuntimeError(f"{text}: input tensor cannot be empty.")
    if self.ndim not in (2, 3):
        raise RuntimeError(f"{text}: expected a tensor with 2 or 3 dimensions, but got {self.ndim}")
    if window is None:
        warnings.warn("istft without a window takes a rectangular one; give the window that stft was given.", stacklevel=6)
    single = self.ndim == 2
    x = shaped(self, (1,) + self.shape) if single else self
    bins, frames = x.shape[1:]
    half = onesided if onesided is not None else bins != n_fft
    expected = n_fft // 2 + 1 if half else n_fft
    if bins != expected:
        raise RuntimeError(f"{text}: expected the frequency dimension (3rd to the last) of the input tensor to match "
                           f"{'n_fft / 2 + 1' if half else 'n_fft'} when onesided={'True' if half else 'False'}, but "
                           f"got {bins}")
    if not 0 < hop <= width:
        raise RuntimeError(f"{text}: expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{text}: expected 0 < win_length <= n_fft")
    if window is not None and window.shape != (width,):
        raise RuntimeError(f"{text}: Invalid window shape. window has to be 1D and length of `win_length`")
    real_type = np.zeros((), x.dtype).real.dtype
    w = _padded_window(window, width, n_fft, real_type)
    spectra = permuted(x, (0, 2, 1))
    scale = _scale("ortho" if normalized else None, n_fft, False)
    if return_complex:
        if half:
            raise RuntimeError(f"{text}: Cannot have onesided output if window or input is complex")
        parts = _c2c(spectra, axes=(2,), forward=False, scale=scale)
        w = _complex(w)
    else:  # of a whole transform only the first half counts
        parts = _c2r(_resized(spectra, 2, n_fft // 2 + 1), axis=2, n=n_fft, forward=False, scale=scale)
    parts = parts * prims.cast(w, dtype=parts.dtype)
    total = n_fft + hop * (frames - 1)
    at = value_of(np.arange(frames)[:, None] * hop + np.arange(n_fft)[None])
    zero = value_of(np.zeros((x.shape[0], total), parts.dtype))
    signal = prims.index_add(zero, at, parts, axis=1)
    square = prims.broadcast_to(shaped(w * w, (1, 1, n_fft)), shape=(1, frames, n_fft))
    envelope = prims.index_add(value_of(np.zeros((1, total), square.dtype)), at, square, axis=1)
    start = n_fft // 2 if center else 0
    stop = start + length if length is not None else total - (n_fft // 2 if center else 0)
    cut = min(stop, total)
    signal = prims.strided_slice(signal, start=(0, start), stop=(x.shape[0], cut), step=(1, 1))
    envelope = prims.strided_slice(envelope, start=(0, start), stop=(1, cut), step=(1, 1))
    if not np.abs(envelope.numpy).min(initial=np.inf) > 1e-11:
        raise RuntimeError(f"{text}window overlap add min: 1\n[ CPUBoolType{{}} ]")
    made = signal / prims.cast(envelope, dtype=signal.dtype)
    if stop > total:
        warn_once("The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. Please check "
                  "your center and hop_length settings.")
        made = prims.pad(made, before=(0, 0), after=(0, stop - total), value=0)
    return shaped(made, made.shape[1:]) if single else made
