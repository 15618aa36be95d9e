"""The accumulator of a leaf that requires grad."""

import itertools


class Leaf:
    """Where the gradient of a leaf gathers: `grad` (a tensor or None), hooks on the gradient, hooks after it has
    been added. The graph keeps it alive, as PyTorch's AccumulateGrad keeps its variable."""

    __slots__ = ("grad", "hooks", "post_hooks", "tensor", "__weakref__", "sequence", "public")

    def __init__(self, tensor):
        self.grad = None
        self.hooks = None
        self.post_hooks = None
        self.tensor = tensor  # weak reference, for the hooks that get the tensor
        self.sequence = 0
        self.public = None


class UnkeptLeaf(Leaf):
    """The leaf that a view made without recording claims to be: gradients end here, and nobody keeps them."""

    __slots__ = ()

    @property
    def grad(self):
        return None

    @grad.setter
    def grad(self, new):
        pass


_handles = itertools.count()


class RemovableHandle:
    """Takes a hook back: `remove()`, or leaving a `with` block. Source: PyTorch, torch.utils.hooks.RemovableHandle."""

    __module__ = "torch.utils.hooks"
    __slots__ = ("hooks", "id", "__weakref__")

    def __init__(self, hooks):
        self.hooks = hooks
        self.id = next(_handles)

    def remove(self):
        self.hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()
