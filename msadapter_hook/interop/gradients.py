"""MindSpore's functional differentiation over functions in which our tensors take part: one pass of our engine.

value_and_grad and grad decide at the call: where something of ours is among weights or arguments, or turns up while MindSpore
differentiates, the function runs on our tape; otherwise MindSpore's own function runs as if nobody had looked.
Works without ENABLE_BACKWARD: `.grad` is never touched.
"""

import contextlib
import importlib
import inspect
import sys
import threading

import mindspore
import wrapt

from msadapter_hook import prims
from msadapter_hook.autograd.engine import Backward
from msadapter_hook.autograd.passes import key_of
from msadapter_hook.autograd.transforms import Level
from msadapter_hook.ops.tables import call as operator
from msadapter_hook.tape import enable_grad, late, no_grad
from msadapter_hook.tape.recording import state as tape_state
from msadapter_hook.tensor import Tensor, cast_value

from . import crossing, modes, parameters
from .compiled import graphs_wanted
from .crossing import NativeTensor
from .references import refers
from .trees import filled, instances, tree_map


class _Depth(threading.local):
    count = 0  # gradients of ours under way: the inner ones are differentiated again


_depth = _Depth()


class Request:
    """What is asked of a gradient: the arguments of mindspore.value_and_grad, checked as MindSpore does."""

    def __init__(self, fn, grad_position=0, weights=None, has_aux=False, return_ids=False, sens_param=False):
        if grad_position is None and weights is None:
            raise ValueError("`grad_position` and `weight` can not be None at the same time.")
        self.fn, self.position, self.has_aux = fn, grad_position, has_aux
        self.return_ids, self.sens_param = return_ids, sens_param
        self.weights = weights
        self.listed = None if weights is None else [weights] if isinstance(weights, (Tensor, NativeTensor)) else list(weights)
        for w in self.listed or ():
            if not isinstance(w, (Tensor, NativeTensor)):
                raise TypeError(f"weights: parameters of either side are needed, got {type(w).__name__}")

    @property
    def positions(self):
        """The positions as a tuple."""
        if self.position is None:
            return ()
        return (self.position,) if isinstance(self.position, int) else tuple(self.position)

    def shaped(self, by_position, by_weight):
        """Gradients in the structure that MindSpore gives them."""
        if self.return_ids:
            by_position = [(p, g) for p, g in zip(self.positions, by_position)]
            by_weight = [(_identifier(w), g) for w, g in zip(self.listed or (), by_weight)]
        first = by_position[0] if isinstance(self.position, int) and by_position else tuple(by_position)
        second = by_weight[0] if self.weights is not None and self.weights is self.listed[0] else tuple(by_weight)
        if self.weights is None:
            return first
        return second if self.position is None else (first, second)


def _identifier(weight):
    """What stands for a weight where ids are asked for: a MindSpore Parameter's name; one of ours stands for itself."""
    return weight.name if isinstance(weight, mindspore.Parameter) else weight


def value_and_grad(native, args, kwargs):
    """mindspore.value_and_grad"""
    return _differentiated(native, args, kwargs, lambda value, grads, aux: (value, grads))


def grad(native, args, kwargs):
    """mindspore.grad"""
    return _differentiated(native, args, kwargs, lambda value, grads, aux: (grads, aux) if aux is not None else grads)


def _differentiated(native, args, kwargs, result):
    bound = inspect.signature(native).bind(*args, **kwargs)
    weights = bound.arguments.get("weights")
    if weights is not None and not isinstance(weights, (Tensor, NativeTensor, tuple, list)):
        bound.arguments["weights"] = weights = list(weights)  # a generator would be empty the second time
    if "grad_position" in bound.arguments:
        bound.arguments["grad_position"] = _unpacked(bound.arguments["grad_position"])
    request = Request(*bound.args, **bound.kwargs)
    ours = any(isinstance(w, Tensor) for w in request.listed or ())

    def on_tape(*inputs, **named):
        return result(*run(request, inputs, named))

    if ours:
        on_tape.__name__ = f"grad_of_{getattr(request.fn, '__name__', type(request.fn).__name__)}"
        return on_tape
    route = {"ours": False}

    def decide(wrapped, instance, inputs, named):
        if not route["ours"]:
            route["ours"] = bool(instances((inputs, named), Tensor)) or refers(request.fn)
        if not route["ours"]:
            try:
                with modes.watching():
                    return wrapped(*inputs, **named)
            except modes.Crossed:
                route["ours"] = True
        return on_tape(*inputs, **named)

    return wrapt.FunctionWrapper(native(*bound.args, **bound.kwargs), decide)


