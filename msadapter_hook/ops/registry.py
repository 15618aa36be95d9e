"""Operators: each written once, functionally, under its schema; function, method, in-place and `out=` are derived here.

Three kinds of body: `operator` works on Values (kernels), `composite` on Tensors (made of other operators), `view` on
Tensors and gives a view. The forms a schema gets are named in `forms`: function, method, inplace, out.
"""

import warnings

from msadapter_hook import foreign, report
from msadapter_hook.tape import Value
from msadapter_hook.tape.abstract import NoData
from msadapter_hook.tape.recording import state
from msadapter_hook.tensor import Tensor, geometry
from msadapter_hook.tensor.core import DTYPE_OF

from . import arguments, compound, dispatch, expanded, gradient_names, kept, meta, overrides, participants
from .arguments import Mismatch
from .binding import binder, result_type_of
from .complaints import ALIASES, Call
from .refusals import c_name
from .schema import parse
from .tables import METHODS, OPERATORS, PATH, interceptors
from .writing import SELF_OVERLAP, check_inplace, check_overlap, own_memory, write_inplace, write_out


class Overload:
    """One schema and its body, with the generated functions that bind arguments and run it."""

    def __init__(self, schema, body, kind, saves, grad_name, layout, overlap, writes=None):
        self.layout = layout
        self.overlap = overlap
        self.writes = writes
        self.schema = schema
        self.body = body
        self.kind = kind
        key = f"{schema.name}.{schema.overload}" if schema.overload else schema.name
        self.renames = key in gradient_names.NAMES and kind == "composite"
        self.grad_name = gradient_names.NAMES.get(key) or grad_name or gradient_names.default(schema.name)
        self.saves = kept.parse(key, saves)
        self.tensors = tuple([i for i, p in enumerate(schema.parameters) if p.kind in ("Tensor", "Operand", "any")])
        self.lists = tuple([i for i, p in enumerate(schema.parameters) if p.kind in ("Tensor[]", "OptionalTensor[]")])
        self.results = result_type_of(schema)
        self.positions = {p.name: i for i, p in enumerate(schema.parameters)}
        self.factory = self.positions["dtype"] if "pin_memory" in self.positions else None
        if self.factory is not None:
            self.body = meta.aware(self, body)

    def bind(self, *args, **kwargs):
        """The arguments in the order of the schema, converted. Mismatch or TypeError where they do not fit. The function that does it is
        generated at the first call and takes the place of this one: 700 of them take 0.2 s."""
        self.bind = binder(self.schema)
        return self.bind(*args, **kwargs)

    def run(self, bound):
        """The result for bound arguments, as new Tensors."""
        try:
            if self.kind != "kernel":
                return self._renamed(self.body(*bound), bound) if self.renames else self.body(*bound)
            if state.saving is not None and self.saves and state.enabled:
                return state.saving.run(self, bound)
            return self.wrap(self.evaluate(bound), bound)
        except NoData as error:
            return meta.inferred(self, bound, error)

    def name_of(self, value, bound):
        """PyTorch's name of the gradient node of a result."""
        name = self.grad_name
        return name if type(name) is str else name(value, lambda parameter: bound[self.positions[parameter]])

    def _renamed(self, result, bound):
        """The result of a composite, its last node under the name of the whole; what was handed through keeps its own."""
        before = [bound[i].value.node for i in self.tensors if isinstance(bound[i], Tensor)]
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            if tensor.requires_grad and (node := tensor.value.node) is not None and node not in before:
                node.operator = self.name_of(tensor.value, bound)
        return result

    def given(self, bound):
        """The tensors among bound arguments."""
        alone = [bound[i] for i in self.tensors]
        return [t for t in alone + [t for i in self.lists for t in bound[i]] if isinstance(t, Tensor)]

    def evaluate(self, bound):
        """The result Values for bound arguments."""
        values = list(bound)
        for i in self.tensors:
            t = values[i]
            if isinstance(t, Tensor):
                values[i] = t.value
        for i in self.lists:
            values[i] = [t.value if t is not None else None for t in values[i]]
        return self.body(*values)

    def wrap(self, result, bound):
        if self.writes is not None:
            made = self._wrap(result, bound)
            made._history.version.count = self.writes(bound)
            return made
        if isinstance(result, Value):
            return self._wrap(result, bound)
        if result is None or isinstance(result, (bool, int, float)):
            return result
        made = [self._wrap(r, bound, False) if isinstance(r, Value) else r for r in result]
        for r in result if self.saves else ():
            if isinstance(r, Value) and r.requires_grad and r.node is not None and r.node.saved is None:
                r.node.saved = kept.versions(self, bound, made)
        if self.results is not None:
            return self.results(*made)
        return made if type(result) is list else tuple(made)

    def _wrap(self, value, bound, alone=True):
        if value.requires_grad:
            node = value.node
            if node is not None:
                if node.operator is None:
                    node.operator = self.name_of(value, bound)
                made = Tensor._make(self._private(value, bound), None, self._stride(value, bound))
                if alone and self.saves and node.saved is None:
                    node.saved = kept.versions(self, bound, (made,))
                return made
        return Tensor._make(self._private(value, bound), None, self._stride(value, bound))

    def _stride(self, value, bound):
        """The strides of a result, None where it is contiguous: see `layout` of `operator`."""
        if self.layout is None:
            return None
        if self.layout == "channels":
            return self._channels_last(value, bound)
        if self.layout == "columns":
            rank = max([len(t._size) for t in [bound[i] for i in self.tensors] if isinstance(t, Tensor)])
            return geometry.columns_stride(value.shape) if len(value.shape) == rank else None
        if not isinstance(self.layout, str):
            return self.layout(value, bound)
        for i in self.tensors:
            t = bound[i]
            if isinstance(t, Tensor) and t._stride != geometry.standard_stride(t._size):
                break
        else:
            return None
        operands = [(t._size, t._stride) for t in [bound[i] for i in self.tensors] if isinstance(t, Tensor)]
        if self.layout == "self":
            operands = operands[:1]
        if all(not size for size, _ in operands) or any(len(size) > len(value.shape) for size, _ in operands):
            return None
        if geometry.broadcast_shapes(*[size for size, _ in operands]) != value.shape:
            return None
        return geometry.elementwise_stride(value.shape, operands)

    def _channels_last(self, value, bound):
        """Channels innermost where they are so in an operand of the result's rank (in all of a list), else None."""
        rank = len(value.shape)
        if rank not in (4, 5):
            return None
        alone = [bound[i] for i in self.tensors]
        groups = [[t] for t in alone if isinstance(t, Tensor)] + [bound[i] for i in self.lists]
        for group in groups:
            if group and all(len(t._size) == rank and t._stride != geometry.standard_stride(t._size)
                             and geometry.suggests_channels_last(t._size, t._stride) for t in group):
                return geometry.channels_last_stride(value.shape)
        return None

    def _private(self, value, bound):
        """`value` with memory of its own where an argument's memory is visible from outside."""
        for i in self.tensors:
            t = bound[i]
            if isinstance(t, Tensor) and t._shared:
                return own_memory(value, t)
        for i in self.lists:
            for t in bound[i]:
                if t is not None and t._shared:
                    value = own_memory(value, t)
        return value


