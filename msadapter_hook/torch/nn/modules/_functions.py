# Autograd functions behind modules: the two identities around a forward that carry a Module's full backward hooks.
import warnings

from ... import Tensor, is_grad_enabled, zeros
from ...autograd import Function


class _OutputIdentity(Function):
    """Identity on a module's outputs; in backward it shows grad_output to the hooks before it goes on."""

    @staticmethod
    def forward(ctx, hooks, *outputs):
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[t for t in outputs if not t.requires_grad])
        ctx.hooks = hooks
        ctx.like = [(tuple(t.shape), t.dtype, t.device) if t.requires_grad else None for t in outputs]
        return outputs

    @staticmethod
    def backward(ctx, *grads):
        grads = ctx.hooks.on_grad_output(grads)
        # The module below is differentiated as a whole: an output nobody used counts as one with a zero gradient.
        return None, *(
            zeros(like[0], dtype=like[1], device=like[2]) if grad is None and like is not None else grad
            for grad, like in zip(grads, ctx.like)
        )


class _InputIdentity(Function):
    """Identity on a module's inputs; in backward it runs the hooks, which may replace grad_input."""

    @staticmethod
    def forward(ctx, hooks, *inputs):
        ctx.mark_non_differentiable(*[t for t in inputs if not t.requires_grad])
        ctx.hooks = hooks
        return inputs

    @staticmethod
    def backward(ctx, *grads):
        needed = ctx.needs_input_grad[1:]
        grads = tuple(grad if need else None for grad, need in zip(grads, needed))
        return None, *ctx.hooks.on_grad_input(grads)


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
        args, self.input_places = self._wrap(_InputIdentity, args)
        self.input_count = len(args)
        return args

    def wrap_outputs(self, result):
        values = result if isinstance(result, tuple) else (result,)
        values, self.output_places = self._wrap(_OutputIdentity, values)
        self.output_count = len(values)
        return values if isinstance(result, tuple) else values[0]

    def _wrap(self, function, values):
        places = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
        if not is_grad_enabled() or not any(values[i].requires_grad for i in places):
            return values, None
        wrapped = list(values)
        for place, tensor in zip(places, function.apply(self, *[values[i] for i in places])):
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
                "inputs require gradients.",
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
