"""A hook on several tensors at once."""

import threading

from .passes import current_pass


class _Handles:
    """Removes all the hooks that one registration made."""

    def __init__(self, handles):
        self.handles = handles

    def remove(self):
        for h in self.handles:
            h.remove()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Call `fn` once in a backward pass: with all gradients when the last of `tensors` has its own (mode "all", None for those
    that get none), or with the first one (mode "any"). Source: PyTorch, torch.autograd.graph.register_multi_grad_hook."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(tensors)
    if not all(t.requires_grad for t in tensors):
        raise AssertionError("Expected gradient function to be set")
    lock = threading.Lock()
    seen = {}

    def of_pass():
        current = current_pass()
        state = seen.get("state")
        if state is None or state[0] is not current:
            state = seen["state"] = (current, [None] * len(tensors), [0], [False])
        return state

    def watch(i):
        def hook(grad):
            with lock:
                current, grads, count, called = of_pass()
                if mode == "any":
                    if called[0]:
                        return
                    called[0] = True
                    ready = True
                else:
                    grads[i] = grad
                    count[0] += 1
                    ready = count[0] == current.reached(tensors)
            if ready:
                fn(grad) if mode == "any" else fn(grads)

        return hook

    return _Handles([t.register_hook(watch(i)) for i, t in enumerate(tensors)])
