"""Values, the nodes that made them, and programs: pure functions made of nodes, replayed through MindSpore's gradient."""

from . import detach  # noqa: F401  (values ask for it)
from .primitive import Primitive
from .program import Program
from .recording import enable_grad, grad_enabled, no_grad, set_grad_enabled
from .value import Node, Value, constant, value_of

__all__ = [
    "Node",
    "Primitive",
    "Program",
    "Value",
    "constant",
    "enable_grad",
    "grad_enabled",
    "no_grad",
    "set_grad_enabled",
    "value_of",
]