def operation(settings, native, args, kwargs):
    """mindspore.ops.GradOperation(...)(fn, weights)"""
    bound = inspect.signature(native).bind(*args, **kwargs)
    fn, weights = bound.arguments["fn"], bound.arguments.get("weights")

    def request(inputs):
        count = len(inputs) - int(settings.sens_param)
        position = tuple(range(count)) if settings.get_all else None if settings.get_by_list else 0
        return Request(fn, position, (weights if settings.get_by_list else None), False, False, settings.sens_param)

    def on_tape(*inputs, **named):
        return run(request(inputs), inputs, named)[1]

    if weights is not None and instances(list(weights) if not isinstance(weights, (Tensor, NativeTensor)) else weights, Tensor):
        return on_tape
    native_function = native(*args, **kwargs)

    def decide(wrapped, instance, inputs, named):
        # a Cell with served modules inside takes part in MindSpore's own gradient: only our tensors need our engine
        if instances((inputs, named), Tensor):
            return on_tape(*inputs, **named)
        try:
            with modes.watching():
                return wrapped(*inputs, **named)
        except modes.Crossed:
            return on_tape(*inputs, **named)

    return wrapt.FunctionWrapper(native_function, decide)


def _unpacked(position):
    """One position for a tuple of one: MindSpore gives one gradient for it too."""
    return position[0] if type(position) is tuple and len(position) == 1 else position


def _transform(name, **arguments):
    """torch.func's transform for MindSpore's of that name, decided at the call."""

    def wrapper(native, args, kwargs):
        bound = inspect.signature(native).bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        native_function = native(*args, **kwargs)

        def decide(wrapped, instance, inputs, named):
            if not (instances((inputs, named), Tensor) or refers(given["fn"])):
                return wrapped(*inputs, **named)
            transform = getattr(_served("func"), name)
            chosen = {theirs: _unpacked(given[ours]) for theirs, ours in arguments.items()}
            inputs, named = crossing.cast_to_adapter_tensor((tuple(inputs), named))
            return transform(given["fn"], **chosen)(*inputs, **named)

        return wrapt.FunctionWrapper(native_function, decide)

    return wrapper


def _served(name):
    """A module of the served tree, under whatever name that is served."""
    for root in ("torch", "mindtorch.torch"):
        module = sys.modules.get(f"{root}.nn")
        if module is not None and refers(module):
            return importlib.import_module(f"{root}.{name}")
    raise RuntimeError(f"torch.{name} is needed, but no served torch is imported")


jacrev = _transform("jacrev", argnums="grad_position", has_aux="has_aux")
jacfwd = _transform("jacfwd", argnums="grad_position", has_aux="has_aux")
vmap = _transform("vmap", in_dims="in_axes", out_dims="out_axes")


def get_grad(native, args, kwargs):
    """mindspore.get_grad: the gradient that belongs to a position or a weight, among those with ids."""
    bound = inspect.signature(native).bind(*args, **kwargs)
    gradients, identifier = bound.args
    if isinstance(identifier, Tensor):
        return _find(gradients, lambda name: name is identifier)
    if isinstance(identifier, mindspore.Parameter) and instances(gradients, Tensor):
        return _find(gradients, lambda name: name == identifier.name)
    if isinstance(identifier, int) and instances(gradients, Tensor):
        return _find(gradients, lambda name: type(name) is int and name == identifier)
    return native(*args, **kwargs)


def _find(gradients, fits):
    if isinstance(gradients, (tuple, list)):
        if len(gradients) == 2 and not isinstance(gradients[0], (tuple, list)) and isinstance(gradients[1], Tensor):
            return gradients[1] if fits(gradients[0]) else None
        for item in gradients:
            found = _find(item, fits)
            if found is not None:
                return found
    return None


