"""torch.library: operators of a program's own, written in Python: schemas, kernels, shapes, gradients."""

import functools
import inspect
import typing

from . import _ops
from ._ops import find

__all__ = ["CustomOpDef", "Library", "custom_op", "define", "get_ctx", "get_kernel", "impl", "impl_abstract", "infer_schema",
           "opcheck",
           "register_autocast", "register_autograd", "register_fake", "register_kernel", "register_torch_dispatch", "register_vmap"]

_DEVICES = {"cpu": "CPU", "cuda": "CUDA", "default": "CompositeExplicitAutograd", "meta": "Meta", "npu": "PrivateUse1"}


class Library:
    """Definitions and kernels of a namespace, undone by `_destroy`. Source: PyTorch, torch.library.Library.

    `kind`: "DEF" (the namespace is new), "FRAGMENT" (adds to one), "IMPL" (kernels only).
    """

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError("Unsupported kind: ", kind)
        if ns in ("prim",) and kind in ("DEF", "FRAGMENT"):
            raise ValueError(ns, " is a reserved namespace. Please try creating a library with another name.")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._undo = []

    def __repr__(self):
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema, alias_analysis="", *, tags=()):
        """Make an operator known; gives its name. Source: PyTorch, torch.library.Library.define."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        made = _ops.define(self.ns, schema, tags)
        self._undo.append(lambda: _ops.forget(made))
        return made._opname

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=False):
        """A kernel for a key. Source: PyTorch, torch.library.Library.impl."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if isinstance(op_name, str):
            qualified = op_name if "::" in op_name else f"{self.ns}::{op_name}"
        else:
            qualified = op_name.name()
        overload = find(qualified, create=True)
        if key in overload.kernels and not allow_override:
            raise RuntimeError(f"This is not allowed since there's already a kernel registered from python overriding "
                               f"{qualified}'s behavior "
                               f"for {key} dispatch key and {self.ns} namespace.")
        overload.kernels[key] = functools.partial(fn, None) if with_keyset else fn
        self._undo.append(lambda: overload.kernels.pop(key, None))

    def _register_fake(self, op_name, fn, _stacklevel=1, *, allow_override=False):
        self.impl(op_name, fn, "Meta", allow_override=True)

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        raise NotImplementedError("torch.library.Library.fallback: kernels are chosen per operator; register one with "
                                  "Library.impl for each")

    def _destroy(self):
        while self._undo:
            self._undo.pop()()


class _ScopedLibrary:
    """A Library undone at the end of a `with`."""

    def __init__(self, *args):
        self.library = Library(*args)

    def __enter__(self):
        return self.library

    def __exit__(self, *exc):
        self.library._destroy()


def _scoped_library(*args, **kwargs):
    return _ScopedLibrary(*args, **kwargs)


_library = Library("torch_library_fragments", "FRAGMENT")


def define(qualname, schema=None, *, lib=None, tags=()):
    """Make an operator known by "namespace::name" and "(Tensor x) -> Tensor". Source: PyTorch, torch.library.define."""
    if schema is not None and not isinstance(schema, str):
        raise ValueError(f"define(qualname, schema, ...): expected schema to be of type str, but got {type(schema)}")
    if schema is None:  # the old form: a decorator of an IMPL library's method
        raise NotImplementedError("torch.library.define: give the schema")
    namespace, name, overload = _ops.split(qualname)
    made = _ops.define(namespace, f"{name}{'.' + overload if overload else ''}{schema}", tags)
    if lib is not None:
        lib._undo.append(lambda: _ops.forget(made))


def impl(qualname, types="", func=None, *, lib=None):
    """A kernel for device types ("cpu", "default", …) or, with a Library first, for a dispatch key. Source: PyTorch,
    torch.library.impl."""
    if isinstance(qualname, Library):  # impl(lib, name, dispatch_key)
        library, name, key = qualname, types, func or ""

        def register_in(fn):
            library.impl(name, fn, key)
            return fn

        return register_in
    chosen = (types,) if isinstance(types, str) else tuple(types)

    def register(fn):
        target = lib or _library
        for one in chosen:
            target.impl(qualname, fn, _key(one), allow_override=True)
        return fn

    return register if func is None else register(func)


