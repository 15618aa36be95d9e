# Muon: momentum whose matrix is made orthogonal by Newton-Schulz steps before it is applied.
import math

from .. import Tensor, addmm
from ._elementwise import ElementwiseOptimizer, check, run_step, zeros_as

__all__ = ["Muon"]


def _zeropower_via_newtonschulz(grad, ns_coefficients, ns_steps, eps):
    """An approximation of the orthogonal factor of the matrix `grad`, in bfloat16."""
    if ns_steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(grad.shape) != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(ns_coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = ns_coefficients
    ortho = grad.bfloat16()
    tall = grad.size(0) > grad.size(1)
    if tall:
        ortho = ortho.T
    # a spectral norm of at most one is what the iteration needs
    ortho.div_(ortho.norm().clamp(min=eps))
    for _ in range(ns_steps):
        gram = ortho @ ortho.T
        update = addmm(gram, gram, gram, beta=b, alpha=c)
        ortho = addmm(ortho, update, ortho, beta=a)
    return ortho.T if tall else ortho


def _adjust_lr(lr, adjust_lr_fn, shape):
    rows, cols = shape[:2]
    if adjust_lr_fn is None or adjust_lr_fn == "original":
        return lr * math.sqrt(max(1, rows / cols))
    if adjust_lr_fn == "match_rms_adamw":
        return lr * (0.2 * math.sqrt(max(rows, cols)))
    return lr


class Muon(ElementwiseOptimizer):
    """Muon (PyTorch, torch.optim.Muon). Parameters must be matrices."""

    def __init__(
        self,
        params,
        lr=1e-3,
        weight_decay=0.1,
        momentum=0.95,
        nesterov=True,
        ns_coefficients=(3.4445, -4.775, 2.0315),
        eps=1e-7,
        ns_steps=5,
        adjust_lr_fn=None,
    ):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check(0.0 <= lr, f"Learning rate should be >= 0 but is: {lr}")
        check(0.0 <= momentum, f"momentum should be >= 0 but is: {momentum}")
        check(0.0 <= weight_decay, f"weight decay should be >= 0 but is: {weight_decay}")
        check(
            adjust_lr_fn is None or adjust_lr_fn in ("original", "match_rms_adamw"),
            f"Adjust learning rate function {adjust_lr_fn} is not supported",
        )
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "nesterov": nesterov,
                "ns_coefficients": ns_coefficients,
                "eps": eps,
                "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}"
                    )

    _sparse_message = "Muon does not support sparse gradients"

    def _initial_state(self, p, group):
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        return {"momentum_buffer": zeros_as(p.grad)}

    def _update(self, group, params, grads, states):
        names = ("lr", "weight_decay", "momentum", "nesterov", "ns_coefficients", "eps", "ns_steps", "adjust_lr_fn")
        run_step(
            "muon_step",
            _single_tensor_muon,
            params,
            grads,
            [s["momentum_buffer"] for s in states],
            **{name: group[name] for name in names},
        )


Muon.__module__ = __name__.rpartition(".")[0]


def _single_tensor_muon(
    params,
    grads,
    buffers,
    *,
    lr,
    weight_decay,
    momentum,
    nesterov,
    ns_coefficients,
    eps,
    ns_steps,
    adjust_lr_fn,
    differentiable=False,
):
    lr = lr.item() if isinstance(lr, Tensor) else lr
    for param, grad, buffer in zip(params, grads, buffers):
        buffer.lerp_(grad, 1 - momentum)
        update = grad.lerp(buffer, momentum) if nesterov else buffer
        update = _zeropower_via_newtonschulz(update, ns_coefficients, ns_steps, eps)
        param.mul_(1 - lr * weight_decay)
        param.add_(update, alpha=-_adjust_lr(lr, adjust_lr_fn, param.shape))
