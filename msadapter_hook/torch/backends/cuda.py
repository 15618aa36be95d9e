"""torch.backends.cuda: flags of a library that is not there."""

import contextlib as _contextlib
import warnings as _warnings


class _Flags:
    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True


matmul = _Flags()


def is_built():
    return False


def preferred_linalg_library(backend=None):
    """The library that CUDA's linear algebra would use: none. Source: PyTorch, torch.backends.cuda.preferred_linalg_library."""
    if backend not in (None, "default", "cusolver", "magma"):
        raise RuntimeError("Unknown input value. Choose from: default, cusolver, magma.")
    return "default"


# ------------------------------------------------------------------------------------------------ attention
# There is one kernel of scaled dot product attention, which computes what any of these would; the choice is kept.
def _switches(kind, name):
    def enabled():
        from ..nn import attention

        return getattr(attention.SDPBackend, kind) in attention._enabled

    def enable(enabled):
        from ..nn import attention

        backend = getattr(attention.SDPBackend, kind)
        others = [b for b in attention._enabled if b is not backend]
        attention._enabled = [*others, backend] if enabled else others

    enabled.__name__, enable.__name__ = f"{name}_sdp_enabled", f"enable_{name}_sdp"
    enabled.__doc__ = f"Whether the kernel may be used. Source: PyTorch, torch.backends.cuda.{enabled.__name__}."
    enable.__doc__ = f"Allow or forbid the kernel. Source: PyTorch, torch.backends.cuda.{enable.__name__}."
    return enabled, enable


flash_sdp_enabled, enable_flash_sdp = _switches("FLASH_ATTENTION", "flash")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _switches("EFFICIENT_ATTENTION", "mem_efficient")
math_sdp_enabled, enable_math_sdp = _switches("MATH", "math")
cudnn_sdp_enabled, enable_cudnn_sdp = _switches("CUDNN_ATTENTION", "cudnn")


def is_flash_attention_available():
    """False. Source: PyTorch, torch.backends.cuda.is_flash_attention_available."""
    return False


@_contextlib.contextmanager
def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """The kinds of kernels allowed within. Deprecated for torch.nn.attention.sdpa_kernel. Source: PyTorch,
    torch.backends.cuda.sdp_kernel."""
    from ..nn.attention import SDPBackend, sdpa_kernel

    wanted = ((enable_flash, SDPBackend.FLASH_ATTENTION), (enable_mem_efficient, SDPBackend.EFFICIENT_ATTENTION),
              (enable_math, SDPBackend.MATH), (enable_cudnn, SDPBackend.CUDNN_ATTENTION))
    _warnings.warn("torch.backends.cuda.sdp_kernel is deprecated: use torch.nn.attention.sdpa_kernel", FutureWarning, stacklevel=3)
    with sdpa_kernel([backend for on, backend in wanted if on]) as context:
        yield context
