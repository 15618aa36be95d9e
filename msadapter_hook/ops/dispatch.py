"""`__torch_dispatch__`: what sees the operators below autograd, as overloads of `torch.ops.aten`: the dispatch modes of a thread,
innermost first, then the tensor subclasses among the arguments.

A call first goes the usual way (function overrides, autocast). Where a mode is entered or an argument's class dispatches, it
comes here: it is named as PyTorch names it (`aten`, `aten_parts`), handed to whoever is asked, and its result gets its place in
the graph. Gradients of tensors whose data only their class knows follow from the shapes alone: the operator is run once more on
plain tensors without data, which notes what the gradient is made of; backward then computes with operators on those tensors.
"""

import functools
import threading
import weakref

from msadapter_hook.tape import Node, Primitive, Value, no_grad
from msadapter_hook.tape.abstract import Deferred, NoData, Opaque, Watched, followed, watched
from msadapter_hook.tape.recording import state as recording
from msadapter_hook.tensor import Tensor, dtypes
from msadapter_hook.tensor.core import new_storage
from msadapter_hook.tensor.generator import default_generator

from . import aten, overrides
from .tables import METHODS, PARTS


class _State(threading.local):
    modes = ()  # dispatch modes entered, outermost first
    disabled = 0  # contexts in which nobody is asked


state = _State()
packets = None  # torch.ops.aten, set by the served tree


def push_mode(mode):
    """Enter a dispatch mode."""
    overrides.entered += 1
    state.modes = (*state.modes, mode)


def pop_mode():
    """Leave the innermost dispatch mode and give it."""
    overrides.entered -= 1
    mode, state.modes = state.modes[-1], state.modes[:-1]
    return mode


class without_modes:
    """Context: no dispatch mode is entered."""

    def __enter__(self):
        self._before, state.modes = state.modes, ()
        return self

    def __exit__(self, *exc):
        state.modes = self._before


class disabled:
    """Context: neither modes nor subclasses are asked. Source: PyTorch, torch._C._DisableTorchDispatch."""

    def __enter__(self):
        state.disabled += 1

    def __exit__(self, *exc):
        state.disabled -= 1


def _undispatched(func, args, kwargs):
    with disabled():
        return func(*args, **kwargs)


Tensor._undispatched = staticmethod(_undispatched)