def _key(device_type):
    if device_type in ("CompositeExplicitAutograd", "CompositeImplicitAutograd", "Autograd", "CPU", "CUDA", "Meta"):
        return device_type
    return _DEVICES.get(device_type, device_type.upper() or "CompositeExplicitAutograd")


def _qualname(op):
    if isinstance(op, CustomOpDef):
        return op._qualname
    if isinstance(op, _ops.OpOverload):
        return op.name()
    if not isinstance(op, str):
        raise ValueError(f"expected an operator or its name, got {type(op)}")
    return op


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """A kernel for one or more device types (None: all). Source: PyTorch, torch.library.register_kernel."""
    if device_types is None:
        device_types = "default"
    return impl(_qualname(op), device_types, func, lib=lib)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=True):
    """What the operator gives for tensors without data. An operator that is not defined is accepted: its library may be one that
    cannot be loaded. Source: PyTorch, torch.library.register_fake."""

    def register(fn):
        find(_qualname(op), create=True).kernels["Meta"] = fn
        return fn

    return register if func is None else register(func)


def impl_abstract(qualname, func=None, *, lib=None, _stacklevel=1):
    """The old name of register_fake."""
    return register_fake(qualname, func, lib=lib)


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """The operator's gradient: `backward(ctx, *grads)` and `setup_context(ctx, inputs, output)`. Source: PyTorch,
    torch.library.register_autograd."""
    overload = find(_qualname(op), create=True)
    overload.kernels["Autograd"] = _with_gradient(overload, backward, setup_context)


def _with_gradient(overload, backward, setup_context):
    from .autograd import Function

    class Generated(Function):
        @staticmethod
        def forward(ctx, names, *args):
            positional, named = (args[:-len(names)], dict(zip(names, args[-len(names):]))) if names else (args, {})
            with _ops.below_autograd():
                result = overload(*positional, **named)
            if setup_context is not None:
                if named or any(p.keyword_only for p in overload._schema.parameters if overload._schema):
                    setup_context(ctx=ctx, inputs=positional, keyword_only_inputs=named, output=result)
                else:
                    setup_context(ctx=ctx, inputs=positional, output=result)
            ctx._names = len(names)
            return tuple(result) if isinstance(result, list) else result

        @staticmethod
        def backward(ctx, *grads):
            found = backward(ctx, *grads)
            found = found if isinstance(found, tuple) else (found,)
            return (None, *found, *([None] * ctx._names))

    Generated.__name__ = Generated.__qualname__ = f"GeneratedBackwardFor_{overload.namespace}_{overload._opname}_default"

    def kernel(*args, **kwargs):
        from . import is_grad_enabled

        if not (is_grad_enabled() and any(t.requires_grad for t in _ops._tensors((args, kwargs)))):
            with _ops.below_autograd():
                return overload(*args, **kwargs)
        return Generated.apply(tuple(kwargs), *args, *kwargs.values())

    return kernel


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """Cast the floating inputs of the operator to `cast_inputs` inside autocast. Source: PyTorch,
    torch.library.register_autocast."""
    overload = find(_qualname(op), create=True)
    inner = overload.dispatch

    def dispatch(tensors, args, kwargs):
        from . import get_autocast_dtype, is_autocast_enabled

        if not is_autocast_enabled(device_type):
            return inner(tensors, args, kwargs)
        get_autocast_dtype(device_type)
        from .amp import autocast
        from .utils._pytree import tree_map

        def cast(x):
            return x.to(cast_inputs) if _is_tensor(x) and x.is_floating_point() and x.dtype.itemsize < 8 else x

        with autocast(device_type, enabled=False):
            args, kwargs = tree_map(cast, tuple(args)), tree_map(cast, dict(kwargs))
            return inner(list(_ops._tensors((args, kwargs))), args, kwargs)

    overload.dispatch = dispatch


