"""torch.cuda: not available; what programs ask before they decide is answered, the rest refuses."""

from .. import _absent_device as _absent
from .._names import OutOfMemoryError
from . import amp

_REASON = "Torch not compiled with CUDA enabled"
_absent.common(globals(), _REASON)
_absent.answer(False, "is_tf32_supported _is_in_bad_fork _is_compiled", globals())
_absent.answer(0, "memory_cached max_memory_cached", globals())
_absent.answer(None, "ipc_collect", globals())
_absent.answer(str, "get_gencode_flags", globals())
_absent.refuse(AssertionError, _REASON, "_lazy_init cudart current_blas_handle get_sync_debug_mode set_sync_debug_mode "
               "reset_max_memory_allocated reset_max_memory_cached set_per_process_memory_fraction caching_allocator_alloc "
               "caching_allocator_delete get_allocator_backend graph_pool_handle make_graphed_callables utilization temperature "
               "power_draw clock_rate list_gpu_processes is_current_stream_capturing get_stream_from_external", globals())
_absent.classes("torch.cuda.{} requires CUDA support", "Stream ExternalStream Event CUDAGraph MemPool", globals())
_absent.classes("type torch.cuda.{} not available. " + _REASON + ".", "FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor "
                "IntTensor ShortTensor CharTensor ByteTensor BoolTensor", globals())
default_generators = ()
has_half, has_magma = True, False


class graph(_absent.StreamContext):
    """Context that captures work into a graph; there is no graph to be given. Source: PyTorch, torch.cuda.graph."""

    def __init__(self, cuda_graph, pool=None, stream=None, capture_error_mode="global"):
        raise AssertionError(_REASON)


class device_of(_absent.device):
    """Context that selects the device of a tensor; one without CUDA selects nothing. Source: PyTorch, torch.cuda.device_of."""

    def __init__(self, obj):
        super().__init__(-1)


from . import memory, nvtx, profiler, random
