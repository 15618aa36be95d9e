"""torch.fx._symbolic_trace: running a module on proxies, so that what it does becomes a graph."""

import builtins
import functools
import inspect
import math
import types

from .. import Tensor
from ..nn import Module, Parameter, Sequential
from ..utils import _pytree
from .graph import Graph
from .graph_module import GraphModule
from .node import map_aggregate
from .proxy import ParameterProxy, Proxy, TracerBase

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]

_wrapped = {}  # (namespace, name): what `wrap` was asked for
_tracing = False


def is_fx_tracing():
    """Whether a trace is being made. Source: PyTorch, torch.fx._symbolic_trace.is_fx_tracing."""
    return _tracing


class _Placeholder:
    """In `concrete_args`: this one stays an input. Source: PyTorch, torch.fx.PH."""

    def __repr__(self):
        return "PH"


PH = _Placeholder()


class ProxyableClassMeta(type):
    """Classes whose instances may be made while tracing, from proxies. Source: PyTorch, torch.fx.ProxyableClassMeta."""

    def __call__(cls, *args, **kwargs):
        made = cls.__new__(cls)
        if not is_fx_tracing():
            cls.__init__(made, *args, **kwargs)
            return made
        found = []
        map_aggregate((args, kwargs), lambda a: found.append(a.tracer) if isinstance(a, Proxy) else a)
        cls.__init__(made, *args, **kwargs)
        if found:
            return found[0].create_proxy("call_function", cls, args, kwargs)
        return made


def _assert_is_none(value, msg):
    assert value is None, msg


# ------------------------------------------------------------------------------------------------ changing names while tracing
class _Patcher:
    """Changes entries of namespaces and attributes, and puts them back."""

    def __init__(self):
        self.undo = []
        self.done = set()

    def name(self, namespace, name, value):
        if (id(namespace), name) in self.done:
            return
        self.done.add((id(namespace), name))
        missing = name not in namespace
        kept = namespace.get(name)
        namespace[name] = value
        self.undo.append(lambda: namespace.pop(name) if missing else namespace.__setitem__(name, kept))

    def attribute(self, owner, name, value):
        kept = getattr(owner, name)
        setattr(owner, name, value)
        self.undo.append(lambda: setattr(owner, name, kept))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        while self.undo:
            self.undo.pop()()


def _find_proxy(*trees):
    found = []
    map_aggregate(trees, lambda a: found.append(a) if isinstance(a, Proxy) else a)
    return found[0] if found else None


def _recording(function):
    """`function`, recorded as one call where an argument is a proxy."""

    @functools.wraps(function)
    def recorded(*args, **kwargs):
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return recorded


def _method_recording(cls, name):
    original = getattr(cls, name)

    @functools.wraps(original)
    def recorded(*args, **kwargs):
        proxy = _find_proxy(args, kwargs)
        return original(*args, **kwargs) if proxy is None else proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return recorded


