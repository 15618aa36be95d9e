# RMSprop, plain, centered, and with momentum.
from ._elementwise import (
    ElementwiseOptimizer,
    as_real,
    check,
    check_lr,
    check_steps,
    or_nones,
    run_step,
    updates,
    zeros_as,
)
from .optimizer import _get_value, _to_scalar

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(ElementwiseOptimizer):
    """RMSprop (PyTorch, torch.optim.RMSprop). Raises ValueError for hyperparameters out of range."""

    _group_defaults = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }
    _sparse_message = "RMSprop does not support sparse gradients"
    _columns = "square_avg", "grad_avg", "momentum_buffer", "step"
    _optional = {"grad_avg": "centered", "momentum_buffer": "momentum"}

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        check_lr(lr)
        check(0.0 <= eps, f"Invalid epsilon value: {eps}")
        check(0.0 <= momentum, f"Invalid momentum value: {momentum}")
        check(0.0 <= weight_decay, f"Invalid weight_decay value: {weight_decay}")
        check(0.0 <= alpha, f"Invalid alpha value: {alpha}")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def _initial_state(self, p, group):
        state = {"step": self._step_counter(p, group), "square_avg": zeros_as(p)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_as(p)
        if group["centered"]:
            state["grad_avg"] = zeros_as(p)
        return state


@updates(RMSprop)
def rmsprop(
    params,
    grads,
    square_avgs,
    grad_avgs,
    momentum_buffer_list,
    state_steps,
    foreach=None,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
    *,
    lr,
    alpha,
    eps,
    weight_decay,
    momentum,
    centered,
):
    """The update of RMSprop over lists of tensors, in place."""
    check_steps(state_steps)
    run_step(
        "rmsprop_step",
        _single_tensor_rmsprop,
        params,
        grads,
        square_avgs,
        grad_avgs,
        momentum_buffer_list,
        state_steps,
        lr=lr,
        alpha=alpha,
        eps=eps,
        weight_decay=weight_decay,
        momentum=momentum,
        centered=centered,
        maximize=maximize,
        differentiable=differentiable,
    )

def _single_tensor_rmsprop(
    params,
    grads,
    square_avgs,
    grad_avgs,
    momentum_buffer_list,
    state_steps,
    *,
    lr,
    alpha,
    eps,
    weight_decay,
    momentum,
    centered,
    maximize,
    differentiable=False,
):
    lr = _to_scalar(lr)
    if not differentiable:
        lr = _get_value(lr)
    for param, grad, square_avg, grad_avg, buffer, step in zip(
        params, grads, square_avgs, or_nones(grad_avgs), or_nones(momentum_buffer_list), state_steps
    ):
        step += 1
        if maximize:
            grad = -grad
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        param, grad, square_avg, grad_avg, buffer = as_real(param, grad, square_avg, grad_avg, buffer)
        square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if centered:
            grad_avg.lerp_(grad, 1 - alpha)
            avg = square_avg.addcmul(grad_avg, grad_avg, value=-1).sqrt_()
        else:
            avg = square_avg.sqrt()
        avg = avg.add(eps) if differentiable else avg.add_(eps)
        if momentum > 0:
            buffer.mul_(momentum).addcdiv_(grad, avg)
            param.add_(buffer, alpha=-lr)
        else:
            param.addcdiv_(grad, avg, value=-lr)
