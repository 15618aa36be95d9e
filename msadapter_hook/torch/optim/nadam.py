# NAdam: Adam with Nesterov momentum.
from .. import ones, tensor
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
from .optimizer import _get_scalar_dtype, _get_value, _to_scalar

__all__ = ["NAdam", "nadam"]


class NAdam(ElementwiseOptimizer):
    """NAdam (PyTorch, torch.optim.NAdam)."""

    _group_defaults = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }
    _sparse_message = "NAdam does not support sparse gradients"
    _columns = "exp_avg", "exp_avg_sq", "mu_product", "step"
    _capturable_state = "params, mu_products and state_steps"

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        momentum_decay=4e-3,
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
        check(0.0 <= momentum_decay, f"Invalid momentum_decay value: {momentum_decay}")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def _initial_state(self, p, group):
        if group["capturable"]:
            mu_product = ones((), dtype=_get_scalar_dtype(), device=p.device)
        else:
            mu_product = tensor(1.0, dtype=_get_scalar_dtype())
        return {
            "step": self._step_counter(p, group),
            "mu_product": mu_product,
            "exp_avg": zeros_as(p),
            "exp_avg_sq": zeros_as(p),
        }


@updates(NAdam)
def nadam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    mu_products,
    state_steps,
    decoupled_weight_decay=False,
    foreach=None,
    capturable=False,
    differentiable=False,
    has_complex=False,
    maximize=False,
    *,
    beta1,
    beta2,
    lr,
    weight_decay,
    momentum_decay,
    eps,
):
    """The update of NAdam over lists of tensors, in place."""
    check_steps(state_steps)
    run_step(
        "nadam_step",
        _single_tensor_nadam,
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        mu_products,
        state_steps,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        momentum_decay=momentum_decay,
        eps=eps,
        decoupled_weight_decay=decoupled_weight_decay,
        maximize=maximize,
        differentiable=differentiable,
    )

def _single_tensor_nadam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    mu_products,
    state_steps,
    *,
    beta1,
    beta2,
    lr,
    weight_decay,
    momentum_decay,
    eps,
    decoupled_weight_decay,
    maximize,
    differentiable=False,
):
    lr = _to_scalar(lr)
    for param, grad, exp_avg, exp_avg_sq, mu_product, step_t in zip(
        params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps
    ):
        if maximize:
            grad = -grad
        param, grad, exp_avg, exp_avg_sq = as_real(param, grad, exp_avg, exp_avg_sq)
        step_t += 1
        step = _get_value(step_t)
        correction2 = 1 - beta2**step
        if weight_decay != 0:
            if decoupled_weight_decay:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * momentum_decay)))
        mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * momentum_decay)))
        mu_product *= mu
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        denom = exp_avg_sq.div(correction2).sqrt()
        if differentiable:
            denom = denom.add(eps)
            # in-place products with recorded factors, so that gradients reach them
            mu_product_next = mu_product * mu_next
            grad = grad * (-lr * (1.0 - mu) / (1.0 - mu_product))
            momentum = exp_avg * (-lr * mu_next / (1.0 - mu_product_next))
            param.addcdiv_(grad, denom)
            param.addcdiv_(momentum, denom)
        else:
            product = _get_value(mu_product)
            denom.add_(eps)
            param.addcdiv_(grad, denom, value=_get_value(-lr * (1.0 - mu) / (1.0 - product)))
            param.addcdiv_(exp_avg, denom, value=_get_value((-lr * mu_next) / (1.0 - product * mu_next)))
