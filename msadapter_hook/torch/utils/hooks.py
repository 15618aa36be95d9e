# Handles that remove a hook, and the order-keeping tables they point into.
import weakref
from collections import OrderedDict

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


class RemovableHandle:
    """Removes a hook from its table; works as a context manager (PyTorch, torch.utils.hooks.RemovableHandle).

    `extra_dict`: one more table (or a list of tables) with an entry under the same id.
    """

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        if extra_dict is None:
            extra_dict = []
        elif isinstance(extra_dict, (dict, OrderedDict)):
            extra_dict = [extra_dict]
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra_dict)

    def remove(self):
        """Removes the hook; a second call does nothing."""
        for table_ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            table = table_ref()
            if table is not None and self.id in table:
                del table[self.id]

    def __getstate__(self):
        if self.extra_dict_ref is None:
            return self.hooks_dict_ref(), self.id
        return self.hooks_dict_ref(), self.id, tuple(r() for r in self.extra_dict_ref)

    def __setstate__(self, state):
        table, self.id = state[0], state[1]
        # the table died with its module: a dead reference stands for it
        self.hooks_dict_ref = weakref.ref(OrderedDict() if table is None else table)
        extra = state[2] if len(state) > 2 and state[2] is not None else ()
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if d is None else d) for d in extra)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self):
        return self

    def __exit__(self, type, value, tb):
        self.remove()


def unserializable_hook(f):
    """Marks a hook that cannot be saved: a warning is given when its tensor or module is pickled."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor):
    """Warns about the hooks of a tensor that is being pickled without them."""
    hooks = getattr(tensor, "_backward_hooks", None)
    if not hooks:
        return
    import warnings

    for hook in hooks.values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can "
                "decorate the function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )
