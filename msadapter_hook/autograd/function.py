"""autograd.Function: operations with a gradient written by the user."""

import functools
import weakref

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import Node, Value, enable_grad, value_of
from msadapter_hook.tape.recording import state
from msadapter_hook.tape.value import SECOND_TIME
from msadapter_hook.tensor import Tensor, cast_value
from msadapter_hook.tensor.compound import flow
from msadapter_hook.tensor.core import DTYPE_OF
from msadapter_hook.tensor.geometry import broadcast_shapes
from msadapter_hook.tensor.sparse import gradient_of

from . import batch_rule, saved
from .graph import Node as PublicNode
from .graph import modified


class FunctionCtx:
    """What `forward` and `backward` of a Function share. Source: PyTorch, torch.autograd.function.FunctionCtx."""

    __module__ = "torch.autograd.function"

    def save_for_backward(self, *tensors):
        """Keep tensors (or None) for backward; `saved_tensors` gives them back."""
        self._to_save = tensors

    def save_for_forward(self, *tensors):
        """Keep tensors for `jvp`."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise AssertionError("save_for_forward expects all arguments to be tensors; you should save non-tensors as "
                                     "attributes on ctx.")
        self.saved_for_forward = tensors

    def mark_dirty(self, *args):
        """These inputs were changed in place by forward."""
        self._dirty = args

    def mark_non_differentiable(self, *args):
        """These outputs carry no gradient."""
        self._non_differentiable = args

    def mark_shared_storage(self, *pairs):
        """Kept for old programs; PyTorch ignores it too."""

    def set_materialize_grads(self, value):
        """Whether missing gradients reach backward as zeros (the default) or as None."""
        self.materialize_grads = value


class BackwardNode(PublicNode, FunctionCtx):
    """The context and at the same time the `grad_fn` of a Function's outputs."""

    __slots__ = ("__dict__",)
    __module__ = "torch.autograd.function"

    def __init__(self, function, needs):
        super().__init__(None)
        self._function = function
        self.needs_input_grad = needs
        self.materialize_grads = True
        self._to_save = ()
        self._saved = ()
        self._dirty = ()
        self._non_differentiable = ()
        self._released = False
        self._compounds = {}  # the arguments that are compound tensors (sparse, nested), by place
        self._wholes = {}  # of an output that is one: what makes its gradient of a Value
        self._forward = False
        self.saved_for_forward = ()

    def name(self):
        return self._function.__name__ + "Backward"

    @property
    def saved_tensors(self):
        """The tensors kept by save_for_backward (in `jvp`: save_for_forward). RuntimeError once the graph has been freed."""
        if self._forward:
            return tuple(self.saved_for_forward)
        if self._released:
            raise RuntimeError(SECOND_TIME)
        return tuple([unpack() if unpack is not None else None for unpack in self._saved])

    @property
    def saved_variables(self):
        return self.saved_tensors

    def _pack(self, node, outputs):
        """Turn what was handed to save_for_backward into functions that give it back."""
        made = []
        for t in self._to_save:
            if t is None:
                made.append(None)
                continue
            if not isinstance(t, Tensor):
                raise TypeError("save_for_backward can only save variables, but argument "
                                f"{len(made)} is of type {type(t).__name__}")
            for i, out in enumerate(outputs):
                if t is out and node is not None and not t._compound:
                    made.append(_SavedOutput(node, i, out))
                    break
            else:
                made.append(_SavedInput(t))
        self._saved = tuple(made)
        self._to_save = ()


class _SavedInput:
    """A tensor as it is now; reading it after a write is an error."""

    __slots__ = ("tensor", "version", "packed", "hooks")

    def __init__(self, tensor):
        if flow(tensor)._history.storage.inference:
            from msadapter_hook.ops.kept import INFERENCE_SAVED

            raise RuntimeError(INFERENCE_SAVED)
        self.version = tensor._version
        self.hooks = state.saving
        if self.hooks is not None:
            self.tensor = None
            self.packed = saved.pack(self.hooks, tensor)
        else:
            self.tensor = tensor

    def __call__(self):
        if self.hooks is not None:
            return saved.unpack(self.hooks, self.packed)
        _check(self.tensor, self.version)
        return self.tensor