def run(request, inputs, named):
    """(value, gradients, aux) of a request on our tape; value as the function gives it, without history at the outermost level.

    Weights that the function does not reach get zeros, as MindSpore has it.
    """
    sens = None
    if request.sens_param:
        if "sens" in named:
            named = dict(named)
            sens = named.pop("sens")
        else:
            inputs, sens = inputs[:-1], inputs[-1]
    named = crossing.cast_to_adapter_tensor(named)
    weights = [parameters.adapted(w) if isinstance(w, NativeTensor) else w for w in request.listed or ()]
    with graphs_wanted(), _inside_transforms() as level:
        inputs, leaves = _fresh(crossing.cast_to_adapter_tensor(tuple(inputs)), request.positions, level)
        value = _call(request.fn, inputs, named, request.listed or ())
        if request.has_aux and not (isinstance(value, tuple) and len(value) >= 2):
            raise ValueError("When has_aux is True, origin fn requires more than one outputs.")
        nested = _nested()
        grads = _pull(value[0] if request.has_aux else value, sens, leaves + weights, keep=nested, again=nested)
        aux = value[1:] if request.has_aux else None
        (value, aux), grads = _outermost((value, aux), level), _outermost(grads, level)
    return value, request.shaped(grads[:len(leaves)], grads[len(leaves):]), aux


def _inside_transforms():
    """A level of torch.func's kind inside one of its transforms (ms.vmap, ms.jacrev), where leaves are stand-ins; else None."""
    return Level() if tape_state.transforms else contextlib.nullcontext()


def _nested():
    """Whether a gradient further out may differentiate this one again."""
    return bool(_depth.count or tape_state.transforms)


def _call(fn, inputs, named, weights):
    """The function on our tape. MindSpore records too where weights of its own are asked for, so that both histories join."""
    native = tuple([w for w in weights if isinstance(w, NativeTensor) and w._requires_grad])
    before, modes.state.weights = modes.state.weights, native or modes.state.weights
    _depth.count += 1
    try:
        with enable_grad(), modes.pynative(), modes.native_recording(bool(native)):
            return tree_map(crossing.wrap, fn(*inputs, **named), NativeTensor)
    finally:
        _depth.count -= 1
        modes.state.weights = before


def _fresh(inputs, positions, level=None):
    """The inputs with a fresh leaf at each position, and these leaves. Within an outer gradient they keep their history."""
    inputs, leaves = list(inputs), []
    for p in positions:
        if not -len(inputs) <= p < len(inputs):
            raise ValueError(f"grad_position {p} is not one of the {len(inputs)} positional arguments")
        x = inputs[p]
        if not isinstance(x, Tensor):
            raise TypeError(f"grad_position {p}: a tensor is needed, got {type(x).__name__}")
        if x.dtype.is_floating_point or x.dtype.is_complex:  # the gradient of integers is zeros, as MindSpore has it
            with enable_grad():
                inputs[p] = (level.enter(x) if level is not None else
                             operator("clone", x) if x.requires_grad and _depth.count else x.detach().requires_grad_(True))
        leaves.append(inputs[p])
    return tuple(inputs), leaves