def tensors_in(tree):
    """The tensors of nested lists, tuples and dictionaries."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for one in tree:
            yield from tensors_in(one)
    elif isinstance(tree, dict):
        yield from tensors_in(list(tree.values()))


def active(*trees):
    """Whether a mode or one of the tensors wants to see a call."""
    if state.disabled:
        return False
    return bool(state.modes) or any(t._dispatches for t in tensors_in(trees))


# ------------------------------------------------------------------------------------------------ from operators
@functools.cache
def overload_of(name, overload):
    """The OpOverload of `torch.ops.aten`."""
    return getattr(getattr(packets, name), overload or "default")


def operator(entry, overload, bound, inplace=False):
    """A call of an operator that somebody sees. NotImplementedError where PyTorch has no name for it that could be handed on."""
    schema = overload.schema
    part = None if inplace else PARTS.get(schema.name)
    if part is not None:
        found = part(**{p.name: v for p, v in zip(schema.parameters, bound)})
        if found is not NotImplemented:
            return found
    target = aten.target(overload, bound, inplace)
    if target is None or target[1].implicit and overload.kind != "kernel":
        if overload.kind != "kernel" and not inplace:
            return overload.body(*bound)  # made of others, which are seen
        if target is None:
            if any(t._dispatches for t in tensors_in(bound)):
                raise NotImplementedError(f"{entry.name} has no name in torch.ops.aten under which __torch_dispatch__ could see it; "
                                          "call it on the plain tensors inside")
            return native(entry, overload, bound, inplace)
    name, found, args, kwargs = target
    made = call(overload_of(name, found.schema.overload), args, kwargs)
    if type(made) in (tuple, list) and all(isinstance(t, Tensor) for t in made):
        return overload.results(*made) if overload.results is not None else tuple(made)
    return made


def native(entry, overload, bound, inplace=False):
    """The operator itself, seen by nobody."""
    with disabled():
        if inplace:
            return METHODS[entry.short + "_"](*bound)
        return overload.run(bound)


def emit(qualified, *args, **kwargs):
    """Call `torch.ops.aten` by a name like "slice.Tensor"."""
    name, _, overload = qualified.partition(".")
    return call(overload_of(name, overload), list(args), kwargs)


# ------------------------------------------------------------------------------------------------ to handlers
def call(func, args, kwargs):
    """One overload: asks the modes and the subclasses, and gives the result its place in the graph."""
    tensors = list(tensors_in((args, kwargs)))
    if state.disabled or not (state.modes or any(t._dispatches for t in tensors)):
        return _plain(func, func.native(*args, **kwargs))
    if not any(t._dispatches for t in tensors):
        result = _ask(func, tensors, args, kwargs)  # data are here: what a mode lets happen is recorded as it happens
        return _recorded(func, args, kwargs, tensors, result)
    requires = recording.enabled and not recording.symbolic and any(t.requires_grad for t in tensors)
    moving = not recording.symbolic and _has_tangents(tensors)
    values = _traced(func, args, kwargs) if requires or moving else None
    with no_grad():
        result = _ask(func, tensors, args, kwargs)
    written = [args[i] for i in func.written if i < len(args)]
    if written and values is None:
        for t in written:
            t._history.version.count += 1
    if requires or moving:
        result = _placed(func, values, result, tensors, written)
    return result


def _recorded(func, args, kwargs, tensors, result):
    """What a mode gave for plain tensors: something other than the operator's own result takes that one's place in the graph."""
    if not recording.enabled or func.written or not any(t.requires_grad for t in tensors):
        return result
    made = list(tensors_in(result))
    if all(t.requires_grad or not (t._dtype.is_floating_point or t._dtype.is_complex) for t in made):
        return result
    drawn = default_generator.get_state()
    values = _traced(func, args, kwargs)
    if default_generator.get_state().value.numpy.tobytes() != drawn.value.numpy.tobytes():
        default_generator.set_state(drawn)
        if values is None or any(v.requires_grad for v in values):
            raise NotImplementedError(f"a __torch_dispatch__ mode gave a result of its own for {func}, whose gradient depends on what "
                                      "it draws; let the operator run")
    if values is None or len(values) != len(made) or any(v.shape != tuple(t._size) for v, t in zip(values, made)):
        return result
    return _placed(func, values, result, tensors, [])


def _plain(func, result):
    """Several results as handlers get them: a tuple, or a list where the schema says so."""
    if not isinstance(result, (tuple, list)):
        return result
    return list(result) if func.gives_list else tuple(result)


def _has_tangents(tensors):
    """Whether forward mode follows one of the tensors."""
    if not recording.levels:
        return False
    with no_grad():
        values = [t.value for t in tensors]
    return any(level.tangent(v) is not None for level in recording.levels for v in values)


def _ask(func, tensors, args, kwargs):
    args = tuple(args)
    asked = []
    for t in tensors:
        kind = type(t)
        if t._dispatches and all(type(a) is not kind for a in asked):
            at = next((i for i, a in enumerate(asked) if issubclass(kind, type(a))), len(asked))
            asked.insert(at, t)
    types = tuple([type(t) for t in asked])
    declined = []
    if state.modes:
        modes = state.modes
        mode, state.modes = modes[-1], modes[:-1]
        try:
            result = mode.__torch_dispatch__(func, types, args, kwargs)
        finally:
            state.modes = modes
        if result is not NotImplemented:
            return result
        declined.append(f"mode object {mode}")
    for t in asked:
        result = type(t).__torch_dispatch__(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
        declined.append(f"tensor subclass {type(t)}")
    reasons = "\n".join([f"  - {d}" for d in declined])
    raise TypeError(f"Multiple dispatch failed for 'torch.ops.{func}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n"
                    f"{reasons}\n\nFor more information, try re-running with TORCH_LOGS=not_implemented")


# ------------------------------------------------------------------------------------------------ gradients
class _Symbolic:
    """Context: operations are noted for their gradients, nothing is computed, and nobody sees them."""

    def __enter__(self):
        self._before, recording.symbolic = recording.symbolic, True
        state.disabled += 1

    def __exit__(self, *exc):
        recording.symbolic = self._before
        state.disabled -= 1


def shadow(tree):
    """The tensors of a tree as plain tensors over the same histories."""
    if isinstance(tree, Tensor):
        return Tensor.as_subclass(tree, Tensor) if type(tree) is not Tensor else tree
    if isinstance(tree, (list, tuple)):
        return type(tree)([shadow(t) for t in tree]) if type(tree) in (list, tuple) else tuple([shadow(t) for t in tree])
    if isinstance(tree, dict):
        return {k: shadow(v) for k, v in tree.items()}
    return tree


def _traced(func, args, kwargs):
    """The Values of the results, with the nodes that their gradients are made of; None where only the data could tell them."""
    try:
        with _Symbolic():
            result = func.native(*shadow(list(args)), **shadow(kwargs))
            return [t.value for t in tensors_in(result)]
    except (Opaque, NoData):
        return None


def _refuse(grads, outs, needs, *inputs, name):
    raise NotImplementedError(f"the gradient of {name} is not known for tensor subclasses: it depends on their data")


_unknown = Primitive("unknown", lambda *a, name: a[0], joint_vjp=_refuse, uses_output=False, outputs=None)


def _placed(func, values, result, tensors, written):
    """The result of a handler, its tensors as outputs of the nodes in `values`."""
    made = list(tensors_in(result))
    if values is None:
        floats = [t for t in made if t._dtype.is_floating_point or t._dtype.is_complex]
        if not floats:
            return result
        node = Node(_unknown, {"name": str(func)}, tuple([t.value for t in tensors]), False)
        values = [Value(tuple(t._size), t._dtype.numpy, None, None, node, i, t in floats) for i, t in enumerate(made)]
        node.bind(values)
    given = {id(t) for t in tensors}
    replaced = {}
    for t, v in zip(made, values):
        if recording.levels and not v.requires_grad:
            with no_grad():
                followed(v, t.value)
        if v.requires_grad and not (t.requires_grad and id(t) not in given):
            if id(t) in given and not any(t is w for w in written):
                with no_grad():
                    replaced[id(t)] = t = t.detach()
            adopt(t, v.node, v.index, v)
    if not replaced:
        return result
    return _swapped(result, replaced)


def _swapped(tree, replaced):
    if isinstance(tree, Tensor):
        return replaced.get(id(tree), tree)
    return type(tree)([_swapped(t, replaced) for t in tree]) if type(tree) in (list, tuple) else tree


def adopt(tensor, node, index, traced=None):
    """Make `tensor` output `index` of `node`, with the tangents of `traced`; gives its Value."""
    with no_grad():
        old = tensor.value
    shape, dtype = tuple(tensor._size), old.dtype
    if old.wrapped:
        own = Deferred(shape, dtype, weakref.ref(tensor), node, index, dtype.kind in "fcV")
    else:
        own = type(old)(old.shape, dtype, old._numpy, old._array, node, index, dtype.kind in "fcV")
    if traced is not None:
        followed(traced, own)
    history = tensor._history
    if tensor._moves or history.views:
        history = tensor._history = new_storage(own, tensor._size, tensor._stride, tensor._history.storage.device)
        tensor._moves = ()
    history.value, history.synced = own, history.storage.generation
    tensor._value, tensor._generation, tensor._parent = own, history.storage.generation, None
    outputs = list(node.outputs)
    outputs[index] = weakref.ref(own)
    node.outputs = tuple(outputs)
    return own.held() if own.wrapped else own


def seen_cotangent(root, cotangent, implicit):
    """The cotangent that a backward pass under a mode starts with; where it was not given it is made for the mode to see."""
    if not implicit or root.abstract:
        return watched(cotangent)
    with no_grad():
        made = emit("ones_like", Tensor._make(root.detach()), pin_memory=False, memory_format=dtypes.preserve_format)
        return watched(made.value)


def seen_gradient(cotangent, gathered):
    """A leaf's gradient as it is kept, which a mode sees."""
    if type(cotangent) is not Watched:
        return cotangent
    tensor = cotangent.tensor
    if gathered is None and not cotangent.requires_grad:
        emit("detach", tensor)
    return tensor.value


