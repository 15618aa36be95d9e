"""Values without data. `Meta`: a shape and a dtype, for tensors of the device "meta". `Deferred`: the value of a tensor whose
data only its own class knows (a subclass with `__torch_dispatch__`), or of what is computed from such tensors.

A primitive that meets one of them infers shapes and records its node like any other, but computes nothing here; what a
Deferred stands for is asked of `perform`, which calls the operators of the tensors themselves.
"""

import weakref

import numpy as np

from . import value as _value
from .recording import state
from .value import Node, Value

NO_DATA = "Cannot copy out of meta tensor; no data!"


class NoData(NotImplementedError):
    """The data of a value without data were asked for."""


class Opaque(RuntimeError):
    """The data of a tensor subclass were asked for."""


class Meta(Value):
    """Nothing but a shape and a dtype."""

    __slots__ = ()
    abstract = True

    def refuse(self):
        return NoData(NO_DATA)

    def detach(self):
        return followed(self, Meta(self.shape, self.dtype)) if self.requires_grad else self

    def output_of(self, node, index):
        return Meta(self.shape, self.dtype, None, None, node, index, True)

    def as_leaf(self, leaf):
        return followed(self, Meta(self.shape, self.dtype, requires_grad=True, leaf=leaf))

    def filled(self, number):
        """What a tensor of this shape and dtype full of `number` is here."""
        return Meta(self.shape, self.dtype)


class Deferred(Value):
    """What a tensor of a subclass is to the tape.

    `keep` holds that tensor where this is its own value (weakly: the tensor holds its value), or where an operation keeps it;
    None where it follows from the node and has not been asked for."""

    __slots__ = ("keep",)
    abstract = wrapped = True

    def __init__(self, shape, dtype, keep=None, node=None, index=0, requires_grad=False, leaf=None):
        super().__init__(shape, dtype, None, None, node, index, requires_grad, leaf)
        self.keep = keep

    @property
    def tensor(self):
        """The tensor; computed from the node's inputs where nobody has it."""
        found = self.keep() if type(self.keep) is weakref.ref else self.keep
        if found is None:
            if self.node is None:
                raise RuntimeError("a tensor subclass that an operation was recorded on is gone")
            found = self.keep = _outcome(self.node)[self.index]
        return found

    def shown(self):
        """The tensor, with the tangents of this value."""
        found = self.tensor
        if state.levels and found._history.value is not self:
            followed(self, found._history.value)
        return found

    def refuse(self):
        return Opaque("the data of this tensor subclass are known to its class only: an operator that reads them has to go "
                            "through __torch_dispatch__")

    def _same(self, requires_grad, leaf=None):
        if self.keep is None and leaf is None and not requires_grad:  # still to be computed, if anybody asks
            return followed(self, Deferred(self.shape, self.dtype, None, self.node, self.index))
        keep = self.tensor if self.keep is None else self.keep
        return followed(self, Deferred(self.shape, self.dtype, keep, requires_grad=requires_grad, leaf=leaf))

    def detach(self):
        return self._same(False) if self.requires_grad else self

    def output_of(self, node, index):
        return Deferred(self.shape, self.dtype, self.tensor if self.keep is None else self.keep, node, index, True)

    def as_leaf(self, leaf):
        return self._same(True, leaf)

    def held(self):
        """The same value, holding its tensor."""
        if type(self.keep) is not weakref.ref:
            return self
        return followed(self, Deferred(self.shape, self.dtype, self.keep(), self.node, self.index, self.requires_grad, self.leaf))

    def filled(self, number):
        return full_like(self, number)


class Watched(Deferred):
    """A gradient on its way back under a dispatch mode: its tensor has data, but what is done to it goes by operators, which the
    mode sees."""

    __slots__ = ()

    def held(self):
        return self


def watched(value):
    """`value` for a dispatch mode to watch, as a value with data."""
    if value.wrapped or value.abstract:
        return value
    return Watched(value.shape, value.dtype, tensor_over(value), value.node, value.index, value.requires_grad, value.leaf)


def unwatched(value):
    """The plain value of a watched one; any other value itself."""
    return value.tensor.value if type(value) is Watched else value


