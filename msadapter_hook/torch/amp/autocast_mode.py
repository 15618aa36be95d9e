"""torch.amp.autocast_mode: contexts in which operators choose their precision."""

import functools
import warnings

from msadapter_hook.ops import autocast as _autocast

from .. import Tensor, bfloat16, float16

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_KINDS = {"cpu": "cpu", "cuda": "cuda", "npu": "cuda"}


def is_autocast_available(device_type):
    """Whether autocast knows the device type. Source: PyTorch, torch.amp.autocast_mode.is_autocast_available."""
    return device_type in _KINDS


class autocast:
    """Context and decorator: products in `dtype`, sensitive operators in float32. Source: PyTorch, torch.autocast."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type not in _KINDS:
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.kind = _KINDS[device_type]
        self.fast_dtype = dtype if dtype is not None else _autocast.state.dtype[self.kind]
        self._enabled = enabled
        if device_type == "cuda" and enabled:
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", UserWarning, stacklevel=2)
            self._enabled = False
        if self.kind == "cpu" and enabled and self.fast_dtype not in (bfloat16, float16):
            warnings.warn("In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast only supports "
                          "dtype of torch.bfloat16, torch.float16 currently.", UserWarning, stacklevel=2)
            self._enabled = False
        self._cache_enabled = _autocast.state.cache if cache_enabled is None else cache_enabled
        self._before = []

    def __enter__(self):
        state = _autocast.state
        self._before.append((state.device, dict(state.enabled), state.dtype[self.kind], state.cache))
        state.enabled[self.kind] = self._enabled
        if self._enabled:
            state.device = self.kind
        elif state.device == self.kind:
            state.device = None
        state.dtype[self.kind] = self.fast_dtype
        state.cache = self._cache_enabled
        _autocast.refresh()
        return self

    def __exit__(self, *exc):
        state = _autocast.state
        state.device, state.enabled, state.dtype[self.kind], state.cache = self._before.pop()
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def decorated(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return decorated


def _cast(value, device_type, dtype):
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() and value.dtype is not dtype else value
    if isinstance(value, dict):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_cast(v, device_type, dtype) for v in value])
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Decorator for the forward of a Function: remembers the autocast mode, or casts the inputs. Source: PyTorch,
    torch.amp.custom_fwd."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args, **kwargs):
        kind = _KINDS[device_type]
        args[0]._dtype = _autocast.state.dtype[kind]
        on = bool(_autocast.state.enabled.get(kind))
        if cast_inputs is None or not on:
            args[0]._fwd_used_autocast = on
            return fwd(*args, **kwargs)
        args[0]._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd=None, *, device_type):
    """Decorator for the backward of a Function: runs in the autocast mode of its forward. Source: PyTorch,
    torch.amp.custom_bwd."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args, **kwargs):
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorated


def is_autocast_enabled(device_type="cuda"):
    """Whether autocast is on for the device type. Source: PyTorch, torch.is_autocast_enabled."""
    return bool(_autocast.state.enabled.get(_KINDS.get(device_type)))


def is_autocast_cpu_enabled():
    return is_autocast_enabled("cpu")


def set_autocast_enabled(device_type, enabled=None):
    """Switch autocast for a device type. Source: PyTorch, torch.set_autocast_enabled."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    kind = _KINDS[device_type]
    _autocast.state.enabled[kind] = bool(enabled)
    _autocast.state.device = kind if enabled else None
    _autocast.refresh()


def get_autocast_dtype(device_type):
    """The lower precision of a device type. Source: PyTorch, torch.get_autocast_dtype."""
    return _autocast.state.dtype[_KINDS[device_type]]


def get_autocast_cpu_dtype():
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype():
    return get_autocast_dtype("cuda")


def set_autocast_dtype(device_type, dtype):
    """Choose the lower precision of a device type. Source: PyTorch, torch.set_autocast_dtype."""
    _autocast.state.dtype[_KINDS[device_type]] = dtype


def is_autocast_cache_enabled():
    return _autocast.state.cache


def set_autocast_cache_enabled(enabled):
    _autocast.state.cache = bool(enabled)


def clear_autocast_cache():
    """Nothing is cached: casts are recorded operations."""
