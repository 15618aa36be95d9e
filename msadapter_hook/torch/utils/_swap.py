# Exchanging two tensors in place, so that all who hold the one see the other.


def swap_tensors(t1, t2):
    """Swaps data, type and attributes of two tensors (PyTorch, torch.utils.swap_tensors).

    RuntimeError when one of them has gradient history that others could still use."""
    if t1 is t2:
        return
    for t in (t1, t2):
        if not t.is_leaf:
            raise RuntimeError("Cannot swap a tensor that is part of the autograd graph; detach it first")
    if set(vars(t1) if hasattr(t1, "__dict__") else ()) or set(vars(t2) if hasattr(t2, "__dict__") else ()):
        raise NotImplementedError("torch.utils.swap_tensors: tensors with attributes of their own are not supported")
    if t1.requires_grad != t2.requires_grad:
        raise NotImplementedError("torch.utils.swap_tensors: both tensors must require gradients, or neither")
    first, second = t1.detach(), t2.detach()
    t1.data, t2.data = second, first
    t1.grad, t2.grad = t2.grad, t1.grad