class Operator:
    """A public name with its overloads. Calling it binds the arguments to the first overload that takes them."""

    def __init__(self, name):
        self.name = name
        self.short = name.rsplit(".", 1)[-1]
        self.overloads = []
        self.function = None

    def select(self, args, kwargs):
        """(overload, bound arguments). TypeError in PyTorch's words where no overload fits."""
        overloads = self.overloads
        for overload in overloads:
            try:
                return overload, overload.bind(*args, **kwargs)
            except (Mismatch, TypeError):
                continue
        renamed = {ALIASES.get(k, k): v for k, v in kwargs.items()}
        if len(renamed) == len(kwargs) and renamed != kwargs or "self" in kwargs:
            for overload in overloads:
                names = {p.name for p in overload.schema.parameters}
                chosen = {(ALIASES.get(k, k) if k not in names else k): v for k, v in kwargs.items()}
                try:
                    return overload, overload.bind(*args, **chosen)
                except (Mismatch, TypeError):
                    continue
        error = Call(self, args, kwargs).error()
        error.call = self, args, kwargs
        raise error

    def _foreign(self, args, kwargs):
        """Arguments that are no tensors but take part by `__torch_function__`, also those in lists and tuples."""
        found = []
        for a in (*args, *kwargs.values()):
            for one in a if type(a) in (list, tuple) else (a,):
                if hasattr(type(one), "__torch_function__") and not isinstance(one, Tensor):
                    found.append(one)
        return found

    def __call__(self, *args, **kwargs):
        if overrides.entered and overrides.state.modes:
            return overrides.call_mode(self.function, args, kwargs)
        try:
            overload, bound = self.select(args, kwargs)
        except TypeError:
            made = foreign.arguments(args, kwargs)
            if made is not None:
                return self(*made[0], **made[1])
            asked = self._foreign(args, kwargs)
            if not asked:
                raise
            return overrides.call_override(self.function, asked, args, kwargs)
        for i in overload.tensors:
            if getattr(bound[i], "_overrides", False):
                found = participants.call(self, overload, bound, args, kwargs)
                if found is not participants.NOBODY:
                    return found
                break
        for i in overload.lists:
            if any(getattr(t, "_overrides", False) for t in bound[i]):
                found = participants.call(self, overload, bound, args, kwargs)
                if found is not participants.NOBODY:
                    return found
        for interceptor in interceptors:
            found = interceptor(self, overload, bound)
            if found is not None:
                bound = found
        if overrides.entered and dispatch.active(bound):
            return dispatch.operator(self, overload, bound)
        if report.enabled:
            return report.measure("torch." + self.name, overload.run, bound)
        return overload.run(bound)


