"""What autograd adds to Tensor: backward, hooks, retained gradients, the name of its gradient."""

import weakref
from collections import OrderedDict

from msadapter_hook import report
from msadapter_hook.prims import origin
from msadapter_hook.tape import enable_grad
from msadapter_hook.tensor import RemovableHandle, Tensor

from . import api
from .engine import Tap
from .graph import public_node


def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Sum the gradients of this tensor with respect to the leaves into their `.grad`. Source: PyTorch, Tensor.backward."""
    if report.enabled:
        report.measure("torch.Tensor.backward", api.backward, self, gradient, retain_graph, create_graph, inputs=inputs)
        return
    api.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


def _history(tensor):
    with enable_grad():
        return origin(tensor.value)


def _tap(value):
    node = value.node
    if node.taps is None:
        node.taps = {}
    tap = node.taps.get(value.index)
    if tap is None:
        tap = node.taps[value.index] = Tap()
    return tap


def register_hook(self, hook):
    """Call `hook(grad)` once with the whole gradient of this tensor; it may give another. Source: PyTorch,
    Tensor.register_hook."""
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self._leaf is not None:
        if self._leaf.hooks is None:
            self._leaf.hooks = OrderedDict()
        hooks = self._leaf.hooks
    else:
        hooks = _tap(_history(self)).hooks
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_post_accumulate_grad_hook(self, hook):
    """Call `hook(tensor)` after the gradient of this leaf has been added to `.grad`. Source: PyTorch,
    Tensor.register_post_accumulate_grad_hook."""
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self._leaf is None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if self._leaf.post_hooks is None:
        self._leaf.post_hooks = OrderedDict()
    handle = RemovableHandle(self._leaf.post_hooks)
    self._leaf.post_hooks[handle.id] = hook
    return handle


def retain_grad(self):
    """Keep the gradient of this tensor, which is no leaf, in `.grad`. Source: PyTorch, Tensor.retain_grad."""
    if not self.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if self._leaf is None:
        _tap(_history(self)).retained = weakref.ref(self)
        self._extra_state()["retains"] = True


def retains_grad(self):
    """Whether the gradient is kept although this is no leaf."""
    return bool(self._extra is not None and self._extra.get("retains")) and self._leaf is None


def grad_fn(self):
    """The node that passes the gradient on, or None for a leaf. Source: PyTorch, Tensor.grad_fn."""
    if self._leaf is not None or not self.requires_grad:
        return None
    value = _history(self)
    return public_node(value.node) if value.node is not None else None


def output_nr(self):
    if self._leaf is not None or not self.requires_grad:
        return 0
    return _history(self).index


def _never(text):
    def refuse(self):
        raise RuntimeError(text)

    return refuse


def backward_hooks(self):
    """The hooks on the gradient of a leaf, by the numbers of their handles; None where there are none."""
    return self._leaf.hooks if self._leaf is not None else None


def _set_backward_hooks(self, hooks):
    if hooks and self._leaf is not None:
        self._leaf.hooks = hooks


def install():
    for method in (backward, register_hook, register_post_accumulate_grad_hook, retain_grad):
        setattr(Tensor, method.__name__, method)
    Tensor.retains_grad = property(retains_grad)
    Tensor.grad_fn = property(grad_fn)
    Tensor._grad_fn = property(grad_fn, None, _never("Deletion of _grad_fn not allowed. Detach tensor instead!"))
    Tensor._backward_hooks = property(backward_hooks, _set_backward_hooks, _never("Deletion of _backwards_hooks not allowed!"))
    Tensor.output_nr = property(output_nr)