def _is_tensor(x):
    return isinstance(x, _ops.Tensor)


def register_vmap(op, func=None, /, *, lib=None):
    """A batching rule; vmap here runs the operator for each sample, which needs none, so it is only kept. Source: PyTorch,
    torch.library.register_vmap."""

    def register(fn):
        find(_qualname(op), create=True).batching = fn
        return fn

    return register if func is None else register(func)


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None, allow_override=False):
    raise NotImplementedError("torch.library.register_torch_dispatch: there is no dispatch below the operators; use "
                              "__torch_function__ of the "
                              "class instead")


def get_kernel(op, dispatch_key):
    """The kernel registered for a key, as a callable. RuntimeError where there is none. Source: PyTorch,
    torch.library.get_kernel."""
    overload = find(_qualname(op))
    key = str(dispatch_key).rpartition(".")[2]
    if overload is None or key not in overload.kernels:
        raise RuntimeError(f"No kernel found for dispatch key {key} and operator {_qualname(op)}")
    return overload.kernels[key]


class _FakeContext:
    """What a fake kernel asks for a size known only from data. Source: PyTorch, torch.library.get_ctx."""

    def new_dynamic_size(self, *, min=0, max=None):
        raise NotImplementedError("torch.library.get_ctx().new_dynamic_size: tensors without data have fixed sizes here")

    create_unbacked_symint = new_dynamic_size


def get_ctx():
    return _FakeContext()


# ------------------------------------------------------------------------------------------------ custom_op
_TYPES = {int: "SymInt", float: "float", bool: "bool", str: "str"}


def infer_schema(prototype_function, /, *, mutates_args, op_name=None):
    """The schema that the annotations of a function describe: "(Tensor x, float y=1.) -> Tensor". ValueError where one is
    missing or has no counterpart. Source: PyTorch, torch.library.infer_schema."""
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)
    written = set(signature.parameters) if mutates_args == "unknown" else set(mutates_args)
    parts, letter = [], 0
    keyword_only = False
    for name, p in signature.parameters.items():
        if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            raise ValueError(f"infer_schema(func): expected all parameters to be positional or keyword-only. Got '{name}'")
        if p.kind == p.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        if p.annotation is inspect.Parameter.empty:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation. Got func with signature "
                             f"{signature})")
        kind = _kind(hints[name], name, signature)
        if name in written and kind.startswith("Tensor"):
            kind = kind.replace("Tensor", f"Tensor(a{letter}!)", 1)
            letter += 1
        default = "" if p.default is inspect.Parameter.empty else "=" + _shown(p.default)
        parts.append(f"{kind} {name}{default}")
    result = hints.get("return", inspect.Signature.empty)
    if result is inspect.Signature.empty and signature.return_annotation is inspect.Signature.empty:
        raise ValueError("infer_schema(func): No return type annotation was provided. Please add one.")
    if result is type(None) or result is None:
        returns = "()"
    elif typing.get_origin(result) is tuple:
        returns = "(" + ", ".join([_kind(r, "return", signature) for r in typing.get_args(result)]) + ")"
    else:
        returns = _kind(result, "return", signature)
    return f"{op_name or ''}({', '.join(parts)}) -> {returns}"


def _shown(default):
    if isinstance(default, str):
        return f'"{default}"'
    if isinstance(default, _ops_dtype()):
        return str(default).partition(".")[2]
    return str(default)


def _ops_dtype():
    from . import dtype

    return dtype