# ------------------------------------------------------------------------------------------------ declaring
ELEMENTWISE_FAMILIES = frozenset(["pointwise", "comparison", "bitwise", "complex", "activation", "special"])


def operator(schema, *, forms="function method", namespace="", saves=None, grad_name=None, kind="kernel", aliases=(),
             path=None, layout=None, overlap=None, writes=None):
    """Declare a kernel: its body gets Values for Tensors and gives Values.

    `forms`: which of function, method, inplace, out exist. `saves`: the tensors that PyTorch keeps for the gradient,
    e.g. "self", "result", or "self:other" (kept where `other` requires grad): writing to them before backward is an
    error.
    `layout`: "elementwise" (the result lies in memory as the operands do; the default in the families of such
    operators),
    "self" (as the first tensor), "channels" (channels innermost where an operand has them so), "columns" (matrices column by
    column, as LAPACK leaves them), "contiguous", or a function of (value, bound arguments) that gives the strides or None.
    `overlap`: which overlaps of the written tensor with the inputs are refused: "partial" (the default of elementwise
    and in-place forms) or
    "any" or "no". `writes`: a function of the bound arguments: how often PyTorch has written to the result when it hands it out
    (its `_version`). `aliases`: further public names. `path`: how the report calls it (primitive, composition, host).
    """

    def declare(body):
        parsed = parse(schema, namespace)
        family = body.__module__.rpartition(".")[2]
        chosen = layout or ("elementwise" if family in ELEMENTWISE_FAMILIES and kind == "kernel" else "contiguous")
        overload = Overload(parsed, body, kind, saves, grad_name, None if chosen == "contiguous" else chosen,
                            {"no": None}.get(overlap, overlap) if overlap else (
                                "partial" if chosen == "elementwise" or "inplace" in forms.split() else None), writes)
        for name in (parsed.name, *aliases):
            _register(name, overload, forms.split())
            if path:
                PATH[name] = path
        return body

    return declare


