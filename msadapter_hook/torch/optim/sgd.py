# Stochastic gradient descent with momentum, Nesterov's variant and weight decay.
from .. import Tensor, clone
from ._elementwise import ElementwiseOptimizer, check, check_fused, check_lr, run_step, updates
from .optimizer import _to_scalar

__all__ = ["SGD", "sgd"]


class SGD(ElementwiseOptimizer):
    """Stochastic gradient descent (PyTorch, torch.optim.SGD).

    Parameters of any floating or complex dtype. ValueError for negative hyperparameters, or `nesterov` without
    momentum or with dampening.
    """

    _columns = ("momentum_buffer",)
    _group_defaults = {"nesterov": False, "maximize": False, "foreach": None, "differentiable": False, "fused": False}

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        check_lr(lr)
        check(momentum >= 0.0, f"Invalid momentum value: {momentum}")
        check(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        check_fused(self, fused, foreach, differentiable)

    def _collect(self, group):
        if group["momentum"] != 0:
            return super()._collect(group)
        # without momentum there is no state, and state_dict must not show any
        params = [p for p in group["params"] if p.grad is not None]
        return params, [p.grad for p in params], [None] * len(params)

    def _update(self, group, params, grads, states):
        momentum = group["momentum"]
        buffers = [s.get("momentum_buffer") for s in states] if momentum != 0 else [None] * len(params)
        sgd(params, grads, buffers, **self._options(group))
        if momentum != 0:
            for state, buffer in zip(states, buffers):
                state["momentum_buffer"] = buffer


@updates(SGD)
def sgd(
    params,
    d_p_list,
    momentum_buffer_list,
    has_sparse_grad=False,
    foreach=None,
    differentiable=False,
    fused=None,
    grad_scale=None,
    found_inf=None,
    *,
    weight_decay,
    momentum,
    lr,
    dampening,
    nesterov,
    maximize,
):
    """The update of SGD over lists; entries of `momentum_buffer_list` that are None are made and written back."""
    if grad_scale is not None or found_inf is not None:
        d_p_list = _unscaled(d_p_list, grad_scale, found_inf)
        if d_p_list is None:
            return
    run_step(
        "sgd_step",
        _single_tensor_sgd,
        params,
        d_p_list,
        momentum_buffer_list,
        weight_decay=weight_decay,
        momentum=momentum,
        lr=lr,
        dampening=dampening,
        nesterov=nesterov,
        maximize=maximize,
        differentiable=differentiable,
    )


def _unscaled(grads, grad_scale, found_inf):
    """Gradients divided by a GradScaler's scale; None when the step is to be skipped."""
    if found_inf is not None and float(found_inf):
        return None
    if grad_scale is None:
        return grads
    return [g.div_(grad_scale) for g in grads]


def _single_tensor_sgd(
    params,
    grads,
    momentum_buffer_list,
    *,
    weight_decay,
    momentum,
    lr,
    dampening,
    nesterov,
    maximize,
    differentiable=False,
):
    lr = _to_scalar(lr)
    tracked_lr = isinstance(lr, Tensor) and lr.requires_grad
    if isinstance(lr, Tensor) and not tracked_lr:
        lr = lr.item()
    for i, param in enumerate(params):
        grad = grads[i] if not maximize else -grads[i]
        if isinstance(weight_decay, Tensor) and weight_decay.requires_grad:
            grad = grad.addcmul(param.clone(), weight_decay)
        elif weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        if momentum != 0:
            buffer = momentum_buffer_list[i]
            if buffer is None:
                buffer = momentum_buffer_list[i] = clone(grad).detach()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(buffer, alpha=momentum) if nesterov else buffer
        if tracked_lr:
            param.addcmul_(grad, lr, value=-1)
        else:
            param.add_(grad, alpha=-lr)
