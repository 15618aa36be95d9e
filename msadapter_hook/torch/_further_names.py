# Names of the module torch that few programs use: switches under their older names, flags, and kernels that say what to use instead.
import threading as _threading

from msadapter_hook.tape.recording import state as _state
from msadapter_hook.tensor import Tensor
from msadapter_hook.tensor import dtypes as _dtypes

from ._lobpcg import lobpcg as lobpcg
from ._refusal import refuse_all as _refuse_all
from .amp.autocast_mode import set_autocast_dtype as _set_dtype
from .amp.autocast_mode import set_autocast_enabled as _set_enabled

has_lapack = has_spectral = True  # decompositions and Fourier transforms are there
has_mkl = has_openmp = False  # the libraries that PyTorch does them with are not

_DEVICE = "there is no such device here; computations run on MindSpore's device"
_QUANTIZED = "quantized tensors are not supported; torch.fake_quantize_per_tensor_affine and _per_channel_affine simulate them"
_KERNEL = "it calls a library that is not here; use the function of the same purpose in torch.nn.functional"

_refuse_all(globals(), "torch", "quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic int_repr q_scale q_zero_point "
            "q_per_channel_axis q_per_channel_scales q_per_channel_zero_points quantized_batch_norm quantized_gru_cell quantized_lstm_cell "
            "quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell "
            "empty_quantized choose_qparams_optimized fused_moving_avg_obs_fake_quant fbgemm_linear_fp16_weight "
            "fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation "
            "fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix", _QUANTIZED)
_refuse_all(globals(), "torch", "cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu "
            "cudnn_convolution_relu cudnn_convolution_transpose cudnn_grid_sampler miopen_batch_norm miopen_convolution "
            "miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution "
            "miopen_rnn mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear_backward_weights mkldnn_max_pool2d mkldnn_max_pool3d "
            "mkldnn_rnn_layer batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats "
            "batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats native_norm", _KERNEL)


class qscheme:
    """The way a tensor is quantized: a name to compare with, of tensors that cannot be made here. Source: PyTorch, torch.qscheme."""

    __module__ = "torch"

    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        return self._name


for _name in ("per_tensor_affine", "per_tensor_symmetric", "per_channel_affine", "per_channel_symmetric",
              "per_channel_affine_float_qparams"):
    globals().setdefault(_name, qscheme(_name))


def dequantize(input):
    """The tensor, or each of several, in float32: none is quantized here. Source: PyTorch, torch.dequantize."""
    return input.dequantize() if isinstance(input, Tensor) else [t.dequantize() for t in input]


def cudnn_is_acceptable(tensor):
    """Whether cuDNN takes the tensor: it is not here. Source: PyTorch, torch.cudnn_is_acceptable."""
    return False


def get_device(input):
    """The number of the tensor's device, -1 for the CPU. Source: PyTorch, torch.get_device."""
    return input.get_device()


def is_distributed(input):
    """Whether the storage is spread over processes: never. Source: PyTorch, torch.is_distributed."""
    return False


def is_vulkan_available():
    return False


def init_num_threads():
    """Nothing to prepare: MindSpore and NumPy keep their own threads. Source: PyTorch, torch.init_num_threads."""


def cond(pred, true_fn, false_fn, operands=()):
    """true_fn(*operands) or false_fn(*operands), as `pred`, a boolean or a tensor of one, says. Source: PyTorch, torch.cond."""
    if not isinstance(pred, (bool, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got "
                           f"{operands}.")
    return true_fn(*operands) if bool(pred) else false_fn(*operands)


def from_file(filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """A tensor of `size` elements over a file's memory: private, or written back to the file where `shared`, which makes the file if
    it is not there. Source: PyTorch, torch.from_file.
    """
    import numpy as np

    from . import from_numpy, get_default_dtype

    dtype = dtype or get_default_dtype()
    if shared:
        import os

        with open(filename, "ab") as file:  # grown to what is needed
            if os.path.getsize(filename) < size * dtype.itemsize:
                file.truncate(size * dtype.itemsize)
    made = np.memmap(filename, dtype.numpy, "r+" if shared else "c", shape=(size,))
    tensor = from_numpy(np.asarray(made)) if dtype.numpy.kind != "V" else from_numpy(np.asarray(made).view(np.uint8)).view(dtype)
    tensor = tensor.to(device) if device is not None else tensor
    return tensor.requires_grad_() if requires_grad else tensor


def set_anomaly_enabled(enabled, check_nan=True):
    """Switch anomaly mode. Source: PyTorch, torch.set_anomaly_enabled."""
    _state.anomaly, _state.anomaly_check = bool(enabled), bool(check_nan)


# ------------------------------------------------------------------------------------------------ autocast, by device
def set_autocast_cpu_enabled(enabled):
    """Switch autocast on the CPU. Source: PyTorch, torch.set_autocast_cpu_enabled."""
    _set_enabled("cpu", enabled)


def set_autocast_cpu_dtype(dtype):
    _set_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype):
    _set_dtype("cuda", dtype)


_other_dtypes = {"ipu": _dtypes.float16, "xla": _dtypes.bfloat16}


def _absent(kind):
    def is_enabled():
        return False

    def set_enabled(enabled):
        if enabled:
            raise NotImplementedError(f"torch.set_autocast_{kind}_enabled: {_DEVICE}")

    def get_dtype():
        return _other_dtypes[kind]

    def set_dtype(dtype):
        _other_dtypes[kind] = dtype

    for function, name in ((is_enabled, f"is_autocast_{kind}_enabled"), (set_enabled, f"set_autocast_{kind}_enabled"),
                           (get_dtype, f"get_autocast_{kind}_dtype"), (set_dtype, f"set_autocast_{kind}_dtype")):
        function.__name__ = function.__qualname__ = name
        globals()[name] = function


_absent("ipu")
_absent("xla")


class _Depth(_threading.local):
    count = 0


_depth = _Depth()


def autocast_increment_nesting():
    """One autocast context deeper; the depth. Source: PyTorch, torch.autocast_increment_nesting."""
    _depth.count += 1
    return _depth.count


def autocast_decrement_nesting():
    """One autocast context up; the depth. Source: PyTorch, torch.autocast_decrement_nesting."""
    _depth.count -= 1
    return _depth.count


__all__ = [_n for _n in globals() if not _n.startswith("_") and _n != "Tensor"]
