"""torch.cuda.nvtx: marks for NVIDIA's profiler, which is not there."""

import contextlib as _contextlib

from .._absent_device import refuse as _refuse

_TEXT = "NVTX functions not installed. Are you sure you have a CUDA build?"
_refuse(RuntimeError, _TEXT, "range_push range_pop range_start range_end mark", globals())


@_contextlib.contextmanager
def range(msg, *args, **kwargs):
    """A marked stretch of the program. RuntimeError: see the module. Source: PyTorch, torch.cuda.nvtx.range."""
    range_push(msg)  # noqa: F821 (put here by _refuse)
    yield
