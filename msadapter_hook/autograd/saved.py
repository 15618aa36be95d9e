"""Hooks on the tensors that a graph keeps: pack when saved, unpack when needed."""

import threading


class _Stack(threading.local):
    def __init__(self):
        self.hooks = []
        self.disabled = None


_stack = _Stack()


def current_hooks():
    """(pack, unpack) of the innermost context, or None."""
    return _stack.hooks[-1] if _stack.hooks else None


class saved_tensors_hooks:
    """Context: what is saved for backward goes through `pack_hook`, and comes back through `unpack_hook`.

    Source: PyTorch, torch.autograd.graph.saved_tensors_hooks. The recorded operations of the adapter keep no copies that a
    hook could move; the hooks apply to `autograd.Function`.
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self):
        if _stack.disabled is not None:
            raise RuntimeError(_stack.disabled)
        _stack.hooks.append((self.pack_hook, self.unpack_hook))

    def __exit__(self, *exc):
        _stack.hooks.pop()


class save_on_cpu(saved_tensors_hooks):
    """Context: saved tensors wait on the CPU. Source: PyTorch, torch.autograd.graph.save_on_cpu."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        super().__init__(lambda t: (t.device, t.cpu()), lambda packed: packed[1].to(packed[0]))


class disable_saved_tensors_hooks:
    """Context: setting hooks is an error with `message`. Source: PyTorch,
    torch.autograd.graph.disable_saved_tensors_hooks."""

    def __init__(self, message):
        self.message = message

    def __enter__(self):
        self.before, _stack.disabled = _stack.disabled, self.message

    def __exit__(self, *exc):
        _stack.disabled = self.before
