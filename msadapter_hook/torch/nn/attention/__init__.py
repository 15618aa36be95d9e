# torch.nn.attention: the choice of a kernel for scaled dot product attention, and causal biases.
import contextlib
import enum

__all__ = [
    "SDPBackend",
    "sdpa_kernel",
    "WARN_FOR_UNFUSED_KERNELS",
    "register_flash_attention_impl",
    "activate_flash_attention_impl",
    "list_flash_attention_impls",
    "current_flash_attention_impl",
    "restore_flash_attention_impl",
]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """Kinds of kernels for scaled dot product attention. Source: PyTorch, torch.nn.attention.SDPBackend."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self):
        return f"<SDPBackend.{self.name}: {self.value}>"

    def __str__(self):
        return f"SDPBackend.{self.name}"


# The kinds that may be used now, in order of preference. There is one kernel here, the plain one, which computes the
# same value as any of them; the choice is kept so that programs can ask for it.
_enabled = [
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.OVERRIDEABLE,
]


def _cur_sdpa_kernel_backends(with_priority=False):
    return list(_enabled)


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Within, only `backends` (one or a list of SDPBackend) may compute attention. Source: PyTorch,
    torch.nn.attention.sdpa_kernel.

    AssertionError for anything that is no backend.
    """
    if isinstance(backends, SDPBackend):
        backends = [backends]
    if not isinstance(backends, (list, tuple)) or not all(isinstance(backend, SDPBackend) for backend in backends):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, "
            f"got {type(backends).__name__}"
        )
    global _enabled
    before = _enabled
    _enabled = list(dict.fromkeys(backends))
    try:
        yield {}
    finally:
        _enabled = before


def _no_flash(name):
    def refuse(*args, **kwargs):
        raise NotImplementedError(
            f"torch.nn.attention.{name}: there are no exchangeable flash attention kernels here; "
            "scaled_dot_product_attention works without."
        )

    refuse.__name__ = name
    return refuse


register_flash_attention_impl = _no_flash("register_flash_attention_impl")
activate_flash_attention_impl = _no_flash("activate_flash_attention_impl")


def list_flash_attention_impls():
    """Names of the registered flash attention kernels: none."""
    return []


def current_flash_attention_impl():
    """Name of the flash attention kernel in use: None."""
    return None


def restore_flash_attention_impl(_raise_warn=True):
    """Back to the default kernel, which is the only one."""