def composite(schema, **options):
    """Declare an operator made of other operators: its body gets Tensors and gives Tensors."""
    return operator(schema, kind="composite", **options)


def view(schema, **options):
    """Declare a view: its body gets Tensors and gives views of them."""
    return operator(schema, kind="view", **options)


def _register(name, overload, forms):
    entry = OPERATORS.get(name)
    if entry is None:
        entry = OPERATORS[name] = Operator(name)
        entry.function = _function(entry, name)
    entry.overloads.append(overload)
    short = entry.short
    if "out" in forms:
        entry.function.__takes_out__ = True
    if "method" in forms and short not in METHODS:
        METHODS[short] = _method(entry, short)
    if "inplace" in forms:
        made = METHODS.get(short + "_") or _inplace(entry, short + "_")
        METHODS[short + "_"] = made
        if "function" in forms and "." not in name and short in _FUNCTION_INPLACE:
            OPERATORS.setdefault(name + "_", _Plain(name + "_", made))


_FUNCTION_INPLACE = frozenset(
    "abs absolute acos acosh addmv alpha_dropout arccos arccosh arcsin arcsinh arctan arctanh as_strided asin asinh "
    "atan atanh "
    "celu ceil clamp clamp_max clamp_min clip conj_physical cos cosh deg2rad detach dropout elu erf erfc exp exp2 "
    "expm1 "
    "feature_alpha_dropout feature_dropout fill fix floor frac gcd hardtanh i0 index_put lcm ldexp leaky_relu log "
    "log10 log1p log2 logit "
    "nan_to_num neg negative polar rad2deg reciprocal relu renorm resize_as round rrelu rsqrt selu sgn sigmoid sin "
    "sinc sinh "
    "sqrt square squeeze t tan tanh threshold trunc unsqueeze xlogy zero".split())


class _Plain:
    """A public name that is a function and no more."""

    def __init__(self, name, function):
        self.name, self.short, self.function, self.overloads = name, name.rsplit(".", 1)[-1], function, []


def plain(function, name=None, method=None):
    """Make an ordinary Python function public under `name`, and a method where `method` names it; gives the
    function."""
    name = name or function.__name__
    OPERATORS[name] = _Plain(name, function)
    if method:
        METHODS[method] = function
    return function


def _function(entry, name):
    def call(*args, out=None, **kwargs):
        if out is None:
            return entry(*args, **kwargs)
        if overrides.entered and overrides.state.modes:
            return overrides.call_mode(call, args, {**kwargs, "out": out})
        return _call_out(entry, out, args, kwargs)

    namespace, _, short = name.rpartition(".")
    call.__name__ = call.__qualname__ = short
    call.__module__ = "torch." + namespace if namespace else "torch"
    call.__operator__ = entry
    call.__takes_out__ = False
    return call


def _of_method(error, entry, tensor, name):
    """The error of a call by its method's name, without `self`; an error from elsewhere as it is."""
    failed, args, kwargs = getattr(error, "call", (None, (None,), None))
    return Call(entry, args, kwargs, name).error() if failed is entry and args[0] is tensor else error


def _method(entry, short):
    def method(self, *args, **kwargs):
        try:
            return entry(self, *args, **kwargs)
        except TypeError as error:
            raise _of_method(error, entry, self, short) from None

    method.__name__ = short
    method.__qualname__ = "Tensor." + short
    method.__operator__ = entry
    return method


def _for_out(overload, bound, out):
    """The arguments of a factory whose result goes to `out`: its dtype is that of `out`, or an error."""
    at = overload.factory
    asked = bound[at]
    if asked is not None and asked is not out._dtype:
        raise RuntimeError(f"dtype {asked.scalar_name} does not match dtype of out parameter "
                           f"({out._dtype.scalar_name})")
    layout = bound[overload.positions["layout"]]
    if layout is not None and layout is not out.layout:
        raise RuntimeError(f"layout {layout} does not match layout of out parameter ({out.layout})")
    return bound[:at] + (out._dtype,) + bound[at + 1:]


