"""torch.autograd.function: operations with a gradient written by the user."""

from msadapter_hook.autograd.function import (
    BackwardNode as BackwardCFunction,
)
from msadapter_hook.autograd.function import (
    Function,
    FunctionCtx,
    InplaceFunction,
    NestedIOFunction,
    once_differentiable,
)

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "InplaceFunction", "NestedIOFunction", "once_differentiable"]
