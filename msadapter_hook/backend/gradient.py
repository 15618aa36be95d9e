"""The gradient of a pure function through MindSpore's own differentiation."""

from mindspore.ops import composite as _composite
from mindspore.ops import stop_gradient

from . import runtime  # noqa: F401

__all__ = ["Gradient", "stop_gradient"]


class Gradient:
    """vector-Jacobian products of `function` (arrays in, tuple of arrays out) by `mindspore.grad`.

    `positions`: the inputs to differentiate. The call takes the inputs and one cotangent per output, and gives the outputs
    and one gradient per position. Source: MindSpore, `mindspore.value_and_grad` with `sens_param`.
    """

    __slots__ = ("_call",)

    def __init__(self, function, positions: tuple):
        operation = _composite.base._Grad(get_by_position=True, sens_param=True, get_value=True)
        self._call = operation(function, None, positions)

    def __call__(self, inputs: tuple, cotangents: tuple) -> tuple:
        values, grads = self._call(*inputs, cotangents)
        return values, grads if isinstance(grads, tuple) else (grads,)