class _SavedOutput:
    """An output of the node itself, kept without holding the node."""

    __slots__ = ("node", "index", "array", "counter", "version", "dtype", "hooks", "packed")

    def __init__(self, node, index, tensor):
        self.node, self.index = weakref.ref(node), index
        self.counter, self.version, self.dtype = tensor._history.version, tensor._history.version.count, tensor._dtype
        self.hooks = state.saving
        if self.hooks is not None:
            self.packed = saved.pack(self.hooks, tensor)
        else:
            self.array = tensor.value.numpy

    def __call__(self):
        if self.hooks is not None:
            array = saved.unpack(self.hooks, self.packed).value.numpy
        else:
            array = self.array
            if self.counter.count != self.version:
                raise modified(self.counter.count, self.version, array.shape, self.dtype, self.node(), self.index)
        node = self.node()
        value = Value(array.shape, array.dtype, array, None, node, self.index, node is not None)
        return Tensor._make(value, self.dtype)


def _check(tensor, version):
    if tensor._version != version:
        raise modified(tensor._version, version, tensor._size, tensor._dtype, tensor)


class _FunctionPrimitive:
    """The primitive of one call: its gradient is the user's backward."""

    name = "function"
    outputs = None
    kernel = None

    def __init__(self, ctx, positions, results):
        self.ctx = ctx
        self.positions = positions  # of the tensors among the arguments
        self.results = results  # (shape, dtype) of each output
        self.number = 0

    def public(self, node):
        return self.ctx

    def compute(self, inputs, attributes, replay):
        raise RuntimeError(SECOND_TIME)

    def cotangents(self, node, grads, needs):
        ctx = self.ctx
        if ctx._released:
            raise RuntimeError(SECOND_TIME)
        given = []
        for g, (shape, dtype) in zip(grads, self.results):
            if g is None and ctx.materialize_grads and dtype is not None:
                g = value_of(np.zeros(shape, dtype))
            whole = ctx._wholes.get(len(given), Tensor._make)
            given.append(whole(g) if g is not None else None)
        function = ctx._function
        if function.vjp is not Function.vjp and function.backward is not Function.backward:
            raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                               "implement "
                               "one of them.")
        if function.vjp is not Function.vjp and function.backward is Function.backward:
            result = function.vjp(ctx, *given)
        else:
            result = function.backward(ctx, *given)
        if not isinstance(result, tuple):
            result = (result,)
        result = list(result)
        while len(result) > self.number and result[-1] is None:
            result.pop()
        if len(result) < self.number and not all(i < len(result) for i in self.positions):
            raise RuntimeError(f"function {ctx.name()} returned an incorrect number of gradients (expected {self.number}, got "
                               f"{len(result)})")
        if len(result) > self.number:
            raise RuntimeError(f"function {ctx.name()} returned an incorrect number of gradients (expected {self.number}, got "
                               f"{len(result)})")
        out = []
        for v, place, need in zip(node.inputs, self.positions, needs):
            g = result[place]
            if g is None or not need:
                out.append(None)
                continue
            if not isinstance(g, Tensor):
                raise TypeError(f"expected Variable or None (got {type(g).__name__})")
            compound = ctx._compounds.get(place)
            g = cast_value(gradient_of(g if compound is None else compound._part_of(g)), DTYPE_OF[v.dtype])
            if g.shape != v.shape:
                g = _fit(g, v, ctx, len(out))
            out.append(g)
        return out


def _fit(g, v, ctx, i):
    try:
        expandable = broadcast_shapes(v.shape, g.shape) == g.shape
    except RuntimeError:
        expandable = False
    if not expandable:
        raise RuntimeError(f"Function {ctx.name()} returned an invalid gradient at index {i} - got {list(g.shape)} but expected "
                           f"shape compatible with {list(v.shape)}")
    return prims.sum_to(g, shape=v.shape)


class _FunctionMeta(type):
    def __init__(cls, name, bases, attrs):
        super().__init__(name, bases, attrs)