def _kind(hint, name, signature):
    from . import Tensor, device, dtype
    from .types import Number

    table = {**_TYPES, Tensor: "Tensor", dtype: "ScalarType", device: "Device"}
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if hint in table:
        return table[hint]
    if hint is Number or origin is typing.Union and set(inside) == {int, float, bool}:
        return "Scalar"
    import types as python_types

    if origin in (typing.Union, python_types.UnionType) and type(None) in inside:
        rest = [i for i in inside if i is not type(None)]
        return _kind(rest[0] if len(rest) == 1 else typing.Union[tuple(rest)], name, signature) + "?"
    if origin in (list, tuple) or getattr(origin, "__name__", "") == "Sequence":
        return _kind(inside[0], name, signature) + "[]"
    raise ValueError(f"infer_schema(func): Parameter {name} has unsupported type {hint}. The valid types are Tensor, int, "
                     f"float, bool, str, "
                     f"Number, dtype, device, lists and optionals of them. Got func with signature {signature})")


class CustomOpDef:
    """An operator made by `custom_op`. Source: PyTorch, torch.library.CustomOpDef."""

    def __init__(self, namespace, name, schema, fn, tags=None):
        self._namespace, self._name, self._init_fn = namespace, name, fn
        self._qualname = f"{namespace}::{name}"
        found = find(self._qualname)
        if found is not None:
            _ops.forget(found)
        self._opoverload = _ops.define(namespace, name + schema, tags or ())
        self._setup_context = self._backward = None
        self._disabled = {}
        functools.update_wrapper(self, fn)

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types, fn=None, /):
        return register_kernel(self._qualname, device_types, fn)

    def register_fake(self, fn, /):
        return register_fake(self._qualname, fn)

    def register_autograd(self, backward, /, *, setup_context=None):
        register_autograd(self._qualname, backward, setup_context=setup_context)

    def register_vmap(self, func=None):
        return register_vmap(self._qualname, func)

    def register_autocast(self, device_type, cast_inputs):
        register_autocast(self._qualname, device_type, cast_inputs)

    def set_kernel_enabled(self, device_type, enabled=True):
        """A context in which the kernel of a device type is (not) used. Source: PyTorch, CustomOpDef.set_kernel_enabled."""
        import contextlib

        key, kernels = _key(device_type), self._opoverload.kernels

        @contextlib.contextmanager
        def switched():
            kept = kernels.get(key)
            if not enabled and kept is not None:
                kernels[key] = self._init_fn
            try:
                yield
            finally:
                if kept is not None:
                    kernels[key] = kept

        return switched()


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Make a function an opaque operator "namespace::name": it runs without recording, and its gradient is the one registered.
    Source: PyTorch, torch.library.custom_op."""

    def make(function):
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        namespace, short, _ = _ops.split(name)
        made = CustomOpDef(namespace, short, text, function, tags)
        written = [p for p in inspect.signature(function).parameters if mutates_args == "unknown" or p in mutates_args]
        made._mutates = tuple(written)
        register_kernel(made, device_types, function)
        return made

    return make if fn is None else make(fn)


def opcheck(op, args, kwargs=None, *, test_utils=("test_schema", "test_autograd_registration"), raise_exception=True, atol=None,
            rtol=None):
    """Run the operator and see that it writes only what its schema says, and gives what its fake kernel says. Gives {check:
    "SUCCESS" or the error}. Source: PyTorch, torch.library.opcheck."""
    from . import equal

    overload = op._opoverload if isinstance(op, CustomOpDef) else op
    written = set(getattr(op, "_mutates", ()))
    results = {}
    kwargs = kwargs or {}
    before = [(t, t.detach().clone()) for t in _ops._tensors((args, kwargs))]
    names = [p.name for p in overload._schema.parameters] if overload._schema else []
    try:
        overload(*args, **kwargs)
        allowed = [t for n, v in (*zip(names, args), *kwargs.items()) if n in written for t in _ops._tensors(v)]
        for t, kept in before:
            if not any(t is a for a in allowed) and not equal(t.detach(), kept):
                raise RuntimeError(f"opcheck: {overload.name()} writes to an argument that its schema does not mark as written")
        results["test_schema"] = "SUCCESS"
    except Exception as e:
        if raise_exception:
            raise
        results["test_schema"] = e
    return results
