# Autograd functions behind modules: the two identities around a forward that carry a Module's full backward hooks.
import warnings

from ... import Tensor, is_grad_enabled, zeros
from ...autograd import Function


class BackwardHookFunction(Function):
    """Identity around a module's inputs or outputs; in backward it shows the gradients to the module's hooks."""

    @staticmethod
    def forward(ctx, on_grad, materialize, *tensors):
        # An output nobody used has no gradient; an input nobody used has a zero one.
        ctx.set_materialize_grads(materialize)
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        ctx.on_grad = on_grad
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        return None, None, *ctx.on_grad(grads)


class BackwardHooks:
    """The full backward (pre-)hooks of one call of one module.

    `wrap_inputs` and `wrap_outputs` put identities around the forward; only tensors that stand directly among the
    positional arguments, or are the output or stand in the output tuple, take part. Source: PyTorch,
    torch.nn.Module.register_full_backward_hook.
    """

    def __init__(self, module, hooks, pre_hooks):
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs = None
        self.input_places = None
        self.output_places = None
        self.input_count = self.output_count = -1

    def wrap_inputs(self, args):
        args, self.input_places = self._wrap(self.on_grad_input, True, args)
        self.input_count = len(args)
        return args

    def wrap_outputs(self, result):
        values = result if isinstance(result, tuple) else (result,)
        values, self.output_places = self._wrap(self.on_grad_output, False, values)
        self.output_count = len(values)
        return values if isinstance(result, tuple) else values[0]

    def _wrap(self, on_grad, materialize, values):
        places = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
        if not is_grad_enabled() or not any(values[i].requires_grad for i in places):
            return values, None
        wrapped = list(values)
        tensors = BackwardHookFunction.apply(on_grad, materialize, *[values[i] for i in places])
        for place, tensor in zip(places, tensors):
            wrapped[place] = tensor
        # A named tuple keeps its class.
        return (tuple(wrapped) if type(values) is tuple else type(values)(*wrapped)), places

    def on_grad_output(self, grads):
        """Run the pre-hooks; where no input requires grad this is also the last chance to run the hooks."""
        grad_outputs = _spread(grads, self.output_places, self.output_count)
        for hook in self.pre_hooks:
            replaced = _as_tuple(hook(self.module, grad_outputs))
            if replaced is None:
                continue
            if len(replaced) != len(grad_outputs):
                raise RuntimeError(
                    f"Backward pre hook returned an invalid number of grad_output, got {len(replaced)}, "
                    f"but expected {len(grad_outputs)}"
                )
            grad_outputs = replaced
        self.grad_outputs = grad_outputs
        if self.input_places is None:
            self._run_without_inputs()
        return tuple(grad_outputs[i] for i in self.output_places)

    def _run_without_inputs(self):
        if self.hooks:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                "inputs require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.register_full_backward_hook for more details.",
                stacklevel=5,
            )
        for hook in self.hooks:
            result = hook(self.module, (None,) * self.input_count, self.grad_outputs)
            if result is not None and not (isinstance(result, tuple) and all(grad is None for grad in result)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None "
                    "for all gradients."
                )
        self.grad_outputs = None

    def on_grad_input(self, grads):
        # A gradient that came to the inputs without passing the outputs (as in a second backward) is not the module's.
        if self.grad_outputs is None:
            return grads
        grad_inputs = _spread(grads, self.input_places, self.input_count)
        for hook in self.hooks:
            replaced = _as_tuple(hook(self.module, grad_inputs, self.grad_outputs))
            if replaced is None:
                continue
            if len(replaced) != len(grad_inputs):
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(replaced)}, "
                    f"but expected {len(grad_inputs)}"
                )
            grad_inputs = replaced
        self.grad_outputs = None
        return tuple(grad_inputs[i] for i in self.input_places)


def _as_tuple(value):
    return value if value is None or isinstance(value, tuple) else (value,)


def _spread(values, places, count):
    spread = [None] * count
    for place, value in zip(places, values):
        spread[place] = value
    return tuple(spread)


class CrossMapLRN2d(Function):
    """Local response normalization over channels of (N, C, H, W), with the windows of PyTorch's implementation.

    Two of them are peculiar and kept, since programs compare with PyTorch: in forward the first channel stays in the
    window of all channels from `reach` on; in backward the window lies to one side of the channel.
    """

    @staticmethod
    def forward(ctx, input, size, alpha=1e-4, beta=0.75, k=1):
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        channels = input.size(1)
        reach = int((size - 1) / 2 + 1)
        squares = input * input
        total = _window_sum(squares, min(reach, channels) - 1, min(reach, channels) - 1)
        if channels > reach:
            total[:, reach:] += squares[:, :1]
        scale = total * (alpha / size) + k
        output = input * scale ** (-beta)
        ctx.save_for_backward(input, output, scale)
        ctx.options = size, alpha, beta
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, output, scale = ctx.saved_tensors
        size, alpha, beta = ctx.options
        before = int(size - (size - 1) / 2)
        ratio = _window_sum(grad_output * output / scale, before, size - 1 - before)
        grad_input = grad_output * scale ** (-beta) - (2 * alpha * beta / size) * input * ratio
        return grad_input, None, None, None, None


def _window_sum(t, before, after):
    """Sum over channels c - before … c + after (dimension 1), beyond the ends zero; a negative reach lies behind."""
    channels = t.size(1)
    total = zeros(tuple(t.shape), dtype=t.dtype, device=t.device)
    for shift in range(-before, after + 1):
        low, high = max(0, -shift), min(channels, channels - shift)
        if low < high:
            total[:, low:high] += t[:, low + shift : high + shift]
    return total