class Function(FunctionCtx, metaclass=_FunctionMeta):
    """Base of operations with their own gradient: static `forward` and `backward`, called by `apply`.

    Source: PyTorch, torch.autograd.Function.
    """

    __module__ = "torch.autograd.function"
    generate_vmap_rule = False

    def __init__(self, *args, **kwargs):
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
                           "function with static forward method.")

    def __call__(self, *args, **kwargs):
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
                           "function with static forward method.")

    @staticmethod
    def forward(*args, **kwargs):
        """Compute the outputs; overridden."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Keep what backward needs, where forward takes no ctx; overridden."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """The gradients of the inputs from those of the outputs; overridden."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function to use "
                                  "it with backward mode AD.")

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """The tangents of the outputs; overridden."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode "
                                  "AD.")

    @staticmethod
    def vmap(info, in_dims, *args):
        """The rule for batches: (outputs, the dimensions of their batches); overridden. It is called for one sample at a time."""
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
                                  "generate_vmap_rule=True.")

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run forward and record one node whose gradient is `backward`."""
        forward = cls.forward
        if state.transforms:
            _check_transforms(cls)
            mapped = batch_rule.mapped_call(args) if cls.vmap is not Function.vmap else None
            if mapped is not None and mapped is state.mapped:
                return batch_rule.run(cls, mapped, args)
            if mapped is not None:  # of a function that is differentiated inside: the gradient stays that of a sample
                forward = functools.partial(_by_rule, cls, mapped)
        places = tuple([i for i, a in enumerate(args) if isinstance(a, Tensor)])
        tensors = [args[i] for i in places]
        recording = state.enabled and any(t.requires_grad for t in tensors)
        compounds = {i: args[i] for i in places if args[i]._compound}
        needs = tuple([isinstance(a, Tensor) and a.requires_grad for a in args])
        ctx = _node_class(cls)(cls, needs)
        ctx._compounds = compounds
        with enable_grad():
            inputs = tuple([flow(t).value for t in tensors])
        before, state.enabled = state.enabled, False
        levels, state.levels = state.levels, ()
        try:
            if cls.setup_context is not Function.setup_context:
                output = forward(*args, **kwargs)
                cls.setup_context(ctx, args, output)
            else:
                output = forward(ctx, *args, **kwargs)
        finally:
            state.enabled = before
            state.levels = levels
        single = not isinstance(output, tuple)
        outputs = (output,) if single else output
        if not recording:
            for t in ctx._dirty:
                t._history.version.count += 1
            if levels:
                _push(ctx, args, inputs, places, outputs)
            return output
        results = ctx._finish(args, tensors, inputs, places, outputs)
        if levels:
            _push(ctx, args, inputs, places, results)
        return results[0] if single else results


def _by_rule(function, mapped, *args):
    return batch_rule.run(function, mapped, args)


_NEEDS_SETUP = (
    "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the "
    "setup_context "
    "staticmethod. For more details, please see https://pytorch.org/docs/main/notes/extending.func.html")


def _check_transforms(cls):
    """What a Function must have to be used inside a function transform. RuntimeError in PyTorch's words."""
    if cls.setup_context is Function.setup_context:
        raise RuntimeError(_NEEDS_SETUP)
    watcher = state.mapped
    while watcher is not None and not watcher.maps:
        watcher = watcher.outer
    if watcher is None:
        return
    has_rule = cls.vmap is not Function.vmap
    if cls.generate_vmap_rule and has_rule:
        raise RuntimeError(f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
                           "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
                           "ambiguity. For more details, please see https://pytorch.org/docs/main/notes/extending.func.html")
    if not cls.generate_vmap_rule and not has_rule:
        raise RuntimeError(f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and "
                           "implement "
                           "the vmap staticmethod or set generate_vmap_rule=True. For more details, please see "
                           "https://pytorch.org/docs/main/notes/extending.func.html")


def _push(ctx, args, inputs, places, outputs):
    """Forward mode: the tangents of the outputs, by the Function's own `jvp`."""
    levels = state.levels
    for depth, level in enumerate(levels):
        known = [level.tangent(v) for v in inputs]
        if all(t is None for t in known):
            continue
        given = [None] * len(args)
        for place, v, t in zip(places, inputs, known):
            if t is None and ctx.materialize_grads and v.dtype.kind in "fcV":
                t = value_of(np.zeros(v.shape, v.dtype))
            given[place] = Tensor._make(t) if t is not None else None
        state.levels = levels[:depth]
        ctx._forward = True
        try:
            found = ctx._function.jvp(ctx, *given)
        finally:
            ctx._forward = False
            state.levels = levels
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != len(outputs):
            raise RuntimeError("Function's jvp returned an invalid number of forward gradients (expected "
                               f"{len(outputs)} but got {len(found)})")
        for out, t in zip(outputs, found):
            if isinstance(out, Tensor) and t is not None:
                if t._size != out._size:
                    raise RuntimeError(
                        "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
                        f"supported. Tensor is of size {list(out._size)} while the given forward gradient is of size "
                        f"{list(t._size)}.")
                with enable_grad():
                    level.tangents[out.value] = cast_value(t.value, out._dtype)


_NO_TENSOR = ((), None)  # the shape and dtype of an output that is no tensor


