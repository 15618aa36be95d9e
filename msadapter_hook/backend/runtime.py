"""Loads mindspore with the settings that make PyNative fast on CPU; nothing else imports it."""

import threading

from msadapter_hook import settings

settings.prepare_process()  # OPENBLAS_CORETYPE and the oneDNN instruction set are read once, when the libraries load

import mindspore  # noqa: E402

__all__ = ["lock", "mindspore", "prepare"]

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
        mindspore.set_context(runtime_num_threads=chosen.threads)




def set_threads(number: int) -> None:
    """How many threads a CPU kernel may use."""
    mindspore.set_context(runtime_num_threads=number)


prepare()