def wrap(fn_or_name):
    """Have calls of a function of the calling module recorded as one step: at module scope, by name or as a decorator. Source:
    PyTorch, torch.fx.wrap."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe().f_back
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[(id(frame.f_globals), name)] = frame.f_globals
    return fn_or_name


def _leaf_functions():
    """Functions of the served tree that are Python made of operators: traced, they are one step, as they are for users."""
    from .. import functional, nn

    for namespace in (vars(nn.functional), vars(functional)):
        for name, value in list(namespace.items()):
            if isinstance(value, types.FunctionType) and not name.startswith("_") and not hasattr(value, "__operator__"):
                yield namespace, name, value


# ------------------------------------------------------------------------------------------------ tracing
class Tracer(TracerBase):
    """Turns modules and functions into graphs; to be subclassed. Source: PyTorch, torch.fx.Tracer."""

    def __init__(self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False):
        super().__init__()
        self._autowrap = {id(value): name for module in autowrap_modules for name, value in vars(module).items()
                          if not name.startswith("_") and callable(value)}
        self._autowrap.update({id(f): f.__name__ for f in autowrap_functions})
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths = None
        self.root_module_name = ""
        self.scope = None
        self.module_stack = {}
        self.num_calls = {}
        self.tensor_attrs = {}
        self._proxies = {}

    def is_leaf_module(self, m, module_qualified_name):
        """Whether a module is one step: those of torch.nn are, Sequential is not. Source: PyTorch, Tracer.is_leaf_module."""
        return m.__module__.startswith(("torch.nn", "torch.ao.nn")) and not isinstance(m, Sequential)

    def path_of_module(self, mod):
        """The name under which the root holds a module. NameError where it does not. Source: PyTorch, Tracer.path_of_module."""
        path = self.submodule_paths.get(mod) if self.submodule_paths else next(
            (n for n, p in self.root.named_modules() if p is mod), None)
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def create_arg(self, a):
        """Arguments of nodes: parameters, buffers and other tensors become attributes of the root. Source: PyTorch,
        Tracer.create_arg."""
        if isinstance(a, Parameter):
            for name, p in self.root.named_parameters():
                if a is p:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            for name, p in self.root.named_buffers():
                if a is p:
                    return self.create_node("get_attr", name, (), {})
            return self._constant(a, "_tensor_constant", self.tensor_attrs)
        if isinstance(type(a), ProxyableClassMeta):
            return self._constant(a, f"_{type(a).__name__}_constant_", {})
        return super().create_arg(a)

    def _constant(self, a, prefix, known):
        name = known.get(a) if known else None
        if name is None:
            name = self.get_fresh_qualname(prefix)
            setattr(self.root, name, a)
            if known is self.tensor_attrs:
                known[a] = name
        return self.create_node("get_attr", name, (), {})

    def get_fresh_qualname(self, prefix):
        """An attribute name that the root does not have yet. Source: PyTorch, Tracer.get_fresh_qualname."""
        i = 0
        while hasattr(self.root, f"{prefix}{i}"):
            i += 1
        return f"{prefix}{i}"

    def call_module(self, m, forward, args, kwargs):
        """A call of a module: one step where it is a leaf, else what it does. Source: PyTorch, Tracer.call_module."""
        path = self.path_of_module(m)
        calls = self.num_calls.get(path, 0)
        self.num_calls[path] = calls + 1
        self.module_stack[f"{path}@{calls}" if calls else path] = (path, type(m))
        try:
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            self.module_stack.popitem()

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """What reading an attribute of a module gives while tracing: a proxy for parameters. Source: PyTorch, Tracer.getattr."""
        if isinstance(attr_val, Parameter):
            found = self._attribute_proxy(attr_val, self.root.named_parameters(), parameter_proxy_cache, self.param_shapes_constant)
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            found = self._attribute_proxy(attr_val, self.root.named_buffers(), parameter_proxy_cache, False)
        else:
            found = None
        return attr_val if found is None else found

    def _attribute_proxy(self, value, named, cache, constant_shapes):
        for name, p in named:
            if p is value:
                if name not in cache:
                    factory = (lambda node, name=name: ParameterProxy(self, node, name, value)) if constant_shapes else None
                    cache[name] = self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=factory)
                return cache[name]
        return None

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """(function, arguments): proxies for the inputs of `root_fn`. Source: PyTorch, Tracer.create_args_for_root."""
        code_of = inspect.unwrap(root_fn)
        code = code_of.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames[:total])
        args = []
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            names = names[1:]
            args.append(self.root)
        signature = inspect.signature(code_of)
        counter = [0]

        def proxy_for(name):
            if name.startswith("*"):
                return self.create_proxy("placeholder", name, (), {}, type_expr=None)
            if concrete_args is not None and name in concrete_args:
                return concrete(name, concrete_args[name])
            parameter = signature.parameters[name]
            default = () if parameter.default is inspect.Parameter.empty else (parameter.default,)
            kind = code_of.__annotations__.get(name)
            return self.create_proxy("placeholder", name, default, {}, type_expr=None if isinstance(kind, str) else kind)

        def concrete(name, value):
            def leaf(x):
                counter[0] += 1
                if x is PH:
                    return self.create_proxy("placeholder", f"{name}_{counter[0]}", (), {})
                made = self.create_proxy("placeholder", f"{name}_{counter[0]}", () if x is not None else (None,), {})
                if x is None:
                    self.create_proxy("call_function", _assert_is_none, (
                        made, f"{name} has been specialized to have value None but got another value"), {})
                else:
                    from .. import _assert

                    if type(x) in (bool, int, float, str):
                        self.create_proxy("call_function", _assert, (
                            made == x, f"{name} has been specialized to have value {x} but got another value"), {})
                return x

            return _pytree.tree_map(leaf, value)

        for name in names:
            args.append(proxy_for(name))
        if code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            if code.co_flags & inspect.CO_VARARGS:
                args.append(proxy_for("*" + code.co_varnames[total]))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(proxy_for("**" + code.co_varnames[total + bool(code.co_flags & inspect.CO_VARARGS)]))
            # the arguments come as one flat list: a function over them hands each to where it belongs
            root_fn = _flat_call(code_of, code)
        return root_fn, args

    def trace(self, root, concrete_args=None):
        """The graph of what a module or function does. Source: PyTorch, Tracer.trace."""
        global _tracing
        before, _tracing = _tracing, True
        try:
            if isinstance(root, Module):
                self.root = root
                fn = getattr(type(root), self.traced_func_name)
                self.root_module_name = type(root).__name__
                self.submodule_paths = {mod: name for name, mod in root.named_modules()}
            else:
                self.root = Module()
                fn = root
                self.submodule_paths = None
            self.graph = Graph(tracer_cls=type(self))
            self.tensor_attrs = self._collect_tensors()
            fn, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
            cache = {}
            with _Patcher() as patcher:
                self._patch(patcher, fn, cache)
                result = fn(*args)
                self.create_node("output", "output", (self.create_arg(result),), {},
                                 type_expr=_return_annotation(fn))
            self.submodule_paths = None
        finally:
            _tracing = before
        return self.graph

    def _collect_tensors(self):
        found = {}

        def collect(module, prefix):
            for name, value in vars(module).items():
                if isinstance(value, Tensor):
                    found[value] = ".".join([*prefix, name])
            for name, child in module.named_children():
                collect(child, [*prefix, name])

        collect(self.root, [])
        return found

    def _patch(self, patcher, fn, cache):
        module_call, module_getattr = Module.__call__, Module.__getattr__
        tracer = self

        @functools.wraps(module_getattr)
        def getattr_wrapper(mod, attr):
            return tracer.getattr(attr, module_getattr(mod, attr), cache)

        @functools.wraps(module_call)
        def call_wrapper(mod, *args, **kwargs):
            def forward(*args, **kwargs):
                return module_call(mod, *args, **kwargs)

            _autowrap_check(patcher, getattr(mod.forward, "__globals__", {}), tracer._autowrap)
            return tracer.call_module(mod, forward, args, kwargs)

        patcher.attribute(Module, "__getattr__", getattr_wrapper)
        patcher.attribute(Module, "__call__", call_wrapper)
        for namespace, name, value in _leaf_functions():
            patcher.name(namespace, name, _recording(value))
        for (_, name), namespace in list(_wrapped.items()):
            value = namespace.get(name, getattr(builtins, name, None))
            if value is not None:
                patcher.name(namespace, name, _recording(value))
        _autowrap_check(patcher, getattr(fn, "__globals__", {}), self._autowrap)
        for module in self._autowrap_search:
            _autowrap_check(patcher, vars(module), self._autowrap)


def _return_annotation(fn):
    kind = getattr(fn, "__annotations__", {}).get("return")
    return None if isinstance(kind, str) else kind


def _flat_call(function, code):
    """`function` called with its positional, keyword-only, `*` and `**` arguments in one list, the last two as one value each."""
    names = code.co_varnames

    @functools.wraps(function)
    def call(*args):
        given = list(args[:code.co_argcount])
        at = code.co_argcount
        named = dict(zip(names[at:at + code.co_kwonlyargcount], args[at:]))
        at += code.co_kwonlyargcount
        has_rest = bool(code.co_flags & inspect.CO_VARARGS)
        rest = args[at] if has_rest else ()
        extra = args[at + has_rest] if code.co_flags & inspect.CO_VARKEYWORDS else {}
        if isinstance(rest, Proxy) or isinstance(extra, Proxy):
            # the function's own code, with the proxies as the values of *args and **kwargs
            flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
            flat = code.replace(co_flags=flags, co_kwonlyargcount=0, co_argcount=len(args))
            plain = types.FunctionType(flat, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
            return plain(*args)
        return function(*given, *rest, **named, **extra)

    return call


def _autowrap_check(patcher, namespace, functions):
    """Record the functions by identity that a module's namespace holds (those of `math`, for one)."""
    if not namespace.get("__name__", "").startswith("torch.fx"):
        for name, value in list(namespace.items()):
            if not name.startswith("_") and callable(value) and id(value) in functions:
                patcher.name(namespace, name, _recording(value))


def symbolic_trace(root, concrete_args=None):
    """A GraphModule that does what `root` does. TraceError where that depends on data. Source: PyTorch, torch.fx.symbolic_trace."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
