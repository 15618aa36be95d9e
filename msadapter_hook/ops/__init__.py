"""The operators of PyTorch, each under its schema; importing this package registers them and gives Tensor its
methods."""

import importlib

from .binding import RETURN_TYPES
from .registry import attach

# One module per family; each registers its operators when it is imported.
from .tables import METHODS, OPERATORS, call, functions

# One module per family; each registers its operators when it is imported.
FAMILIES = ["creation", "ranges", "sharing", "views", "joining", "shape", "padding", "scatter", "segments", "masking",
            "random", "pointwise", "binary", "comparison", "bitwise", "complex", "activation", "reduction", "matmul", "grouped",
            "einsum", "loss", "loss_margin", "sorting", "scan", "statistics", "gradient", "special", "convolution",
            "pooling", "normalization", "embedding", "attention", "native_attention", "recurrent", "legacy", "distance", "interpolation",
            "linalg", "decomposition", "matrix_norms", "fft", "numbered", "foreach", "methods", "sparse", "nested",
            "fake_quantize", "rare_methods", "aten_parts"]

for _family in FAMILIES:
    importlib.import_module(f"{__name__}.{_family}")
attach()
importlib.import_module(f"{__name__}.methods").install_operators()
importlib.import_module(f"{__name__}.protocol").install()
importlib.import_module(f"{__name__}.guards").install()

__all__ = ["METHODS", "OPERATORS", "RETURN_TYPES", "call", "functions"]
