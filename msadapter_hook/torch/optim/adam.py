# Adam and, with decoupled weight decay, AdamW: one update rule for both.
from .. import Tensor, maximum
from ._elementwise import (
    ElementwiseOptimizer,
    as_real,
    check,
    check_betas,
    check_fused,
    check_lr,
    check_lr_foreach,
    check_steps,
    or_nones,
    run_step,
    updates,
    zeros_as,
)
from .optimizer import _get_value, _to_scalar
from .sgd import _unscaled

__all__ = ["Adam", "adam"]


class Adam(ElementwiseOptimizer):
    """Adam (PyTorch, torch.optim.Adam). Raises ValueError for hyperparameters out of range."""

    _group_defaults = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }
    _sparse_message = "Adam does not support sparse gradients, please consider SparseAdam instead"
    _columns = "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"
    _optional = {"max_exp_avg_sq": "amsgrad"}

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        check_lr_foreach(lr, foreach, capturable)
        check_lr(lr)
        check(0.0 <= eps, f"Invalid epsilon value: {eps}")
        check_betas(betas)
        check(0.0 <= weight_decay, f"Invalid weight_decay value: {weight_decay}")
        self._check_tensor_betas(betas, foreach, capturable)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )
        check_fused(self, fused, foreach, differentiable)

    @staticmethod
    def _check_tensor_betas(betas, foreach, capturable):
        kinds = {isinstance(b, Tensor) for b in betas}
        if len(kinds) == 2:
            raise ValueError("betas must be either both floats or both Tensors")
        if True in kinds:
            for i, beta in enumerate(betas):
                if not capturable and foreach:
                    raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
                if beta.numel() != 1:
                    raise ValueError(f"Tensor betas[{i}] must be 1-element")

    def _initial_state(self, p, group):
        state = {"step": self._step_counter(p, group), "exp_avg": zeros_as(p), "exp_avg_sq": zeros_as(p)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_as(p)
        return state


@updates(Adam)
def adam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    state_steps,
    foreach=None,
    capturable=False,
    differentiable=False,
    fused=None,
    grad_scale=None,
    found_inf=None,
    has_complex=False,
    decoupled_weight_decay=False,
    *,
    amsgrad,
    beta1,
    beta2,
    lr,
    weight_decay,
    eps,
    maximize,
):
    """The update of Adam over lists of tensors, in place."""
    check_steps(state_steps)
    if grad_scale is not None or found_inf is not None:
        grads = _unscaled(grads, grad_scale, found_inf)
        if grads is None:
            return
    run_step(
        "adam_step",
        _single_tensor_adam,
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        state_steps,
        amsgrad=amsgrad,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
        decoupled_weight_decay=decoupled_weight_decay,
        differentiable=differentiable,
    )

def _single_tensor_adam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    state_steps,
    *,
    amsgrad,
    beta1,
    beta2,
    lr,
    weight_decay,
    eps,
    maximize,
    decoupled_weight_decay=False,
    differentiable=False,
):
    lr = _to_scalar(lr)
    if not differentiable:
        beta1, beta2 = _get_value(beta1), _get_value(beta2)
    elif isinstance(beta1, Tensor):
        beta1, beta2 = _to_scalar(beta1), _to_scalar(beta2)
    for param, grad, exp_avg, exp_avg_sq, max_sq, step_t in zip(
        params, grads, exp_avgs, exp_avg_sqs, or_nones(max_exp_avg_sqs), state_steps
    ):
        if maximize:
            grad = -grad
        step_t += 1
        if weight_decay != 0:
            if decoupled_weight_decay:
                param.mul_(1 - lr * weight_decay)
            elif differentiable and isinstance(weight_decay, Tensor):
                grad = grad.addcmul(param.clone(), weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        param, grad, exp_avg, exp_avg_sq, max_sq = as_real(param, grad, exp_avg, exp_avg_sq, max_sq)
        exp_avg.lerp_(grad, 1 - beta1)
        if differentiable and isinstance(beta2, Tensor):
            exp_avg_sq.lerp_(grad.square(), 1 - beta2)
        else:
            exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        step = step_t if differentiable else _get_value(step_t)
        correction1 = 1 - beta1**step
        correction2 = 1 - beta2**step
        step_size = lr / correction1
        second = exp_avg_sq
        if amsgrad:
            if differentiable:
                max_sq.copy_(maximum(max_sq.clone(), exp_avg_sq))
            else:
                maximum(max_sq, exp_avg_sq, out=max_sq)
            second = max_sq
        if differentiable:
            # the numbers are tensors here and gradients flow through them, so they enter by multiplication
            if amsgrad:
                second = second.clone()
            denom = (second.sqrt() / (correction2.sqrt() * -step_size)).add_(eps / -step_size)
            param.addcdiv_(exp_avg.clone(), denom)
        else:
            denom = (second.sqrt() / correction2**0.5).add_(eps)
            param.addcdiv_(exp_avg, denom, value=-_get_value(step_size))
