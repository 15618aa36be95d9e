"""The graph as users see it: `grad_fn` nodes with PyTorch's names, edges, hooks on nodes."""

import functools
import weakref
from collections import OrderedDict
from typing import NamedTuple

from msadapter_hook import prims
from msadapter_hook.ops.refusals import type_text
from msadapter_hook.prims import origin
from msadapter_hook.tape import Value, enable_grad
from msadapter_hook.tape.recording import state
from msadapter_hook.tensor import RemovableHandle, Tensor

from .saved import SavedTensor, saved_entry, saved_value

_made = weakref.WeakValueDictionary()


class Node:
    """A node of the backward graph. Source: PyTorch, torch.autograd.graph.Node."""

    __slots__ = ("_node", "__weakref__")
    __module__ = "torch.autograd.graph"

    def __init__(self, node):
        self._node = node

    def name(self):
        """The name of the gradient, such as `MulBackward0`."""
        name = self._node.operator or _default_name(self._node)
        return name if name != "CopySlices" else "torch::autograd::CopySlices"

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
        for prefix, give in (("_saved_", saved_tensor), ("_raw_saved_", SavedTensor)):
            if name.startswith(prefix) and name != "_raw_saved_tensors":  # those of a Function have no hooks of their own
                return give(self._node, name[len(prefix):])
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __dir__(self):
        names = {entry[-1] for entry in (self._node.saved if self._node is not None else None) or ()}
        return [*super().__dir__(), *[prefix + name for prefix in ("_raw_saved_", "_saved_") for name in sorted(names)]]

    def __repr__(self):
        return f"<{type(self).__name__} object at {id(self._node):#x}>"

    def __eq__(self, other):
        return isinstance(other, Node) and other._node is self._node

    def __hash__(self):
        return hash(self._node)


def saved_tensor(node, name):
    """What a node keeps under a name such as `self`, `other` or `result`; RuntimeError where it was written to since."""
    entry = saved_entry(node, name)
    if entry is None:
        return None
    counter, version, size, dtype, whose, _ = entry
    if counter.count != version and not state.mutation:
        raise modified(counter.count, version, size, dtype, node if isinstance(whose, int) else whose(), whose)
    return saved_value(node, entry)


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

    @property
    def metadata(self):
        """A dictionary for the user, kept as long as the leaf."""
        tensor = self._leaf.tensor()
        return {} if tensor is None else tensor._extra_state().setdefault("metadata", {})

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
    if name == "CopySlices":
        return _slices(node)
    if node.primitive in (prims.real, prims.imag) and name == "SelectBackward0":
        return [_step("ViewAsRealBackward0", _edge(node.inputs[0]))]
    if name in _PRODUCTS:
        found = _products(node)
        if found is not None:
            return found
    whole = name == "UnfoldBackward0" and name or name.endswith("_copy") and name[:-len("_copy")]
    constants = name.startswith(_default_name(node)[:-1]) and node.primitive.name != "masked_fill" or name in _PRODUCTS
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
    made = list(dict.fromkeys(made)) if joined else made
    if name in ("NllLossBackward0", "NllLoss2DBackward0") and _of_scores(node):
        made[0] = _step("LogSoftmaxBackward0", made[0])
        return made if name == "NllLossBackward0" else [_step("ViewBackward0", made[0])]
    return made


class Step:
    """A node that PyTorch's graph has inside of what is one operator here: a name and edges, for those who walk the graph."""

    __slots__ = ("_name", "next_functions", "metadata")
    __module__ = "torch.autograd.graph"

    def __init__(self, name, *edges):
        self._name, self.next_functions, self.metadata = name, edges, {}

    def name(self):
        return self._name

    def register_hook(self, fn):
        raise NotImplementedError(f"hooks on {self._name}, a step inside of an operator: put a hook on the operator's own grad_fn or on "
                                  "its input tensors instead")

    register_prehook = register_hook

    def __repr__(self):
        return f"<{self._name} object at {id(self):#x}>"


def _step(name, *edges):
    """An edge to a step; None where nothing below it requires grad."""
    return (Step(name, *edges), 0) if any(edge[0] is not None for edge in edges) else (None, 0)


def _below(value, primitive):
    """What an unnamed inner node of this primitive was applied to, or the value itself."""
    while _inside(value) and value.node.operator is None and value.node.primitive is primitive:
        value = value.node.inputs[0]
    return value


