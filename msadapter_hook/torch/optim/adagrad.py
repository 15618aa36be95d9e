# Adagrad, for dense and sparse gradients.
from .. import full_like, preserve_format, sparse_coo_tensor
from ._elementwise import ElementwiseOptimizer, as_real, check, check_fused, check_lr, check_steps, run_step, updates
from .optimizer import _get_value, _to_scalar
from .sgd import _unscaled

__all__ = ["Adagrad", "adagrad"]


class Adagrad(ElementwiseOptimizer):
    """Adagrad (PyTorch, torch.optim.Adagrad). Its state exists from the start, before the first gradient."""

    _group_defaults = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}
    _columns = "sum", "step"

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0,
        weight_decay=0,
        initial_accumulator_value=0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ):
        check_lr(lr)
        check(0.0 <= lr_decay, f"Invalid lr_decay value: {lr_decay}")
        check(0.0 <= weight_decay, f"Invalid weight_decay value: {weight_decay}")
        check(0.0 <= initial_accumulator_value, f"Invalid initial_accumulator_value value: {initial_accumulator_value}")
        check(0.0 <= eps, f"Invalid epsilon value: {eps}")
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        check_fused(self, fused, foreach, differentiable)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p] = self._initial_state(p, group)

    def _initial_state(self, p, group):
        start = group["initial_accumulator_value"]
        if p.is_complex():
            start = complex(start, start)
        return {
            "step": self._step_counter(p, group),
            "sum": full_like(p, start, memory_format=preserve_format),
        }

    def share_memory(self):
        """Moves the state into shared memory."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()


@updates(Adagrad)
def adagrad(
    params,
    grads,
    state_sums,
    state_steps,
    fused=None,
    grad_scale=None,
    found_inf=None,
    has_sparse_grad=False,
    foreach=None,
    differentiable=False,
    has_complex=False,
    *,
    lr,
    weight_decay,
    lr_decay,
    eps,
    maximize,
):
    """The update of Adagrad over lists of tensors, in place."""
    check_steps(state_steps)
    if grad_scale is not None or found_inf is not None:
        grads = _unscaled(grads, grad_scale, found_inf)
        if grads is None:
            return
    run_step(
        "adagrad_step",
        _single_tensor_adagrad,
        params,
        grads,
        state_sums,
        state_steps,
        lr=lr,
        weight_decay=weight_decay,
        lr_decay=lr_decay,
        eps=eps,
        maximize=maximize,
        differentiable=differentiable,
    )

def _single_tensor_adagrad(
    params, grads, state_sums, state_steps, *, lr, weight_decay, lr_decay, eps, maximize, differentiable=False
):
    lr = _to_scalar(lr)
    if not differentiable:
        lr = _get_value(lr)
    for param, grad, state_sum, step_t in zip(params, grads, state_sums, state_steps):
        step_t += 1
        step = _get_value(step_t)
        if maximize:
            grad = -grad
        if weight_decay != 0:
            if grad.is_sparse:
                raise RuntimeError("weight_decay option is not compatible with sparse gradients")
            grad = grad.add(param, alpha=weight_decay)
        rate = lr / (1 + (step - 1) * lr_decay)
        if grad.is_sparse:
            _sparse_update(param, grad.coalesce(), state_sum, rate, eps)
            continue
        param, grad, state_sum = as_real(param, grad, state_sum)
        state_sum.addcmul_(grad, grad, value=1)
        std = state_sum.sqrt() + eps if differentiable else state_sum.sqrt().add_(eps)
        param.addcdiv_(grad, std, value=-rate)


def _sparse_update(param, grad, state_sum, rate, eps):
    indices, values = grad._indices(), grad._values()

    def like_grad(new_values):
        return sparse_coo_tensor(indices, new_values, grad.size())

    state_sum.add_(like_grad(values.pow(2)))
    std_values = state_sum.sparse_mask(grad)._values().sqrt_().add_(eps)
    param.add_(like_grad(values / std_values), alpha=-rate)
