# Exchange of tensors with other libraries through DLPack capsules.
from .. import from_dlpack as from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor):
    """A DLPack capsule of a tensor (PyTorch, torch.utils.dlpack.to_dlpack)."""
    return tensor.__dlpack__()
