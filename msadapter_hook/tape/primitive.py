"""Primitive: the unit of computation and of recording. Every array in the product is computed by calling one."""

import weakref
from functools import lru_cache

import numpy as np

from msadapter_hook import backend, report, settings

from . import abstract, late
from .kernel import quiet
from .recording import state
from .value import Node, Value

FLOATS = frozenset(np.dtype(t) for t in ("float32", "float64"))
SINGLE = frozenset([np.dtype("float32")])

# MSADAPTER_KERNELS=host: NumPy's kernels and the gradients written here, wherever there are any
PREFER_HOST = settings.current().kernels == "host"


class Primitive:
    """A pure function of arrays with static attributes.

    `host(*arrays, **attributes)` computes with NumPy; `mindspore(**attributes)` gives the callable on MindSpore tensors
    that is recorded and replayed through `mindspore.grad`; at least one of them is there. `dtypes`: the dtypes for which
    MindSpore's kernel and its gradient are right. `guard(*values, **attributes)`: further condition for MindSpore's kernel.
    `eager`: MindSpore's kernel also where nothing is recorded (it beats NumPy's).
    `vjp`: one function per input, `f(cotangent, output, *inputs, **attributes) -> Value`, written with primitives, so it
    can be differentiated again; or `joint_vjp(cotangents, outputs, needs, *inputs, **attributes) -> list` for several at
    once. `outputs`: how many (None: decided by what the kernel gives, a tuple). `static`: shapes and dtypes of the results
    follow from those of the inputs and the attributes, which are hashable; so the call may be computed late.
    """

    def __init__(self, name, host=None, mindspore=None, *, vjp=None, joint_vjp=None, dtypes=SINGLE, guard=None,
                 eager=False, outputs=1, differentiable=True, uses_output=True, static=True):
        self.name = name
        self.host = host
        self.vjp = vjp
        self.joint_vjp = joint_vjp
        self.dtypes = dtypes
        self.guard = guard
        self.eager = eager
        self.outputs = outputs
        self.uses_output = uses_output
        self.differentiable = differentiable and (vjp is not None or joint_vjp is not None)
        self.static = static
        self.pointwise = False  # each element of the result comes from those at its place, so any common shape will do
        self.passing = False  # hands its input on, which knows by itself how it is computed
        self.merged = None  # of a slice: the split that several of them are together
        self.partial = None  # what is replayed where outputs `used` and gradients `needs` are asked for: partial(used, needs, **attributes)
        self.kernel = None  # a Kernel: where host kernels are preferred, and this primitive has one
        self.mindspore = None
        if mindspore is not None:
            self.replay_by(mindspore)

    def replay_by(self, mindspore):
        """Have `mindspore(**attributes)` give the callable on MindSpore tensors that is recorded and replayed."""
        self.mindspore = mindspore
        self.bound = lru_cache(maxsize=2048)(mindspore)

    def __repr__(self):
        return f"<primitive {self.name}>"

    def __call__(self, *inputs: Value, **attributes):
        """Compute or note, and record where an input requires grad and grad mode is on. One Value, or a tuple of them."""
        requires = pending = False
        if state.enabled and self.differentiable:
            for v in inputs:
                if v.requires_grad:
                    requires = True
                    break
        for v in inputs:
            if v._numpy is None and v._array is None:
                pending = True
                if v.abstract:
                    return abstract.call(self, inputs, attributes)
        on_mindspore = self.mindspore is not None and (
            (self.host is None or not PREFER_HOST and (requires or self.eager))
            and inputs[0].dtype in self.dtypes
            and (self.guard is None or self.guard(*inputs, **attributes))
        )
        if report.enabled:
            report.primitive(on_mindspore)
        key = None
        if self.static and (pending or requires and on_mindspore) and late.state.enabled and not state.levels and not state.anomaly:
            key = (self, on_mindspore, tuple(attributes.items()), tuple([(v.shape, v.dtype) for v in inputs]))
            try:
                specs = late.SPECS.get(key)
            except TypeError:  # an attribute that cannot be hashed
                key = specs = None
            if specs is None and pending and not requires and key is not None:
                specs = self._infer(inputs, attributes, key)
            if specs is not None:
                return self._note(inputs, attributes, on_mindspore, requires, specs)
        kept = None
        if on_mindspore:
            results = self.compute(inputs, attributes, True)
        else:
            results, kept = self._on_host(inputs, attributes, requires and state.saving is None)
        if not requires:
            values = [_from_array(r) if on_mindspore else Value(r.shape, r.dtype, r) for r in results]
        else:
            node = Node(self, attributes, inputs, on_mindspore)
            node.kept = kept
            values = []
            for i, r in enumerate(results):
                v = _from_array(r) if on_mindspore else Value(r.shape, r.dtype, r)
                v.node, v.index = node, i
                v.requires_grad = v.dtype.kind in "fcV"
                values.append(v)
            node.bind(values)
        if key is not None:
            late.remember(key, tuple([(v.shape, v.dtype) for v in values]))
        if state.levels and self.differentiable:
            for depth, level in enumerate(state.levels):
                level.follow(depth, self, inputs, attributes, values)
        return values[0] if self.outputs == 1 else tuple(values)

    def _infer(self, inputs, attributes, key):
        """Shapes and dtypes of the outputs for pending inputs, from a run on zeros; None where that fails."""
        if self.host is None:
            return None
        zeros = [np.broadcast_to(np.zeros((), v.dtype), v.shape) for v in inputs]
        try:
            with quiet():
                results = self.host(*zeros, **attributes)
        except Exception:  # a kernel that cannot take zeros is run on the real values
            return None
        results = (results,) if self.outputs == 1 else results
        specs = tuple([(np.shape(r), np.asarray(r).dtype) for r in results])
        late.remember(key, specs)
        return specs

    def _note(self, inputs, attributes, on_mindspore, requires, specs):
        """A node that is not computed yet, and its pending values."""
        node = Node(self, attributes, inputs, on_mindspore)
        node.where = late.user_line()
        values = [Value(shape, dtype, None, None, node, i, requires and dtype.kind in "fcV")
                  for i, (shape, dtype) in enumerate(specs)]
        node.outputs, node.specs = tuple(map(weakref.ref, values)), specs
        if not requires:
            late.wait(node)
        return values[0] if self.outputs == 1 else tuple(values)

    def compute(self, inputs, attributes, on_mindspore):
        """The result arrays (a sequence) of one call, by MindSpore's kernel or NumPy's."""
        if on_mindspore:
            arrays = [v.array for v in inputs]
            with backend.lock:
                result = self.bound(**attributes)(*arrays)
            return result if type(result) is tuple else (result,)
        return self._on_host(inputs, attributes, False)[0]

    def _on_host(self, inputs, attributes, keep):
        """The result arrays, and what the kernel keeps for its own gradient (None: nothing, or there is no such kernel)."""
        arrays = [v.numpy for v in inputs]
        kernel = self.kernel
        with quiet():
            if kernel is not None and kernel.forward is not None and arrays[0].dtype in kernel.dtypes:
                found = kernel.forward(keep, *arrays, **attributes)
                if found is not None:
                    result, kept = found
                    return (result if type(result) is tuple else (result,)), kept if keep else None
            if self.host is None:
                raise NotImplementedError(
                    f"{self.name}: no kernel for {', '.join(str(v.dtype) for v in inputs)} on this device; "
                    "convert to float32 first")
            result = self.host(*arrays, **attributes)
        if self.outputs == 1:
            return (result if type(result) is np.ndarray else np.asarray(result),), None
        return [r if type(r) is np.ndarray else np.asarray(r) for r in result], None

    def cotangents(self, node, grads, needs):
        """Cotangents of the inputs of `node` (None where not needed or zero) from those of its outputs."""
        if node.kept is not None and not state.enabled and not state.levels and not any(g is not None and g.abstract for g in grads):
            arrays = [None if g is None else g.numpy for g in grads]
            with quiet():
                found = self.kernel.backward(node.kept, arrays, needs, *[v.numpy for v in node.inputs], **node.attributes)
            return [None if a is None else Value(a.shape, a.dtype, a) if type(a) is np.ndarray else _promised(a) for a in found]
        if self.joint_vjp is not None:
            outs = [node.output(i) for i in range(len(node.outputs))] if self.uses_output else None
            return self.joint_vjp(grads, outs, needs, *node.inputs, **node.attributes)
        grad = grads[0]
        out = node.output(0) if self.uses_output else None
        return [f(grad, out, *node.inputs, **node.attributes) if need and f is not None else None
                for f, need in zip(self.vjp, needs)]


_promise = Primitive("promise", host=lambda *, later: later.array, static=False)


def _promised(later):
    """The pending Value of an array that is being filled beside; at the end of the pass it is there."""
    node = Node(_promise, {"later": later}, (), False)
    value = Value(later.shape, later.dtype, None, None, node)
    node.bind((value,))
    late.wait(node)
    return value


_NUMPY_DTYPES = {}


def _from_array(array):
    dtype = array.dtype
    known = _NUMPY_DTYPES.get(dtype)
    if known is None:
        known = _NUMPY_DTYPES[dtype] = backend.as_numpy(array).dtype
    return Value(array.shape, known, None, array)
