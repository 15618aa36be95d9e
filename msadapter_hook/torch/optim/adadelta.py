# Adadelta.
from .. import view_as_complex
from ._elementwise import (
    CAPTURABLE_DEVICES,
    ElementwiseOptimizer,
    as_real,
    check,
    check_lr,
    check_steps,
    run_step,
    updates,
    zeros_as,
)
from .optimizer import _get_value, _to_scalar

__all__ = ["Adadelta", "adadelta"]


class Adadelta(ElementwiseOptimizer):
    """Adadelta (PyTorch, torch.optim.Adadelta)."""

    _group_defaults = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _sparse_message = "Adadelta does not support sparse gradients"
    _columns = "square_avg", "acc_delta", "step"
    _capturable_devices = CAPTURABLE_DEVICES[:-1]

    def __init__(
        self,
        params,
        lr=1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay=0,
        foreach=None,
        *,
        capturable=False,
        maximize=False,
        differentiable=False,
    ):
        check_lr(lr)
        check(0.0 <= rho <= 1.0, f"Invalid rho value: {rho}")
        check(0.0 <= eps, f"Invalid epsilon value: {eps}")
        check(0.0 <= weight_decay, f"Invalid weight_decay value: {weight_decay}")
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    def _initial_state(self, p, group):
        return {"step": self._step_counter(p, group), "square_avg": zeros_as(p), "acc_delta": zeros_as(p)}


@updates(Adadelta)
def adadelta(
    params,
    grads,
    square_avgs,
    acc_deltas,
    state_steps,
    capturable=False,
    foreach=None,
    differentiable=False,
    has_complex=False,
    *,
    lr,
    rho,
    eps,
    weight_decay,
    maximize,
):
    """The update of Adadelta over lists of tensors, in place."""
    check_steps(state_steps)
    run_step(
        "adadelta_step",
        _single_tensor_adadelta,
        params,
        grads,
        square_avgs,
        acc_deltas,
        state_steps,
        lr=lr,
        rho=rho,
        eps=eps,
        weight_decay=weight_decay,
        maximize=maximize,
        differentiable=differentiable,
    )

def _single_tensor_adadelta(
    params, grads, square_avgs, acc_deltas, state_steps, *, lr, rho, eps, weight_decay, maximize, differentiable=False
):
    lr = _to_scalar(lr)
    if not differentiable:
        lr = _get_value(lr)
    for param, grad, square_avg, acc_delta, step in zip(params, grads, square_avgs, acc_deltas, state_steps):
        step += 1
        if maximize:
            grad = -grad
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        whole = param
        param, grad, square_avg, acc_delta = as_real(param, grad, square_avg, acc_delta)
        square_avg.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        std = square_avg.add(eps).sqrt_()
        delta = acc_delta.add(eps).sqrt_()
        if differentiable:
            delta = delta.clone()
        delta.div_(std).mul_(grad)
        acc_delta.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        whole.add_(view_as_complex(delta) if whole is not param else delta, alpha=-lr)
