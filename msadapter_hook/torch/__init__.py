"""torch, served by msadapter_hook: PyTorch's names over the adapter's tensors, tape and operators."""

import math as _math

from msadapter_hook import ops as _operators
from msadapter_hook.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from msadapter_hook.foreign import cast_to_adapter_tensor
from msadapter_hook.ops.creation import as_tensor, asarray, from_numpy, tensor
from msadapter_hook.tensor import Size, Tensor, UntypedStorage, device
from msadapter_hook.tensor import dtypes as _dtypes
from msadapter_hook.tensor.device import current_device as get_default_device
from msadapter_hook.tensor.device import set_default_device
from msadapter_hook.tensor.dtype import (
    can_cast,
    dtype,
    finfo,
    get_default_dtype,
    iinfo,
    layout,
    memory_format,
    promote_types,
    set_default_dtype,
)
from msadapter_hook.tensor.generator import Generator, default_generator
from msadapter_hook.version import TORCH_VERSION as __version__

# ------------------------------------------------------------------------------------------------ constants and operators
pi, e, inf, nan, newaxis = _math.pi, _math.e, _math.inf, _math.nan, None
globals().update(_dtypes.DTYPES)
globals().update(_dtypes.QUANTIZED)
globals().update({_name: getattr(_dtypes, _name) for _name in (
    "strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged", "contiguous_format",
    "channels_last", "channels_last_3d", "preserve_format") if hasattr(_dtypes, _name)})
globals().update(_operators.functions())

# ------------------------------------------------------------------------------------------------ modules
# The order matters (a module finds here what came before it), so it is not the linter's to change.
# isort: off
from . import return_types
from ._tensor_str import set_printoptions
from . import functional, version
from ._names import *
from ._names import _assert_async
from ._settings import *
from .functional import *
from .functional import _assert, _assert_tensor_metadata, _check, _check_index, _check_tensor_all, _check_type, _check_value, _check_with
from .functional import _shape_as_tensor
from .random import get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from . import sparse
from .sparse import (
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from . import autograd
from . import amp
from .amp import GradScaler, autocast
from .amp.autocast_mode import (
    clear_autocast_cache,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cache_enabled,
    is_autocast_cpu_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from . import backends, cuda, linalg, fft, signal, special
from . import nn
from . import masked, nested
from . import optim, utils
from . import distributions
from . import storage
from ._zipfile_format import PyTorchFileReader, PyTorchFileWriter
from .serialization import load, save
from .storage import *
from . import accelerator, compiler, futures, hub, jit, mps, mtia, multiprocessing, quasirandom, random, testing, types, xpu
from ._compile import compile
from .jit import ScriptFunction, ScriptModule, fork, wait
from ._further_names import *
from . import distributed

from msadapter_hook.autograd.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled
from . import func
from .func import vmap


def is_inference(input):
    """Whether a tensor was made in inference mode. Source: PyTorch, torch.is_inference."""
    return input.is_inference()

from . import __config__, _dynamo, ao, cpu, export, fx, library, onnx, overrides, profiler, quantization
from ._ops import classes, ops
from .futures import Future

torch = __import__("sys").modules[__name__]  # as in PyTorch, whose package imports itself by name
