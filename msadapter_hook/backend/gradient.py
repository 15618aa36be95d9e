"""The gradient of a pure function through MindSpore's own differentiation."""

from mindspore.ops import composite as _composite

from .runtime import mindspore


class Gradient:
    """vector-Jacobian products of `function` (arrays in, tuple of arrays out) by `mindspore.grad`.

    `positions`: the inputs to differentiate. The call takes the inputs and one cotangent per output and gives
    one gradient per position. Source: MindSpore, `mindspore.grad` (its `GradOperation` with `sens_param`).
    """

    __slots__ = ("_call",)

    def __init__(self, function, positions: tuple):
        operation = _composite.base._Grad(get_by_position=True, sens_param=True)
        self._call = operation(function, None, positions)

    def __call__(self, inputs: tuple, cotangents: tuple) -> tuple:
        result = self._call(*inputs, cotangents)
        return (result,) if not isinstance(result, tuple) else result


def value_and_gradient(function, positions: tuple):
    """`mindspore.value_and_grad` of a function whose first output is a scalar loss and whose others are carried along."""
    return mindspore.value_and_grad(function, positions, has_aux=True)
