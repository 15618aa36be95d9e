"""Forward mode: levels that carry tangents along with Values, primitive by primitive.

A level maps Values to their tangents, which are Values themselves. The product of a primitive's Jacobian with tangents is
the transpose of its vjp, and the vjp is linear in its cotangent: so it is found by differentiating the vjp with respect to a
cotangent that does not matter. Primitives that are linear, or linear in each input, are applied to the tangents instead.
"""

import weakref

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import Primitive, enable_grad, value_of
from msadapter_hook.tape.recording import state
from msadapter_hook.tensor import Tensor, cast_value
from msadapter_hook.tensor.leaf import Leaf

from .engine import Backward
from .passes import key_of

#: Primitives that are linear in all their floating inputs together.
LINEAR = frozenset(["reshape", "transpose", "broadcast_to", "sum_to", "strided_slice", "neg", "add", "sub", "real", "imag", "conj",
                    "make_complex", "flip", "concat", "stack", "cast", "slice_scatter", "sum", "bias_add", "where", "gather", "index_get",
                    "take_along"])
#: Primitives that are linear in each of two inputs.
BILINEAR = frozenset(["mul", "matmul"])
#: Real functions of one number, element by element: the Jacobian is its own transpose, so the vjp is the product wanted.
ELEMENTWISE = frozenset([
    p.name for module in (prims.pointwise, prims.activation) for p in vars(module).values()
    if isinstance(p, Primitive) and p.vjp is not None and len(p.vjp) == 1 and p.outputs == 1
]) - LINEAR


class Level:
    """One differentiation in forward mode."""

    def __init__(self):
        self.tangents = weakref.WeakKeyDictionary()
        self.given = weakref.WeakKeyDictionary()  # a dual's value -> the tensor that the user gave as its tangent
        self.alive = True

    def copy(self, source, made):
        """`made` holds the same data as `source`: it has the same tangent."""
        found = self.tangents.get(source)
        if found is not None:
            self.tangents[made] = found

    def tangent(self, value):
        return self.tangents.get(value)

    def primal(self, tensor):
        """The tensor's data and history without the tangent."""
        levels, state.levels = state.levels, tuple([one for one in state.levels if one is not self])
        try:
            return Tensor._make(prims.reshape(tensor.value, shape=tuple(tensor.shape)), tensor.dtype)
        finally:
            state.levels = levels

    def follow(self, depth, primitive, inputs, attributes, outputs):
        """Give the outputs of a call the tangents that follow from those of its inputs. What is computed here is seen by the
        levels outside of this one only."""
        known = [self.tangents.get(v) for v in inputs]
        if not any(t is not None for t in known):
            return
        levels, state.levels = state.levels, state.levels[:depth]
        try:
            found = pushed(primitive, inputs, attributes, outputs, known)
        finally:
            state.levels = levels
        for v, t in zip(outputs, found):
            if t is not None and v.dtype.kind in "fcV":
                self.tangents[v] = t


class _Call:
    """What a vjp needs to know of a call, without its being recorded."""

    operator = kept = None

    def __init__(self, inputs, attributes, outputs):
        self.inputs, self.attributes, self.outputs = inputs, attributes, outputs

    def output(self, index):
        return self.outputs[index]


def pushed(primitive, inputs, attributes, outputs, tangents):
    """The tangents of the outputs (None where there is none)."""
    if primitive.name == "graft":  # the data of one value under the history of another: the tangent comes with the data
        return [tangents[1]]
    if primitive.name == "overwrite":  # nothing of the old value is left
        return [tangents[1] if tangents[1] is not None else prims.zeros_like(outputs[0])]
    if primitive.name == "drawn":  # what is drawn stands still
        return [prims.zeros_like(outputs[0])]
    if primitive.name in LINEAR:
        given = [t if t is not None else prims.zeros_like(v) if v.dtype.kind in "fcV" else v for v, t in zip(inputs, tangents)]
        return [primitive(*given, **attributes)]
    if primitive.name in BILINEAR and len(inputs) == 2:
        (a, b), (ta, tb) = inputs, tangents
        left = primitive(ta, b, **attributes) if ta is not None else None
        right = primitive(a, tb, **attributes) if tb is not None else None
        return [left if right is None else right if left is None else prims.add(left, right)]
    if primitive.name in ELEMENTWISE and inputs[0].dtype.kind == outputs[0].dtype.kind == "f" and tangents[0].dtype.kind == "f":
        return [primitive.vjp[0](tangents[0], outputs[0], *inputs, **attributes)]
    return transposed(primitive, inputs, attributes, outputs, tangents)


def transposed(primitive, inputs, attributes, outputs, tangents):
    """The tangents of the outputs by differentiating the vjp."""
    recorded = state.enabled and any(v.requires_grad for v in (*inputs, *[t for t in tangents if t is not None]))
    before, state.enabled = state.enabled, True
    try:
        cotangents = [value_of(np.ones(o.shape, o.dtype)).as_leaf(Leaf(None)) if o.dtype.kind in "fcV" else None
                      for o in outputs]  # ones: some vjps take the logarithm of their cotangent
        needs = [t is not None for t in tangents]
        found = primitive.cotangents(_Call(inputs, attributes, outputs), cotangents, needs)
        roots = [(c, t) for c, t in zip(found, tangents) if c is not None and t is not None and c.requires_grad]
    finally:
        state.enabled = before
    keys = [key_of(c) if c is not None else None for c in cotangents]
    if not roots:
        return [None] * len(outputs)
    result = Backward(roots, [k for k in keys if k is not None], accumulate=False, create_graph=recorded, retain_graph=True).run()
    return [result.get(k) if k is not None else None for k in keys]


def dual(level, tensor, tangent):
    """A tensor with the data and history of `tensor` that carries `tangent` in `level`."""
    for t, what in ((tensor, "primal"), (tangent, "tangent")):
        if not (t.dtype.is_floating_point or t.dtype.is_complex):
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {t.dtype}")
    if tuple(tensor.shape) != tuple(tangent.shape):
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. "
            f"Tensor is of size {list(tensor.shape)} while the given forward gradient is of size {list(tangent.shape)}.")
    value = prims.reshape(tensor.value, shape=tuple(tensor.shape))
    level.tangents[value] = cast_value(tangent.value, tensor.dtype)
    if tensor.dtype is tangent.dtype and tensor.stride() == tangent.stride():  # in another layout the tangent is a copy
        level.given[value] = tangent
    if tensor._shared:  # memory seen from outside is read anew each time, which would lose the tangent
        return Tensor._make(value, tensor.dtype)
    made = tensor.detach() if tensor._dispatches else tensor._alias(Tensor)  # writes to the stand-in reach the tensor
    made._history.value = value
    made._value, made._generation = None, -1
    return made


def tangent_of(level, tensor):
    """The tangent of a tensor in `level`, or None."""
    with enable_grad():
        value = tensor.value
        found = level.tangents.get(value)
    if found is not None and value in level.given:
        return level.given[value]
    return None if found is None else Tensor._make(found)