def _pull(outputs, sens, wanted, keep, again):
    """The gradients of all tensors in `outputs`, weighted by `sens` (ones where None), one per tensor in `wanted`.

    keep: the graph stays for another pull; again: the gradients can be differentiated themselves.
    """
    tensors = instances(outputs, Tensor)
    given = [None] * len(tensors) if sens is None else instances(crossing.cast_to_adapter_tensor(sens), Tensor)
    if len(given) != len(tensors):
        raise ValueError(f"the function gives {len(tensors)} tensors, but {len(given)} sensitivities were given")
    roots, implicit = [], []
    for out, g in zip(tensors, given):
        if not out.requires_grad:
            continue
        with enable_grad():
            value = out.value
            if g is None:
                cotangent = late.ones(value)
                implicit.append(cotangent)
            else:
                cotangent = cast_value(g.value, out.dtype)
                if tuple(cotangent.shape) != tuple(value.shape):
                    raise ValueError(f"a sensitivity of shape {tuple(g.shape)} for an output of shape {tuple(out.shape)}")
        roots.append((value, cotangent))
    with enable_grad():
        keys = [key_of(t.value) if t.requires_grad else None for t in wanted]
    asked = [k for k in keys if k is not None]
    found = {}
    if roots and asked:
        found = Backward(roots, asked, accumulate=False, retain_graph=keep, create_graph=again and tape_state.enabled,
                         implicit=implicit).run()
    made = []
    for t, key in zip(wanted, keys):
        g = found.get(key) if key is not None else None
        with no_grad():
            made.append(Tensor._make(g if g is not None else prims.zeros_like(t.value)))
    return made


def _outermost(x, level=None):
    """Results of the outermost gradient carry no history, as MindSpore's do not."""
    if level is not None:
        return tree_map(level.leave, x, Tensor)
    return x if _nested() else tree_map(lambda t: t.detach() if t.requires_grad else t, x, Tensor)


# ------------------------------------------------------------------------------------------------ products
def _takes_part(fn, *given):
    return bool(instances(given, Tensor)) or refers(fn)


def vjp(native, args, kwargs):
    """mindspore.vjp: the outputs, and a function from their cotangents to gradients of the inputs (and weights)."""
    fn, *inputs = args
    weights, has_aux = kwargs.get("weights"), kwargs.get("has_aux", False)
    if not _takes_part(fn, inputs, weights):
        return native(*args, **kwargs)
    request = Request(fn, tuple(range(len(inputs))), weights, has_aux)
    given, leaves = _fresh(crossing.cast_to_adapter_tensor(tuple(inputs)), request.positions)
    owned = [parameters.adapted(w) if isinstance(w, NativeTensor) else w for w in request.listed or ()]
    value = _call(fn, given, {}, request.listed or ())
    primal = value[0] if has_aux else value

    def vjp_fn(*cotangents):
        """Gradients for these cotangents, one per output; may be called again."""
        with contextlib.nullcontext() if _depth.count else no_grad():
            grads = _pull(primal, cotangents, leaves + owned, keep=True, again=bool(_depth.count))
        first, second = tuple(grads[:len(leaves)]), tuple(grads[len(leaves):])
        return first if weights is None else (first, second[0] if weights is request.listed[0] else second)

    if has_aux:
        aux = value[1] if len(value) == 2 else value[1:]
        return _outermost(primal), vjp_fn, _outermost(aux)
    return _outermost(primal), vjp_fn


def jvp(native, args, kwargs):
    """mindspore.jvp: the outputs, and the derivative along `v`: the vjp differentiated by its cotangent."""
    bound = inspect.signature(native).bind(*args, **kwargs)
    bound.apply_defaults()
    fn, inputs, v, has_aux = (bound.arguments[name] for name in ("fn", "inputs", "v", "has_aux"))
    if not _takes_part(fn, inputs, v):
        return native(*args, **kwargs)
    single = not isinstance(inputs, (tuple, list))
    inputs, v = crossing.cast_to_adapter_tensor(((inputs,), (v,)) if single else (tuple(inputs), tuple(v)))
    given, leaves = _fresh(inputs, tuple(range(len(inputs))))
    value = _call(fn, given, {}, ())
    primal = value[0] if has_aux else value
    outputs = instances(primal, Tensor)
    dummies = [operator("zeros_like", o).requires_grad_(True) for o in outputs]
    with enable_grad():
        pulled = _pull(primal, dummies, leaves, keep=True, again=True)
        total = None
        for g, direction in zip(pulled, v):
            term = operator("sum", operator("mul", g, direction))
            total = term if total is None else operator("add", total, term)
        tangents = _outermost(_pull(total, None, dummies, keep=True, again=bool(_depth.count)))
    pushed = filled(primal, tangents, Tensor)
    if has_aux:
        return _outermost(primal), pushed, _outermost(value[1] if len(value) == 2 else value[1:])
    return _outermost(primal), pushed
