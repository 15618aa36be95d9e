"""torch._dynamo.eval_frame: the type of a compiled module."""

from ..nn import Module


class OptimizedModule(Module):
    """For isinstance: torch.compile gives the module itself here, so no object is one."""
