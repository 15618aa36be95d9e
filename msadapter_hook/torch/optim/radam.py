# RAdam: Adam with a rectified adaptive rate.
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

__all__ = ["RAdam", "radam"]


class RAdam(ElementwiseOptimizer):
    """RAdam (PyTorch, torch.optim.RAdam)."""

    _group_defaults = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "capturable": False,
    }
    _sparse_message = "RAdam does not support sparse gradients"
    _columns = "exp_avg", "exp_avg_sq", "step"

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
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
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    def _initial_state(self, p, group):
        return {"step": self._step_counter(p, group), "exp_avg": zeros_as(p), "exp_avg_sq": zeros_as(p)}


@updates(RAdam)
def radam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    state_steps,
    decoupled_weight_decay=False,
    foreach=None,
    differentiable=False,
    capturable=False,
    has_complex=False,
    maximize=False,
    *,
    beta1,
    beta2,
    lr,
    weight_decay,
    eps,
):
    """The update of RAdam over lists of tensors, in place."""
    check_steps(state_steps)
    run_step(
        "radam_step",
        _single_tensor_radam,
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        state_steps,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        decoupled_weight_decay=decoupled_weight_decay,
        maximize=maximize,
        differentiable=differentiable,
    )

def _single_tensor_radam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    state_steps,
    *,
    beta1,
    beta2,
    lr,
    weight_decay,
    eps,
    decoupled_weight_decay,
    maximize,
    differentiable=False,
):
    lr = _to_scalar(lr)
    if not differentiable:
        lr = _get_value(lr)
    rho_inf = 2 / (1 - beta2) - 1  # the length of the longest moving average
    for param, grad, exp_avg, exp_avg_sq, step_t in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps):
        if maximize:
            grad = -grad
        param, grad, exp_avg, exp_avg_sq = as_real(param, grad, exp_avg, exp_avg_sq)
        step_t += 1
        step = _get_value(step_t)
        if weight_decay != 0:
            if decoupled_weight_decay:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        correction1 = 1 - beta1**step
        correction2 = 1 - beta2**step
        corrected = exp_avg / correction1
        rho = rho_inf - 2 * step * (beta2**step) / correction2
        if rho > 5.0:
            rectified = ((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)) ** 0.5
            root = exp_avg_sq.sqrt()
            root = root.add(eps) if differentiable else root.add_(eps)
            adaptive = (correction2**0.5) / root
            param.add_(corrected * lr * adaptive * rectified, alpha=-1.0)
        else:
            param.add_(corrected * lr, alpha=-1.0)
