"""Process-wide switches of torch: threads, determinism, precision. Kept and reported; what cannot be honoured refuses."""

import os as _os

__all__ = ["SymBool", "SymFloat", "SymInt", "are_deterministic_algorithms_enabled", "get_deterministic_debug_mode",
           "get_float32_matmul_precision",
           "get_num_interop_threads", "get_num_threads",
           "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled", "set_deterministic_debug_mode",
           "set_float32_matmul_precision", "set_flush_denormal", "set_num_interop_threads",
           "set_num_threads", "set_warn_always", "use_deterministic_algorithms"]

_state = {"deterministic": False, "warn_only": False, "precision": "highest", "threads": None, "interop": None}


class SymInt:
    """Symbolic integers exist only while PyTorch traces; here for isinstance checks."""


class SymFloat:
    """Symbolic floats exist only while PyTorch traces; here for isinstance checks."""


class SymBool:
    """Symbolic booleans exist only while PyTorch traces; here for isinstance checks."""


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Every operator here is deterministic already. Source: PyTorch, torch.use_deterministic_algorithms."""
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            place = " (position 1)" if name == "mode" else ""
            raise TypeError(f"_set_deterministic_algorithms(): argument '{name}'{place} must be bool, not "
                            f"{type(value).__name__}")
    _state["deterministic"], _state["warn_only"] = mode, warn_only


def are_deterministic_algorithms_enabled():
    return _state["deterministic"]


def is_deterministic_algorithms_warn_only_enabled():
    return _state["warn_only"]


def set_deterministic_debug_mode(debug_mode):
    """0 or "default", 1 or "warn", 2 or "error". Source: PyTorch, torch.set_deterministic_debug_mode."""
    names = {"default": 0, "warn": 1, "error": 2}
    if not isinstance(debug_mode, (str, int)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in names:
            raise RuntimeError(f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}")
        debug_mode = names[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode():
    return 0 if not _state["deterministic"] else 1 if _state["warn_only"] else 2


def set_float32_matmul_precision(precision):
    """Products are always computed in full float32. Source: PyTorch, torch.set_float32_matmul_precision."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', or 'medium'")
    _state["precision"] = precision


def get_float32_matmul_precision():
    return _state["precision"]


def get_num_threads():
    """Threads of a kernel. Source: PyTorch, torch.get_num_threads."""
    return _state["threads"] or _os.cpu_count() or 1


def set_num_threads(num):
    """Threads of MindSpore's kernels. Source: PyTorch, torch.set_num_threads."""
    if not isinstance(num, int) or isinstance(num, bool):
        raise TypeError(f"set_num_threads expects an int, but got {type(num).__name__}")
    if num < 1:
        raise RuntimeError("set_num_threads expects a positive integer")
    from msadapter_hook.backend.runtime import set_threads

    set_threads(num)
    _state["threads"] = num


def get_num_interop_threads():
    return _state["interop"] or _os.cpu_count() or 1


def set_num_interop_threads(num):
    """Operators run one after the other; the number is kept. Source: PyTorch, torch.set_num_interop_threads."""
    if num < 1:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _state["interop"] = num


def set_flush_denormal(mode):
    """False: not supported, as on processors without the switch. Source: PyTorch, torch.set_flush_denormal."""
    return False


def set_warn_always(b):
    """Show notices each time instead of once in a process. Source: PyTorch, torch.set_warn_always."""
    if not isinstance(b, bool):
        raise TypeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    from msadapter_hook.ops.registry import notices

    notices.always = b


def is_warn_always_enabled():
    """Whether notices are shown each time. Source: PyTorch, torch.is_warn_always_enabled."""
    from msadapter_hook.ops.registry import notices

    return notices.always