def _finish(ctx, args, tensors, inputs, places, outputs):
    """Put the outputs of a recorded call under its node."""
    made, values, specs, old = [], [], [], []
    primitive = _FunctionPrimitive(ctx, places, specs)
    primitive.number = len(args)
    node = Node(primitive, {}, inputs, False)
    node.operator = ctx.name()
    plain = {id(t) for t in ctx._non_differentiable}
    dirty = {id(t) for t in ctx._dirty}
    for i, out in enumerate(outputs):
        if not isinstance(out, Tensor):
            specs.append(_NO_TENSOR)
            made.append(out)
            continue
        whole = out if out._compound else None
        if whole is not None:
            out = flow(whole)
            ctx._wholes[i] = lambda g, whole=whole: whole._like(Tensor._make(g))
        with _no_recording():
            v = out.value
        specs.append((v.shape, v.dtype))
        differentiable = id(outputs[i]) not in plain and (out._dtype.is_floating_point or out._dtype.is_complex)
        if not differentiable:
            made.append(outputs[i])
            continue
        if v.wrapped and any(out is t for t in tensors):
            with _no_recording():
                out = out.detach()
                v = out.value
        value = v.output_of(node, i)
        values.append((i, value))
        if id(out) in dirty:
            from msadapter_hook.ops.writing import check_inplace

            check_inplace(out)
            out._write(value)
            made.append(out)
        elif any(out is t for t in tensors) or out._moves or out._history.views or out._history.parent is not None:
            with _no_recording():  # an input as it is, or a view: the output shares its data, under the node's history
                history = out._alias_history(share_version=True)
            history.value = value
            name = ctx.name().removesuffix("Backward")
            out = Tensor._window(history, (), out._size, out._stride, out._offset, out._dtype)
            out._extra = {"of_function": (i, name)}
            made.append(out)
        else:
            out._history.value = value
            out._value, out._generation = None, -1
            made.append(out)
        if whole is not None:
            made[-1] = whole._like(made[-1])
        old.append(out)
    refs = [_dead] * len(outputs)
    for i, value in values:
        refs[i] = weakref.ref(value)
    node.outputs, node.specs = tuple(refs), tuple(specs)
    ctx._node = node_reference = node
    ctx._pack(node_reference, outputs)
    ctx._node = _Later(node)
    return tuple(made)


class _Later:
    """The node as its context sees it: held weakly, since the node holds the context."""

    __slots__ = ("_ref",)

    def __init__(self, node):
        object.__setattr__(self, "_ref", weakref.ref(node))

    def __getattr__(self, name):
        return getattr(self._ref(), name)

    def __setattr__(self, name, value):
        setattr(self._ref(), name, value)


def _dead():
    return None


class _no_recording:
    def __enter__(self):
        self.before, state.enabled = state.enabled, False

    def __exit__(self, *exc):
        state.enabled = self.before


BackwardNode._finish = _finish


def _node_class(function):
    """The class of the nodes of a Function, which bears its name."""
    found = function.__dict__.get("_backward_cls")
    if found is None:
        found = function._backward_cls = type(f"{function.__name__}Backward", (BackwardNode,), {
            "__slots__": (), "__module__": BackwardNode.__module__, "_forward_cls": function})
    return found


def once_differentiable(function):
    """Mark a backward that cannot be differentiated again. Source: PyTorch, torch.autograd.function.once_differentiable."""

    @functools.wraps(function)
    def wrapper(ctx, *args):
        recording = state.enabled
        with _no_recording():
            outputs = function(ctx, *args)
        if not recording or not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            return outputs
        single = not isinstance(outputs, tuple)
        every = (outputs,) if single else outputs
        made = tuple([_DelayedError.apply(o) if isinstance(o, Tensor) else o for o in _require(every)])
        return made[0] if single else made

    return wrapper


def _require(outputs):
    return [o.detach().requires_grad_() if isinstance(o, Tensor) else o for o in outputs]


class _DelayedError(Function):
    """Passes values on; its gradient is an error."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


class InplaceFunction(Function):
    """Base of functions that may work in place. Source: PyTorch, torch.autograd.function.InplaceFunction."""

    __module__ = "torch.autograd.function"


class NestedIOFunction(Function):
    """Refused: PyTorch keeps it for internal use."""

    __module__ = "torch.autograd.function"

    @classmethod
    def apply(cls, *args, **kwargs):
        raise NotImplementedError("NestedIOFunction: pass nested structures as flat tensors to a Function")