_WITHOUT_GRADIENT = frozenset((  # whose results have no gradient, so that `out=` asks nothing of the inputs
    "all any argmax argmin bucketize eq ge gt heaviside histc isin isneginf isposinf le linalg.matrix_rank logical_and logical_not "
    "logical_or logical_xor lt multinomial ne nonzero searchsorted signbit").split())
_OUT_LIKE_INPUT = {  # whose `out=` must have the very dtype of the input, and the words for it
    **dict.fromkeys(("abs", "bitwise_not", "ceil", "conj_physical", "floor", "frac", "neg", "round", "sgn", "sign", "trunc"),
                    "Found dtype {out} but expected {input}"),
    "nan_to_num": "nan_to_num: dtype of out: {out} should be same as input: {input}",
}
_EXACT_OUT = {  # whose `out=` must have the very dtype of the result
    **dict.fromkeys(("isposinf", "isneginf", "signbit"), "{name} does not support non-boolean outputs."),
    "aminmax": "Expected out tensor to have dtype {want}, but got {got} instead",
    "nonzero": "nonzero: Expected out tensor to have scalar type {want} but got scalar type {got}",
    "gather": "Expected out tensor to have dtype {want}, but got {got} instead",
    **dict.fromkeys(("cummax", "cummin"), "expected scalar_type {want} but found {got}"),
    "multinomial": "multinomial expects Long tensor out, got: {got}",
    "complex": "Expected object of scalar type {want} but got scalar type {got} for argument 'out'",
    "polar": "Expected object of scalar type {want} but got scalar type {got} for argument 'out'",
    "mode": ("expected scalar type '{want}' but got '{got}' for values output", "expected scalar type '{want}' but got '{got}' for indices "
             "output"),
    "kthvalue": ("output values must be of same type as input", "output indices must be of scalar type Long"),
    "median": ("Expected tensor for 'values' to have the same type as tensor for argument #2 'self'; but type torch.{got}Tensor does not "
               "equal torch.{want}Tensor (while checking arguments for median)",
               "Expected tensor for argument #1 'indices' to have scalar type Long; but got torch.{got}Tensor instead (while checking "
               "arguments for median)"),
    **dict.fromkeys(("max", "min", "sort", "topk"), ("Expected out tensor to have dtype {c_want}, but got {c_got} instead",) * 2),
}


def _call_out(entry, out, args, kwargs):
    if not entry.function.__takes_out__:
        raise TypeError(f"{entry.short}() got an unexpected keyword argument 'out'")
    overload, bound = entry.select(args, kwargs)
    inputs = [bound[i] for i in overload.tensors] + [t for i in overload.lists for t in bound[i]]
    outs = out if isinstance(out, (tuple, list)) else (out,)
    for o in outs:
        if not isinstance(o, Tensor):
            raise TypeError(f"{entry.short}(): argument 'out' must be Tensor, not {arguments.type_name(o)}")
    if state.enabled:
        if entry.name not in _WITHOUT_GRADIENT and any(isinstance(t, Tensor) and t.requires_grad for t in inputs):
            raise RuntimeError(f"{entry.short}(): functions with out=... arguments don't support automatic "
                               "differentiation, but one of the arguments requires grad.")
        if any(o.requires_grad for o in outs):
            raise RuntimeError(f"{entry.short}(): functions with out=... arguments don't support automatic "
                               "differentiation, but one of the arguments requires grad.")
    if overload.overlap is not None and not any(o._compound for o in outs):
        for o in outs:
            check_overlap(o, overload, bound, 0)
    for o in outs:
        if not o._compound and geometry.overlaps(o._size, o._stride):
            raise RuntimeError(SELF_OVERLAP)
    if overload.factory is not None:
        bound = _for_out(overload, bound, outs[0])
    if entry.name in _OUT_LIKE_INPUT:
        given, wanted = outs[0]._dtype, bound[0]._dtype
        if given is not wanted and not (entry.name == "abs" and wanted.is_complex and not given.is_complex):
            if (wanted.is_complex and entry.name in ("ceil", "floor", "sign", "trunc")
                    or entry.name == "neg" and wanted.scalar_name == "Bool"):
                overload.run(bound)  # which says that the operator is not meant for these
            raise RuntimeError(_OUT_LIKE_INPUT[entry.name].format(out=given.scalar_name, input=wanted.scalar_name))
    found = compound.involved(overload, bound)
    if found or outs[0]._compound:
        result = compound.run(entry, overload, bound, found or [outs[0]])
        if outs[0]._compound:
            compound.replace(outs[0], result)
            return outs[0]
    else:
        result = overload.run(bound)
    results = result if isinstance(result, tuple) else (result,)
    words = _EXACT_OUT.get(entry.name)
    if words is not None and (type(words) is str or len(outs) == len(words)):
        _check_out(entry, words, outs, results)
    for o, r in zip(outs, results):
        write_out(entry.short, o, r)
    if not isinstance(result, tuple):
        return outs[0]
    return overload.results(*outs) if overload.results is not None else tuple(outs)


