# Averaged stochastic gradient descent.
from .. import as_tensor, ones, tensor
from ._elementwise import (
    ElementwiseOptimizer,
    as_real,
    check,
    check_lr,
    run_step,
    updates,
    zeros_as,
)
from .optimizer import _get_scalar_dtype, _get_value, _new_step, _to_scalar

__all__ = ["ASGD", "asgd"]


class ASGD(ElementwiseOptimizer):
    """Averaged SGD (PyTorch, torch.optim.ASGD); the average is in the state as `ax`."""

    _group_defaults = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _sparse_message = "ASGD does not support sparse gradients"
    _columns = "ax", "mu", "step", "eta"
    _capturable_state = "params, mus, etas, and state_steps"

    def __init__(
        self,
        params,
        lr=1e-2,
        lambd=1e-4,
        alpha=0.75,
        t0=1e6,
        weight_decay=0,
        foreach=None,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        check_lr(lr)
        check(0.0 <= weight_decay, f"Invalid weight_decay value: {weight_decay}")
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _initial_state(self, p, group):
        dtype = _get_scalar_dtype()
        return {
            "step": _new_step(device=p.device),
            "eta": as_tensor(_get_value(group["lr"]), device=p.device, dtype=dtype).clone().detach(),
            "mu": ones((), device=p.device, dtype=dtype),
            "ax": zeros_as(p),
        }


@updates(ASGD)
def asgd(
    params,
    grads,
    axs,
    mus,
    state_steps,
    etas,
    foreach=None,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
    *,
    lambd,
    lr,
    t0,
    alpha,
    weight_decay,
):
    """The update of averaged SGD over lists of tensors, in place."""
    run_step(
        "asgd_step",
        _single_tensor_asgd,
        params,
        grads,
        axs,
        mus,
        state_steps,
        etas,
        lambd=lambd,
        lr=lr,
        t0=t0,
        alpha=alpha,
        weight_decay=weight_decay,
        maximize=maximize,
        differentiable=differentiable,
    )

def _single_tensor_asgd(
    params,
    grads,
    axs,
    mus,
    state_steps,
    etas,
    *,
    lambd,
    lr,
    t0,
    alpha,
    weight_decay,
    maximize,
    differentiable=False,
):
    lr = _to_scalar(lr)
    for param, grad, ax, mu, step_t, eta in zip(params, grads, axs, mus, state_steps, etas):
        if maximize:
            grad = -grad
        param, grad, ax = as_real(param, grad, ax)
        step_t += 1
        step = _get_value(step_t)
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        rate = _get_value(eta)
        param.mul_(1 - lambd * rate)
        param.add_(grad, alpha=-rate)
        mixing = _get_value(mu)
        if mixing == 1:
            ax.copy_(param)
        else:
            ax.add_(param.sub(ax).mul_(mixing))
        eta.copy_(as_tensor(lr / ((1 + lambd * lr * step) ** alpha)))
        mu.copy_(tensor(1 / max(1, step - t0)))