# ------------------------------------------------------------------------------------------------ subclasses
def wrapper(cls, size, *, strides=None, storage_offset=None, memory_format=None, dtype=None, layout=None, device=None,
            pin_memory=False, requires_grad=False, dispatch_sizes_strides_policy=None, dispatch_device=False, dispatch_layout=False,
            _extra_dispatch_keys=None, storage_size=None):
    """A tensor of `cls` without data of its own: a size, strides, dtype and device; everything else its `__torch_dispatch__` says.

    Sizes, strides, device and layout are those given here, whatever the policies; the class is not asked for them.
    TypeError where `cls` has no `__torch_dispatch__`, ValueError for an unknown policy, RuntimeError for an offset without strides.
    Source: PyTorch, Tensor._make_wrapper_subclass.
    """
    from msadapter_hook.tensor import geometry
    from msadapter_hook.tensor.device import device as Device

    if not (isinstance(cls, type) and issubclass(cls, Tensor) and cls._dispatches):
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    if layout is not None and layout is not dtypes.strided:
        raise NotImplementedError(f"_make_wrapper_subclass: only the layout torch.strided, not {layout}")
    if dispatch_sizes_strides_policy not in (None, "strides", "sizes"):
        raise ValueError(f"Unknown sizes_strides_policy: {dispatch_sizes_strides_policy}; expected 'strides' or 'sizes'")
    if storage_offset is not None and strides is None:
        raise RuntimeError("setting storage offset without stride not supported")
    size = tuple(size)
    dtype = dtype or dtypes.get_default_dtype()
    if strides is None:
        strides = (geometry.channels_last_stride(size) if memory_format in (dtypes.channels_last, dtypes.channels_last_3d)
                   else geometry.contiguous_stride(size))
    value = Deferred(size, dtype.numpy)
    device = None if device is None else device if isinstance(device, Device) else Device(device)
    history = new_storage(value, size, tuple(strides), device)
    made = cls._window(history, (), size, strides, storage_offset or 0, dtype)
    value.keep = weakref.ref(made)
    return Tensor.requires_grad_(made) if requires_grad else made
