# C++ and CUDA extensions of PyTorch bind to its own library, which is not here: everything refuses.
__all__ = ["BuildExtension", "CppExtension", "CUDAExtension", "load", "load_inline", "include_paths"]

CUDA_HOME = None


def _refuse(name):
    def refuse(*args, **kwargs):
        raise NotImplementedError(
            f"torch.utils.cpp_extension.{name}: extensions compiled against PyTorch's C++ library cannot be loaded; "
            "use a package's pure Python path"
        )

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


CppExtension = _refuse("CppExtension")
CUDAExtension = _refuse("CUDAExtension")
load = _refuse("load")
load_inline = _refuse("load_inline")
include_paths = _refuse("include_paths")


class BuildExtension:
    """setuptools' build command; refuses to be made."""

    def __init__(self, *args, **kwargs):
        _refuse("BuildExtension")()

    @classmethod
    def with_options(cls, **options):
        """A subclass with options, as PyTorch has it."""
        return cls
