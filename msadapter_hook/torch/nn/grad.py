# Gradients of convolutions as functions.
from . import functional as F


def _make(dimensions):
    name = f"conv{dimensions}d"

    def wrt(tensor, output, grad_output):
        from ..autograd import grad

        return grad(output, tensor, grad_output)[0]

    def conv_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
        from .. import empty, enable_grad

        with enable_grad():
            input = empty(tuple(input_size), dtype=grad_output.dtype, device=grad_output.device).zero_()
            input.requires_grad_()
            output = getattr(F, name)(input, weight.detach(), None, stride, padding, dilation, groups)
            return wrt(input, output, grad_output)

    def conv_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
        from .. import empty, enable_grad

        with enable_grad():
            weight = empty(tuple(weight_size), dtype=grad_output.dtype, device=grad_output.device).zero_()
            weight.requires_grad_()
            output = getattr(F, name)(input.detach(), weight, None, stride, padding, dilation, groups)
            return wrt(weight, output, grad_output)

    for function, what in ((conv_input, "input"), (conv_weight, "weight")):
        function.__name__ = function.__qualname__ = f"conv{dimensions}d_{what}"
        function.__doc__ = (
            f"Gradient of conv{dimensions}d with respect to its {what}, given that of its output. "
            f"Source: PyTorch, torch.nn.grad.conv{dimensions}d_{what}."
        )
    return conv_input, conv_weight


conv1d_input, conv1d_weight = _make(1)
conv2d_input, conv2d_weight = _make(2)
conv3d_input, conv3d_weight = _make(3)
