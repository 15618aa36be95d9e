# Adamax: Adam with the infinity norm.
from .. import amax, cat, maximum
from ._elementwise import (
    ElementwiseOptimizer,
    as_real,
    check,
    check_betas,
    check_lr,
    check_steps,
    run_step,
    updates,
    zeros_as,
)
from .optimizer import _get_value, _to_scalar

__all__ = ["Adamax", "adamax"]


class Adamax(ElementwiseOptimizer):
    """Adamax (PyTorch, torch.optim.Adamax)."""

    _group_defaults = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _sparse_message = "Adamax does not support sparse gradients"
    _columns = "exp_avg", "exp_inf", "step"

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        check_lr(lr)
        check(0.0 <= eps, f"Invalid epsilon value: {eps}")
        check_betas(betas)
        check(0.0 <= weight_decay, f"Invalid weight_decay value: {weight_decay}")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _initial_state(self, p, group):
        return {"step": self._step_counter(p, group), "exp_avg": zeros_as(p), "exp_inf": zeros_as(p)}


@updates(Adamax)
def adamax(
    params,
    grads,
    exp_avgs,
    exp_infs,
    state_steps,
    foreach=None,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
    *,
    eps,
    beta1,
    beta2,
    lr,
    weight_decay,
):
    """The update of Adamax over lists of tensors, in place."""
    check_steps(state_steps)
    run_step(
        "adamax_step",
        _single_tensor_adamax,
        params,
        grads,
        exp_avgs,
        exp_infs,
        state_steps,
        eps=eps,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        maximize=maximize,
        differentiable=differentiable,
    )

def _single_tensor_adamax(
    params,
    grads,
    exp_avgs,
    exp_infs,
    state_steps,
    *,
    eps,
    beta1,
    beta2,
    lr,
    weight_decay,
    maximize,
    differentiable=False,
):
    lr = _to_scalar(lr)
    for param, grad, exp_avg, exp_inf, step_t in zip(params, grads, exp_avgs, exp_infs, state_steps):
        step_t += 1
        if maximize:
            grad = -grad
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        param, grad, exp_avg, exp_inf = as_real(param, grad, exp_avg, exp_inf)
        exp_avg.lerp_(grad, 1 - beta1)
        if differentiable:
            candidates = cat([exp_inf.mul(beta2).unsqueeze(0), grad.abs().add_(eps).unsqueeze_(0)], 0)
            exp_inf.copy_(amax(candidates, 0, keepdim=False))
        else:
            maximum(exp_inf.mul_(beta2), grad.abs().add_(eps), out=exp_inf)
        correction = 1 - beta1 ** _get_value(step_t)
        param.addcdiv_(exp_avg, exp_inf, value=-_get_value(lr / correction))
