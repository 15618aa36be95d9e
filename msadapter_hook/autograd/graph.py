"""The graph as users see it: `grad_fn` nodes with PyTorch's names, edges, hooks on nodes."""

import functools
import weakref
from collections import OrderedDict
from typing import NamedTuple

from msadapter_hook.prims import origin
from msadapter_hook.tape import Value, enable_grad
from msadapter_hook.tape.recording import state
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
        """(node, output number) for each differentiable input of the operator."""
        return tuple(_edges(self._node))

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

    def register_prehook(self, fn):
        """Call `fn((grad,))` before the gradient is added; it may give another."""
        if self._leaf.hooks is None:
            self._leaf.hooks = OrderedDict()
        handle = RemovableHandle(self._leaf.hooks)

        def before(grad):
            result = fn((grad,))
            return result[0] if isinstance(result, tuple) else result

        self._leaf.hooks[handle.id] = before
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


@functools.cache
def _class(name):
    return type(name, (Node,), {"__slots__": (), "__module__": "torch.autograd.graph"})


def _class_of(node):
    """The class of the user's view of a node; it bears the name of the gradient."""
    return _class(node.operator or _default_name(node))


def public_node(node):
    """The user's view of a tape node; always the same object while somebody holds it."""
    found = _made.get(id(node))
    if found is None or found._node is not node:
        found = node.primitive.public(node) if hasattr(node.primitive, "public") else _class_of(node)(node)
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


def _edges(node):
    """The edges of an operator, which may have been recorded as several nodes: those without a name are its inner ones, and so is
    the view that was copied."""
    name = node.operator or ""
    whole = name == "UnfoldBackward0" and name or name.endswith("_copy") and name[:-len("_copy")]
    constants = name.startswith(_default_name(node)[:-1]) and node.primitive.name != "masked_fill"
    made, joined = [], False
    for v in node.inputs:
        if v.dtype.kind not in "fcV" or not v.requires_grad and not constants:
            continue
        inner = v.node if v.requires_grad and v.leaf is None else None
        if inner is not None and (inner.operator is None or inner.operator == whole):
            joined = True
            made += [edge for edge in _edges(inner) if edge[0] is not None]
        else:
            made.append(_edge(v))
    return list(dict.fromkeys(made)) if joined else made


def gradient_edge_of(tensor):
    """The edge at which this tensor's gradient flows. Source: PyTorch, torch.autograd.graph.get_gradient_edge."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    with enable_grad():
        return GradientEdge(*_edge(origin(tensor.value)))


def leaves_of(tensors):
    """The accumulators (Leaf) that a backward from these tensors would reach."""
    with enable_grad():
        values = [origin(t.value) for t in tensors if t.requires_grad]
    found, seen, stack = set(), set(), []

    def follow(value):
        if value.leaf is not None:
            found.add(value.leaf)
        elif value.node is not None and value.node.sequence not in seen:
            seen.add(value.node.sequence)
            stack.append(value.node)

    for value in values:
        follow(value)
    while stack:
        for value in stack.pop().inputs:
            if value.requires_grad:
                follow(value)
    return found


def edge_value(edge):
    """A Value without data that stands for an edge: its node or leaf, and the number of the output."""
    node = edge.node
    if isinstance(node, AccumulateGrad):
        tensor = node._leaf.tensor()
        return Value(tuple(tensor.shape), tensor.dtype.numpy, requires_grad=True, leaf=node._leaf)
    inner = node._node
    inner = inner._ref() if hasattr(type(inner), "_ref") else inner
    shape, dtype = inner.specs[edge.output_nr]
    return Value(shape, dtype, node=inner, index=edge.output_nr, requires_grad=True)


def increment_version(tensor):
    """Advance the version counter of a tensor, or of each of several, as a write would. Source: PyTorch,
    torch.autograd.graph.increment_version."""
    for t in (tensor if isinstance(tensor, (tuple, list)) else (tensor,)):
        t._history.version.count += 1


class allow_mutation_on_saved_tensors:
    """Context: what a graph keeps may be written to; gradients are those of the values before. Source: PyTorch,
    torch.autograd.graph.allow_mutation_on_saved_tensors."""

    def __enter__(self):
        if state.mutation:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        state.mutation = True
        return self

    def __exit__(self, *exc):
        state.mutation = False
