"""torch._dynamo.eval_frame: the type of a compiled module."""

from .._compile import OptimizedModule

__all__ = ["OptimizedModule"]
