# Adam for sparse gradients: only the rows that occur in the gradient are moved, and only their moments.
from .. import Tensor, enable_grad, no_grad, preserve_format, sparse_coo_tensor, zeros_like
from ._elementwise import check
from .optimizer import Optimizer, _get_value, _to_scalar

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam over sparse COO gradients (PyTorch, torch.optim.SparseAdam). RuntimeError for a dense gradient."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check(0.0 < lr, f"Invalid learning rate: {lr}")
        check(0.0 < eps, f"Invalid epsilon value: {eps}")
        for i in (0, 1):
            check(0.0 <= betas[i] < 1.0, f"Invalid beta parameter at index {i}: {betas[i]}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse = [
            [g, i] for g, group in enumerate(self.param_groups) for i, p in enumerate(group["params"]) if p.is_sparse
        ]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")

    @no_grad()
    def step(self, closure=None):
        """One update of every parameter that has a gradient. `closure` recomputes the loss, which is returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            lr = _get_value(_to_scalar(group["lr"]))
            for p in group["params"]:
                if p.grad is None:
                    continue
                if not p.grad.is_sparse:
                    raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["exp_avg"] = zeros_like(p, memory_format=preserve_format)
                    state["exp_avg_sq"] = zeros_like(p, memory_format=preserve_format)
                state["step"] += 1
                _update_rows(
                    p,
                    -p.grad if group["maximize"] else p.grad,
                    state,
                    beta1=beta1,
                    beta2=beta2,
                    lr=lr,
                    eps=group["eps"],
                )
        return loss


def _update_rows(param, grad, state, *, beta1, beta2, lr, eps):
    grad = grad.coalesce()
    indices, values = grad._indices(), grad._values()
    if values.numel() == 0:
        return
    exp_avg, exp_avg_sq, step = state["exp_avg"], state["exp_avg_sq"], state["step"]

    def like_grad(new_values):
        if grad.dim() == 0 or new_values.dim() == 0:
            return sparse_coo_tensor(size=grad.size(), dtype=grad.dtype)
        return sparse_coo_tensor(indices, new_values, grad.size())

    old_avg = exp_avg.sparse_mask(grad)._values()
    avg_update = values.sub(old_avg).mul_(1 - beta1)
    exp_avg.add_(like_grad(avg_update))
    old_sq = exp_avg_sq.sparse_mask(grad)._values()
    sq_update = values.pow(2).sub_(old_sq).mul_(1 - beta2)
    exp_avg_sq.add_(like_grad(sq_update))
    numerator = avg_update.add_(old_avg)
    denominator = sq_update.add_(old_sq).sqrt_().add_(eps)
    step_size = lr * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
    param.add_(like_grad(-step_size * numerator.div_(denominator)))
