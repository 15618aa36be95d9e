"""The graph as users see it: `grad_fn` nodes with PyTorch's names, edges, hooks on nodes."""

import weakref
from collections import OrderedDict
from typing import NamedTuple

from msadapter_hook.tape import enable_grad
from msadapter_hook.tensor import RemovableHandle

_made = weakref.WeakValueDictionary()


class Node:
    """A node of the backward graph. Source: PyTorch, torch.autograd.graph.Node."""

    __slots__ = ("_node", "__weakref__")
    __module__ = "torch.autograd.graph"

    def __init__(self, node):
        self._node = node

    def name(self):
        """The name of the gradient, such as `MulBackward0`."""
        return self._node.operator or _default_name(self._node)

    @property
    def next_functions(self):
        """(node, output number) for each differentiable input."""
        return tuple([_edge(v) for v in self._node.inputs])

    @property
    def metadata(self):
        """A dictionary for the user."""
        if self._node.metadata is None:
            self._node.metadata = {}
        return self._node.metadata

    def _sequence_nr(self):
        return self._node.sequence

    def register_hook(self, fn):
        """Call `fn(grad_inputs, grad_outputs)` when the node has run; it may give other gradients."""
        if self._node.hooks is None:
            self._node.hooks = OrderedDict()
        handle = RemovableHandle(self._node.hooks)
        self._node.hooks[handle.id] = fn
        return handle

    def register_prehook(self, fn):
        """Call `fn(grad_outputs)` before the node runs; it may give other gradients."""
        if self._node.prehooks is None:
            self._node.prehooks = OrderedDict()
        handle = RemovableHandle(self._node.prehooks)
        self._node.prehooks[handle.id] = fn
        return handle

    def __getattr__(self, name):
        if name.startswith("_saved_"):
            from .saved import saved_attribute

            return saved_attribute(self._node, name[len("_saved_"):])
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __repr__(self):
        return f"<{self.name()} object at {id(self._node):#x}>"

    def __eq__(self, other):
        return isinstance(other, Node) and other._node is self._node

    def __hash__(self):
        return hash(self._node)


class AccumulateGrad:
    """The end of the graph at a leaf. Source: PyTorch, AccumulateGrad."""

    __slots__ = ("_leaf", "__weakref__")
    __module__ = "torch.autograd.graph"

    def __init__(self, leaf):
        self._leaf = leaf

    def name(self):
        return "torch::autograd::AccumulateGrad"

    next_functions = ()

    @property
    def variable(self):
        return self._leaf.tensor()

    def register_hook(self, fn):
        """Call `fn((), (grad,))` after the gradient has been added."""
        if self._leaf.post_hooks is None:
            self._leaf.post_hooks = OrderedDict()
        handle = RemovableHandle(self._leaf.post_hooks)
        self._leaf.post_hooks[handle.id] = lambda tensor: fn((), (tensor.grad,))
        return handle

    def __repr__(self):
        return f"<AccumulateGrad object at {id(self._leaf):#x}>"

    def __eq__(self, other):
        return isinstance(other, AccumulateGrad) and other._leaf is self._leaf

    def __hash__(self):
        return hash(self._leaf)


class GradientEdge(NamedTuple):
    """One place where a gradient flows: a node and the number of its output. Source: PyTorch,
    torch.autograd.graph.GradientEdge."""

    node: object
    output_nr: int


def _default_name(node):
    return "".join(p[:1].upper() + p[1:] for p in node.primitive.name.split("_")) + "Backward0"


def public_node(node):
    """The user's view of a tape node; always the same object while somebody holds it."""
    found = _made.get(id(node))
    if found is None or found._node is not node:
        found = node.primitive.public(node) if hasattr(node.primitive, "public") else Node(node)
        _made[id(node)] = found
    return found


def _accumulator(leaf):
    found = _made.get(id(leaf))
    if found is None or getattr(found, "_leaf", None) is not leaf:
        found = _made[id(leaf)] = AccumulateGrad(leaf)
    return found


def _edge(value):
    if not value.requires_grad:
        return (None, 0)
    if value.leaf is not None:
        return (_accumulator(value.leaf), 0)
    return (public_node(value.node), value.index)


def gradient_edge_of(tensor):
    """The edge at which this tensor's gradient flows. Source: PyTorch, torch.autograd.graph.get_gradient_edge."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    with enable_grad():
        return GradientEdge(*_edge(tensor.value))
