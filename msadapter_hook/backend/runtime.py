"""Loads mindspore with the settings that make PyNative fast on CPU; nothing else imports it."""

import ctypes
import threading
from functools import lru_cache

from msadapter_hook import settings

settings.prepare_process()  # OPENBLAS_CORETYPE and the oneDNN instruction set are read once, when the libraries load

import mindspore  # noqa: E402

from .threads import use_threads  # noqa: E402

__all__ = ["in_reach", "lock", "mindspore", "prepare"]

# MindSpore's executor is one for the process: a gradient under way would record the calls of another thread.
lock = threading.RLock()


def prepare() -> None:
    """Make MindSpore's calls synchronous, on the device asked for. The mode (graph or dynamic) stays the program's own.

    The asynchronous default is 5–10 times slower on few cores, and its kernels race with host kernels
    on memory that both share.
    """
    chosen = settings.current()
    if chosen.device != "auto":
        mindspore.set_device(chosen.device)
    if chosen.synchronous:
        mindspore.runtime.launch_blocking()
    if chosen.threads:
        mindspore.runtime.dispatch_threads_num(1)
        set_threads(chosen.threads)
    keep_freed_memory()


@lru_cache(maxsize=1)
def in_reach() -> bool:
    """Whether tensors lie in this process's memory and are computed when a call returns, so that NumPy can read them in place."""
    return settings.current().synchronous and mindspore.get_context("device_target") == "CPU"


def keep_freed_memory() -> None:
    """Have the C library keep large arrays that are freed, where it can be told so: it gives them back to the system, and every
    step pays for fresh pages again (up to half of a convolutional network's step on host kernels; `torch.cat` of two megabytes
    by itself: 2 ms in place of 0.1). One arena for all threads, so that what plain replay has freed serves the threads that call
    compiled programs back."""
    threshold, top_pad, trim, arenas = (-3, 1 << 25), (-2, 1 << 26), (-1, (1 << 31) - 1), (-8, 1)  # M_MMAP_THRESHOLD, M_TOP_PAD, …
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library than glibc
        return
    for option, value in (threshold, trim, top_pad, arenas):
        mallopt(option, value)


def set_threads(number: int) -> None:
    """How many threads a CPU kernel may use."""
    mindspore.set_context(runtime_num_threads=number)
    use_threads(number)


prepare()
