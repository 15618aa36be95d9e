"""torch.cuda.profiler: NVIDIA's profiler is not there."""

import contextlib as _contextlib

from .._absent_device import refuse as _refuse

_refuse(AssertionError, "Torch not compiled with CUDA enabled", "start stop init", globals())


@_contextlib.contextmanager
def profile():
    """A stretch of the program under the profiler. AssertionError: see the module. Source: PyTorch, torch.cuda.profiler.profile."""
    start()  # noqa: F821 (put here by _refuse)
    yield
