"""Autocast: operators that run in lower precision, and those that run in float32, while a context is on."""

import threading

from msadapter_hook.tensor import Tensor, dtypes

from . import tables

# Source: PyTorch, Automatic Mixed Precision package, "Autocast Op Reference" (CPU and CUDA lists).
_LOWER = ("addbmm addmm addmv addr baddbmm bmm chain_matmul linalg.multi_dot conv1d conv2d conv3d conv_transpose1d "
          "conv_transpose2d conv_transpose3d matmul mm mv linear nn.functional.linear nn.functional.conv1d nn.functional.conv2d "
          "nn.functional.conv3d nn.functional.conv_transpose1d nn.functional.conv_transpose2d nn.functional.conv_transpose3d "
          "nn.functional.scaled_dot_product_attention")
LOWER = {"cpu": frozenset((_LOWER).split()),
         "cuda": frozenset((_LOWER + " nn.functional.prelu prelu gru_cell lstm_cell rnn_tanh_cell rnn_relu_cell").split())}
SINGLE = {
    "cpu": frozenset(
        "nn.functional.mse_loss cosine_embedding_loss nn.functional.cosine_embedding_loss nn.functional.nll_loss "
        "nn.functional.hinge_embedding_loss nn.functional.poisson_nll_loss nn.functional.smooth_l1_loss nn.functional.huber_loss "
        "nn.functional.cross_entropy nn.functional.l1_loss nn.functional.margin_ranking_loss nn.functional.multilabel_margin_loss "
        "nn.functional.soft_margin_loss nn.functional.triplet_margin_loss nn.functional.multi_margin_loss nn.functional.ctc_loss "
        "nn.functional.kl_div nn.functional.binary_cross_entropy_with_logits prod cumprod linalg.inv linalg.det linalg.cholesky "
        "linalg.qr linalg.svd linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.lstsq linalg.matrix_rank linalg.solve "
        "cdist trace view_as_complex cholesky cholesky_inverse cholesky_solve inverse lu_solve ormqr pinverse "
        "nn.functional.grid_sample polar fft.fft fft.ifft fft.rfft fft.irfft fft.fft2 fft.ifft2 fft.fftn fft.ifftn".split()),
    "cuda": frozenset(
        "acos asin binary_cross_entropy_with_logits cosh cosine_embedding_loss cdist nn.functional.cosine_similarity "
        "nn.functional.cross_entropy cumprod cumsum dist erfinv exp expm1 nn.functional.group_norm "
        "nn.functional.hinge_embedding_loss nn.functional.kl_div nn.functional.l1_loss nn.functional.layer_norm log log10 "
        "log_softmax nn.functional.log_softmax log1p log2 nn.functional.margin_ranking_loss nn.functional.mse_loss "
        "nn.functional.multilabel_margin_loss nn.functional.multi_margin_loss nn.functional.nll_loss norm nn.functional.normalize "
        "nn.functional.pdist nn.functional.poisson_nll_loss pow prod reciprocal rsqrt sinh nn.functional.smooth_l1_loss "
        "nn.functional.soft_margin_loss softmax nn.functional.softmax nn.functional.softmin nn.functional.softplus sum renorm tan "
        "nn.functional.triplet_margin_loss nn.functional.binary_cross_entropy_with_logits".split()),
}
PROMOTE = {"cpu": frozenset("stack cat concat index_copy".split()),
           "cuda": frozenset("addcdiv addcmul atan2 bilinear cross dot nn.functional.grid_sample index_put scatter_add tensordot "
                             "stack cat concat nn.functional.bilinear".split())}


class _State(threading.local):
    def __init__(self):
        self.device = None  # the innermost context that is on: device type, or None
        self.enabled = {}
        self.dtype = {"cpu": dtypes.bfloat16, "cuda": dtypes.float16}
        self.cache = True


state = _State()


def active():
    """The device type whose lists apply, or None."""
    return state.device


def _cast(bound, dtype, eligible):
    def one(t):
        if isinstance(t, Tensor) and t._dtype in eligible and t._dtype is not dtype:
            return t.to(dtype)
        if isinstance(t, (list, tuple)) and any(isinstance(x, Tensor) for x in t):
            return type(t)([one(x) for x in t]) if type(t) in (list, tuple) else t
        return t

    return tuple([one(t) for t in bound])


_REDUCED = (dtypes.float16, dtypes.bfloat16)
_FLOATING = (dtypes.float16, dtypes.bfloat16, dtypes.float32)


def intercept(operator, overload, bound):
    """Cast the arguments of an operator as the lists say; called for every operator while a context is on."""
    device = state.device
    if device is None:
        return None
    name = operator.name
    if name in LOWER[device]:
        return _cast(bound, state.dtype[device], _FLOATING)
    if name in SINGLE[device]:
        return _cast(bound, dtypes.float32, _REDUCED)
    if name in PROMOTE[device]:
        found = [t for x in bound for t in (x if isinstance(x, (list, tuple)) else (x,)) if isinstance(t, Tensor)]
        if any(t._dtype is dtypes.float32 for t in found):
            return _cast(bound, dtypes.float32, _REDUCED)
    return None


def refresh():
    """Put the interceptor in or take it out, as contexts begin and end."""
    if intercept not in tables.interceptors:
        tables.interceptors.append(intercept)
