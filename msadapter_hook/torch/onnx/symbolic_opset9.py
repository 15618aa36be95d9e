"""torch.onnx.symbolic_opset9: symbolic functions of an opset; importable, each refuses."""

from .._refusal import refused
from . import _ADVICE


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return refused(f"torch.onnx.symbolic_opset9.{name}", _ADVICE)
