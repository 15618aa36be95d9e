# Resilient backpropagation: only the signs of the gradients count.
from .. import full_like
from ._elementwise import (
    ElementwiseOptimizer,
    as_real,
    check,
    check_lr,
    check_steps,
    run_step,
    updates,
    zeros_as,
)
from .optimizer import _get_value

__all__ = ["Rprop", "rprop"]


class Rprop(ElementwiseOptimizer):
    """Rprop (PyTorch, torch.optim.Rprop)."""

    _group_defaults = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _sparse_message = "Rprop does not support sparse gradients"
    _columns = "prev", "step_size", "step"

    def __init__(
        self,
        params,
        lr=1e-2,
        etas=(0.5, 1.2),
        step_sizes=(1e-6, 50),
        *,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        check_lr(lr)
        check(0.0 < etas[0] < 1.0 < etas[1], f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _initial_state(self, p, group):
        lr = _get_value(group["lr"])
        start = complex(lr, lr) if p.dtype.is_complex else lr
        return {"step": self._step_counter(p, group), "prev": zeros_as(p), "step_size": full_like(p.grad, start)}

    def _options(self, group):
        options = super()._options(group)
        options["etaminus"], options["etaplus"] = group["etas"]
        options["step_size_min"], options["step_size_max"] = group["step_sizes"]
        return options


@updates(Rprop)
def rprop(
    params,
    grads,
    prevs,
    step_sizes,
    state_steps,
    foreach=None,
    capturable=False,
    maximize=False,
    differentiable=False,
    has_complex=False,
    *,
    step_size_min,
    step_size_max,
    etaminus,
    etaplus,
):
    """The update of Rprop over lists of tensors, in place."""
    check_steps(state_steps)
    run_step(
        "rprop_step",
        _single_tensor_rprop,
        params,
        grads,
        prevs,
        step_sizes,
        state_steps,
        step_size_min=step_size_min,
        step_size_max=step_size_max,
        etaminus=etaminus,
        etaplus=etaplus,
        maximize=maximize,
        differentiable=differentiable,
    )

def _single_tensor_rprop(
    params,
    grads,
    prevs,
    step_sizes,
    state_steps,
    *,
    step_size_min,
    step_size_max,
    etaminus,
    etaplus,
    maximize,
    differentiable=False,
):
    for param, grad, prev, step_size, step in zip(params, grads, prevs, step_sizes, state_steps):
        step += 1
        if maximize:
            grad = -grad
        param, grad, prev, step_size = as_real(param, grad, prev, step_size)
        sign = grad.mul(prev.clone() if differentiable else prev).sign()
        turned = sign.lt(0)
        factor = sign.masked_fill(sign.gt(0), etaplus).masked_fill(turned, etaminus).masked_fill(sign.eq(0), 1)
        step_size.mul_(factor).clamp_(step_size_min, step_size_max)
        # where the direction turned, this step is skipped and the next one has no memory of the sign
        grad = grad.masked_fill(turned, 0)
        param.addcmul_(grad.sign(), step_size, value=-1)
        prev.copy_(grad)