def _check_out(entry, words, outs, results):
    """RuntimeError, in the operator's words, where an `out=` has another dtype than the result; `words`: for all, or one for each."""
    for i, (o, r) in enumerate(zip(outs, results)):
        if o._dtype is not r._dtype:
            want, got = r._dtype.scalar_name, o._dtype.scalar_name
            if entry.name == "aminmax":  # which names the types of C++
                want, got = want.lower(), got.lower()
            text = words if type(words) is str else words[i]
            raise RuntimeError(text.format(name=entry.short, want=want, got=got, c_want=c_name(r.value), c_got=c_name(o.value)))


class _Notices:
    """Which notices have been given; `always`: give them each time."""

    told = set()
    always = False


notices = _Notices()


def warn_once(text, stacklevel=4):
    """A UserWarning that a process sees once, as PyTorch gives notice of what is deprecated or experimental."""
    if notices.always or text not in notices.told:
        notices.told.add(text)
        warnings.warn(text, UserWarning, stacklevel=stacklevel + 1)


# ------------------------------------------------------------------------------------------------ in place
def _inplace(entry, name):
    def method(self, *args, **kwargs):
        if overrides.entered and overrides.state.modes:
            return overrides.call_mode(method, (self, *args), kwargs)
        try:
            overload, bound = entry.select((self, *args), kwargs)
        except TypeError as error:
            raise _of_method(error, entry, self, name) from None
        for interceptor in interceptors:
            found = interceptor(entry, overload, bound)
            if found is not None:
                bound = found
        for i in overload.tensors:
            if getattr(bound[i], "_overrides", False):
                found = participants.call_inplace(method, entry, overload, bound, (self, *args), kwargs)
                if found is not participants.NOBODY:
                    return found
                break
        if overrides.entered and dispatch.active(bound):
            return dispatch.operator(entry, overload, bound, inplace=True)
        if 0 in self._stride and name in expanded.ON_EXPANDED and expanded.is_expanded(self):
            return expanded.ON_EXPANDED[name](*bound)
        check_inplace(self)
        if overload.overlap is not None:
            check_overlap(self, overload, bound, 1)
        if overload.kind == "kernel":
            result = overload.evaluate(bound)
            value = result if isinstance(result, Value) else result[0]
            dtype = DTYPE_OF[value.dtype]
        else:
            result = overload.run(bound)
            value, dtype = result.value, result._dtype
        write_inplace(self, value, dtype, overload, bound)
        return self

    method.__name__ = name
    method.__qualname__ = "Tensor." + name
    method.__operator__ = entry
    return method


def attach():
    """Give Tensor its derived methods."""
    for name, method in METHODS.items():
        if name not in Tensor.__dict__:
            setattr(Tensor, name, method)