def _products(node):
    """The edges of a linear map or a matrix product as PyTorch composes them; None for other nodes."""
    if node.primitive is prims.affine_map:
        return _affine(node)
    outer = node.primitive is prims.reshape
    at = node.inputs[0].node if outer else node
    bias = None
    if at is not None and at.primitive in (prims.bias_add, prims.add) and (at is node or at.operator is None):
        bias, at = at.inputs[1], at.inputs[0].node
    if at is None or at.primitive is not prims.matmul or at is not node and at.operator is not None:
        return None
    a, b = (_below(v, prims.reshape) for v in at.inputs)
    linear = at.attributes.get("transpose_b", False) and len(b.shape) == 2
    if not linear and (bias is not None or not outer and len(node.specs[0][0]) == 2):
        return None
    left, right = _edge(a), _edge(b)
    if linear:
        right = _step("TBackward0", right)
    many = len(a.shape) > 2
    if outer or many:
        if len(a.shape) == 1:
            left = _step("ViewBackward0" if bias is not None else "UnsqueezeBackward0", left)
        elif len(b.shape) > 2:
            left, right = (_step("ViewBackward0", _step("ExpandBackward0", edge)) for edge in (left, right))
        elif many:
            left = _step("ViewBackward0", left)
        elif len(b.shape) == 1:
            return None
    edges = (left, right) if bias is None else (_edge(bias), left, right)
    if node.operator in ("AddmmBackward0", "MmBackward0"):
        return list(edges)
    return [_step("AddmmBackward0" if bias is not None else "BmmBackward0" if len(b.shape) > 2 else "MmBackward0", *edges)]


def _affine(node):
    """The edges of a linear map that is one node, for an input of two or more dimensions."""
    x, w, *bias = [_edge(v) for v in node.inputs]
    if len(node.inputs[0].shape) == 2:
        return [*bias, x, _step("TBackward0", w)]
    return [_step("AddmmBackward0" if bias else "MmBackward0", *bias, _step("ViewBackward0", x), _step("TBackward0", w))]


_PRODUCTS = frozenset(["AddmmBackward0", "MmBackward0", "ViewBackward0", "UnsafeViewBackward0", "SqueezeBackward4"])


def _of_scores(node):
    """Whether a loss takes scores, not logarithms of probabilities: a softmax is inside of it."""
    if node.primitive in (prims.log_softmax, prims.sparse_cross_entropy):
        return True
    return any(_of_scores(v.node) for v in node.inputs if _inside(v) and v.node.operator is None)


def _slices(node):
    """The edges of a write through a view: the base before it, then what the written value was made of besides the view."""
    new, base = node.inputs[-1], node.inputs[0] if len(node.inputs) > 1 else None
    while _inside(new) and new.node.operator is None:
        new = new.node.inputs[-1]
    if not _inside(new):
        return [_edge(base) if base is not None else (None, 0), _edge(new)]
    made = _edges(new.node)
    if base is None:  # all of it was written
        seen = new.node.inputs[0]
        base_edge = _edges(seen.node)[0] if _inside(seen) else (None, 0)
    else:
        base_edge = _edge(base)
    if base_edge[0] is not None or made[:1] == [(None, 0)]:
        made = made[1:] if len(made) > 1 or new.node.operator != "CopyBackwards" else made
    return [base_edge, *made]


def _inside(value):
    return value.requires_grad and value.leaf is None and value.node is not None


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


def modified(version, expected, size, dtype, owner=None, number=0):
    """PyTorch's error for a saved tensor that was written to; `owner`: the tensor, or the node of which it is output `number`."""
    if isinstance(owner, Tensor):
        with enable_grad():
            value = origin(owner.value)
        owner, number = (None if value.leaf is not None else value.node), value.index
    maker = f", which is output {number} of {public_node(owner).name().partition('Backward')[0]}," if owner is not None else ""
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{type_text(dtype)} {list(size)}]{maker} is at version {version}; expected version {expected} instead. Hint: " + (
            "the backtrace further above shows the operation that failed to compute its gradient. The variable in question was changed "
            "in there or anywhere later. Good luck!" if state.anomaly else
            "enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True, check_nan=False)."))
