"""torch._refs: PyTorch's operators written in terms of simpler ones. Here each name is the operator itself, which is what a
reference must equal; nothing is decomposed."""

from importlib import import_module

_root = import_module("..", __package__)
_VARIANTS = {"div": "div", "rtruediv": "true_divide"}


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    found = getattr(_root, _VARIANTS.get(name, name), None)
    if found is None:
        found = getattr(_root.Tensor, name, None)
    if not callable(found):
        raise AttributeError(f"module 'torch._refs' has no attribute '{name}' (msadapter_hook does not provide it)")
    return found


from . import _conversions, fft, linalg, nn, special