def tensor_over(value):
    """A plain tensor over a Value; set by `ops`."""
    raise NotImplementedError("tensor subclasses need the operators")


def followed(old, new):
    """`new`, which stands for `old`, with its tangents."""
    for level in state.levels:
        level.copy(old, new)
    return new


def full_like(value, number):
    """The Value of a tensor like `value`'s, full of `number`; set by `ops`, which knows operators."""
    raise NotImplementedError("tensor subclasses need the operators")


def perform(primitive, values, attributes):
    """The tensors that a primitive makes of the tensors behind `values`, nothing recorded; set by `ops`."""
    raise NotImplementedError("tensor subclasses need the operators")


def value_behind(tensor):
    """The Value of a tensor that `perform` gave; set by `ops`."""
    raise NotImplementedError("tensor subclasses need the operators")


def adopt(tensor, node, index):
    """Make a tensor that `perform` gave output `index` of `node`; gives its Value; set by `ops`."""
    raise NotImplementedError("tensor subclasses need the operators")


def infer(primitive, inputs, attributes):
    """((shape, dtype), …) of the outputs; set by `prims`, where the rules are."""
    raise NotImplementedError("shapes are inferred by the primitives")


def _outcome(node):
    """The tensors that a node's primitive makes of its inputs."""
    return perform(node.primitive, node.inputs, node.attributes)


def call(primitive, inputs, attributes):
    """One primitive call that met a Value without data: its results, a Value or a tuple of them."""
    requires = False
    if state.enabled and primitive.differentiable:
        requires = any(v.requires_grad for v in inputs)
    wrapped = any(v.wrapped for v in inputs)
    if wrapped and not state.symbolic:
        watching = any(type(v) is Watched for v in inputs)
        try:
            tensors = perform(primitive, inputs, attributes)
        except NotImplementedError:
            if not watching or any(v.wrapped and type(v) is not Watched for v in inputs):
                raise
            made = primitive(*[unwatched(v) for v in inputs], **attributes)  # no operator does the same: the mode does not see it
            return watched(made) if type(made) is Value else tuple([watched(v) for v in made])
        node = None
        if requires:
            recorded = _noted(primitive, inputs, attributes)
            recorded.outputs = (None,) * len(tensors)
            values = [adopt(t, recorded, i) for i, t in enumerate(tensors)]
            recorded.specs = tuple([(v.shape, v.dtype) for v in values])
        else:
            values = [value_behind(t) for t in tensors]
        if watching:
            values = [v if v.wrapped else Watched(v.shape, v.dtype, t, v.node, v.index, v.requires_grad) for v, t in zip(values, tensors)]
    else:
        specs = infer(primitive, inputs, attributes)
        if wrapped:
            node = _noted(primitive, inputs, attributes)
            values = [Deferred(shape, dtype, None, node, i, requires and dtype.kind in "fcV") for i, (shape, dtype) in enumerate(specs)]
        else:
            node = _noted(primitive, inputs, attributes) if requires else None
            values = [Meta(shape, dtype, None, None, node, i, requires and dtype.kind in "fcV")
                      for i, (shape, dtype) in enumerate(specs)]
    if node is not None:
        node.bind(values)
    if state.levels and primitive.differentiable:
        for depth, level in enumerate(state.levels):
            level.follow(depth, primitive, inputs, attributes, values)
    return values[0] if primitive.outputs == 1 else tuple(values)


def _noted(primitive, inputs, attributes):
    return Node(primitive, attributes, tuple([v.held() if v.wrapped else v for v in inputs]), False)


def again(node, index):
    """Output `index` of a recorded node whose value nobody holds any more."""
    shape, dtype = node.specs[index]
    if any(v.wrapped for v in node.inputs):
        return Deferred(shape, dtype, None, node, index, True)
    return Meta(shape, dtype, None, None, node, index, True)


def nothing_like(value: Value) -> Value:
    """Zeros with the shape and dtype of `value`."""
    return value.filled(0) if value.abstract else Value(value.shape, value.dtype, np.zeros(value.shape, value.dtype))


_value.abstract_again = again
