"""torch.onnx.symbolic_opset11: symbolic functions of an opset; importable, each refuses."""

from .._refusal import refused
from . import _ADVICE


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return refused(f"torch.onnx.symbolic_opset11.{name}", _ADVICE)
