# Adafactor: the second moment of a matrix kept as a row and a column.
from .. import Tensor, finfo, norm
from ._elementwise import ElementwiseOptimizer, check, check_steps, run_step, updates, zeros_as
from .optimizer import _get_value, _new_step, _to_scalar

__all__ = ["Adafactor", "adafactor"]


class Adafactor(ElementwiseOptimizer):
    """Adafactor (PyTorch, torch.optim.Adafactor). Real parameters only."""

    _group_defaults = {"foreach": None}
    _sparse_message = "Adafactor does not support sparse gradients"
    _columns = "row_var", "col_var", "variance", "step"

    def __init__(
        self,
        params,
        lr=1e-2,
        beta2_decay=-0.8,
        eps=(None, 1e-3),
        d=1.0,
        weight_decay=0.0,
        *,
        foreach=None,
        maximize=False,
    ):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check(0.0 <= lr, f"Learning rate should be >= 0 but is: {lr}")
        check(0.0 >= beta2_decay, f"beta2_decay should be <= 0 but is: {beta2_decay}")
        check(eps[0] is None or 0.0 <= eps[0], f"epsilon1 should be >= 0 but is: {eps[0]}")
        check(0.0 <= eps[1], f"epsilon2 should be >= 0 but is: {eps[1]}")
        check(1.0 <= d, f"Clipping threshold d should be >= 1 but is: {d}")
        check(0.0 <= weight_decay, f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(
            params,
            {
                "lr": lr,
                "beta2_decay": beta2_decay,
                "eps": eps,
                "d": d,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
            },
        )

    def _initial_state(self, p, group):
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        if p.grad.dim() > 1:
            rows, cols = list(p.grad.shape), list(p.grad.shape)
            rows[-1] = cols[-2] = 1
            return {"step": _new_step(), "row_var": p.grad.new_zeros(rows), "col_var": p.grad.new_zeros(cols)}
        return {"step": _new_step(), "variance": zeros_as(p.grad)}

    def _options(self, group):
        options = super()._options(group)
        options["eps1"], options["eps2"] = group["eps"]
        return options

    def _column(self, name, states, group):
        return [s.get(name) for s in states]  # a matrix has rows and columns, other parameters a variance


# the class is public as torch.optim.Adafactor; its file's name is not
Adafactor.__module__ = __name__.rpartition(".")[0]


@updates(Adafactor)
def adafactor(
    params,
    grads,
    row_vars,
    col_vars,
    variances,
    state_steps,
    foreach=None,
    grad_scale=None,
    found_inf=None,
    has_complex=False,
    *,
    d,
    lr,
    beta2_decay,
    weight_decay,
    eps1,
    eps2,
    maximize,
):
    """The update of Adafactor over lists of tensors, in place."""
    check_steps(state_steps)
    if grad_scale is not None or found_inf is not None:
        raise RuntimeError("Grad scaling should occur outside of optimizer.step()")
    run_step(
        "adafactor_step",
        _single_tensor_adafactor,
        params,
        grads,
        row_vars,
        col_vars,
        variances,
        state_steps,
        d=d,
        lr=lr,
        beta2_decay=beta2_decay,
        weight_decay=weight_decay,
        eps1=eps1,
        eps2=eps2,
        maximize=maximize,
    )


def _mean_square(grad, dim):
    return norm(grad, dim=dim, keepdim=True).square_().div_(grad.size(dim))


def _single_tensor_adafactor(
    params,
    grads,
    row_vars,
    col_vars,
    variances,
    state_steps,
    *,
    d,
    lr,
    beta2_decay,
    weight_decay,
    eps1,
    eps2,
    maximize,
    differentiable=False,
):
    lr = _to_scalar(lr)
    for param, grad, row_var, col_var, variance, step_t in zip(
        params, grads, row_vars, col_vars, variances, state_steps
    ):
        if maximize:
            grad = -grad
        floor = finfo(param.dtype).eps if eps1 is None else eps1
        step_t += 1
        step = step_t.item()
        weight = step**beta2_decay
        rate = max(eps2, param.norm(2).item() / (param.numel() ** 0.5)) * min(lr, 1 / (step**0.5))
        if weight_decay != 0:
            param.mul_(1 - lr * weight_decay)
        if grad.dim() > 1:
            row_var.lerp_(_mean_square(grad, -1), weight)
            col_var.lerp_(_mean_square(grad, -2), weight)
            estimate = row_var @ col_var
            estimate.div_(row_var.mean(dim=-2, keepdim=True).clamp_(min=floor))
        else:
            variance.lerp_(grad * grad, weight)
            estimate = variance.clone()
        # the square because the estimate is of squares
        update = estimate.clamp_(min=floor * floor).rsqrt_()
        update.mul_(grad)
        clip = max(1.0, update.norm(2).item() / ((update.numel() ** 0.5) * d))
        param.add_(update, alpha=_get_value(-rate / clip))
