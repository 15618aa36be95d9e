"""torch.__config__: what computes here."""


def show():
    """A text with the versions of what computes. Source: PyTorch, torch.__config__.show."""
    from importlib.metadata import version

    from msadapter_hook.version import TORCH_VERSION

    parts = [f"{name} {version(package)}" for name, package in (("MindSpore", "mindspore"), ("NumPy", "numpy"), ("SciPy", "scipy"))]
    return "\n  - ".join([f"PyTorch {TORCH_VERSION}, served by msadapter_hook, over:", *parts]) + "\n"


def parallel_info():
    """A text with the numbers of threads. Source: PyTorch, torch.__config__.parallel_info."""
    from . import get_num_interop_threads, get_num_threads

    return f"threads within an operator: {get_num_threads()}\nthreads between operators: {get_num_interop_threads()}\n"
