"""torch.ops: operators by namespace and name: the adapter's own under `aten`, and those that programs register.

An operator registered in Python has a schema, kernels by dispatch key, and one way of choosing among them. Compiled libraries
are made for PyTorch's binary interface and cannot be loaded.
"""

import sys
import threading
import types

from msadapter_hook.ops import dispatch as _dispatch
from msadapter_hook.ops.aten import plain as _plain
from msadapter_hook.ops.schema import MISSING, parse
from msadapter_hook.tensor import Tensor

from ._aten import OpOverload, OpOverloadPacket, packet

_NAMES = {}  # "namespace::name" -> {overload: OpOverload}
_below = threading.local()

#: The kinds of kernel, in the order in which they are looked for once gradients are taken care of.
_KERNELS = ("CPU", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "PrivateUse1", "CUDA", "")


class RegisteredOverload(OpOverload):
    """One schema with its kernels. Calling it fills in defaults, chooses the kernel and runs it."""

    written, gives_list = (), False

    def __init__(self, namespace, name, overload, schema=None):
        self.namespace, self._opname, self._overloadname = namespace, name, overload
        self._schema = schema
        self.kernels = {}
        self.tags = ()
        self.__name__ = f"{name}.{overload or 'default'}"
        self.__qualname__ = self.__name__
        self.__module__ = f"torch.ops.{namespace}"

    def name(self):
        return f"{self.namespace}::{self._opname}" + (f".{self._overloadname}" if self._overloadname else "")

    @property
    def overloadpacket(self):
        return getattr(getattr(ops, self.namespace), self._opname)

    def __repr__(self):
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname or 'default'}')>"

    def __str__(self):
        return f"{self.namespace}.{self._opname}.{self._overloadname or 'default'}"

    def _positional(self, args, kwargs):
        """Arguments as a kernel gets them: positional in the schema's order, keyword-only ones by name, defaults filled in."""
        if self._schema is None:
            return args, kwargs
        parameters = self._schema.parameters
        places = [p for p in parameters if not p.keyword_only]
        if len(args) > len(places):
            raise RuntimeError(f"{self.name()}() expected at most {len(places)} argument(s) but received {len(args)} argument(s). "
                               f"Declaration: {self._schema.text}")
        given, rest = list(args), dict(kwargs)
        for p in places[len(args):]:
            if p.name in rest:
                given.append(rest.pop(p.name))
            elif p.default is not MISSING:
                given.append(list(p.default) if isinstance(p.default, tuple) else p.default)
            elif p.optional and not rest:
                given.append(None)
            else:
                raise RuntimeError(f"{self.name()}() is missing value for argument '{p.name}'. Declaration: {self._schema.text}")
        named = {}
        for p in parameters:
            if p.keyword_only:
                if p.name in rest:
                    named[p.name] = rest.pop(p.name)
                elif p.default is not MISSING:
                    named[p.name] = p.default
        if rest:
            raise RuntimeError(f"Unknown keyword argument '{next(iter(rest))}' for operator '{self.name()}'. "
                               f"Schema: {self._schema.text}")
        return given, named

    def __call__(self, *args, **kwargs):
        args, kwargs = self._positional(args, kwargs)
        tensors = list(_tensors((args, kwargs)))
        if any(t._asks for t in tensors):
            from msadapter_hook.ops import overrides

            if not overrides.state.disabled:
                return overrides.call_override(self, tensors, args, kwargs)
        above = not getattr(_below, "depth", 0) and not {"Autograd", "AutogradCPU"}.isdisjoint(self.kernels)
        if not above and _dispatch.active(tensors):
            return _dispatch.call(self, list(args), kwargs)
        return self.dispatch(tensors, args, kwargs)

    def native(self, *args, **kwargs):
        """The kernel itself, seen by nobody."""
        return self.dispatch(list(_tensors((args, kwargs))), args, kwargs)

    def dispatch(self, tensors, args, kwargs):
        kernels = self.kernels
        depth = getattr(_below, "depth", 0)
        if not depth:
            for key in ("Autograd", "AutogradCPU"):
                if key in kernels:
                    return kernels[key](*args, **kwargs)
        if any(t.device.type == "meta" for t in tensors):
            for key in ("Meta", "CompositeExplicitAutograd", "CompositeImplicitAutograd"):
                if key in kernels:
                    return kernels[key](*args, **kwargs)
            raise NotImplementedError(f"{self.name()}: attempted to run this operator with Meta tensors, but there was no fake "
                                      f"impl or "
                                      "Meta kernel registered for this operator")
        implicit = kernels.get("CompositeImplicitAutograd")
        for key in _KERNELS:
            if key in kernels:
                from . import no_grad

                with no_grad():
                    return kernels[key](*args, **kwargs)
        if implicit is not None:
            return implicit(*args, **kwargs)
        raise NotImplementedError(f"Could not run '{self.name()}' with arguments from the 'CPU' backend: no kernel is "
                                  f"registered for it. "
                                  "Register one with torch.library (compiled libraries cannot be loaded)")

    def decompose(self, *args, **kwargs):
        return self.kernels["CompositeImplicitAutograd"](*args, **kwargs)

    def has_kernel_for_dispatch_key(self, key):
        return str(key).rpartition(".")[2] in self.kernels


def _tensors(tree):
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for one in tree:
            yield from _tensors(one)
    elif isinstance(tree, dict):
        yield from _tensors(list(tree.values()))


class below_autograd:
    """Context: kernels of the key Autograd are passed over. Source: PyTorch, torch._C._AutoDispatchBelowAutograd."""

    def __init__(self, *ignored):
        pass

    def __enter__(self):
        _below.depth = getattr(_below, "depth", 0) + 1

    def __exit__(self, *exc):
        _below.depth -= 1


class RegisteredPacket(OpOverloadPacket):
    """All overloads of a name. Calling it takes the first one whose schema fits."""

    def __init__(self, namespace, name):
        self._qualified_op_name = f"{namespace}::{name}"
        self.__name__ = name
        self.__module__ = f"torch.ops.{namespace}"

    def overloads(self):
        return [key or "default" for key in _NAMES[self._qualified_op_name]]

    def __getattr__(self, key):
        if key.startswith("__"):
            raise AttributeError(key)
        found = _NAMES[self._qualified_op_name].get("" if key == "default" else key)
        if found is None:
            raise AttributeError(f"The underlying op of '{self._qualified_op_name.replace('::', '.')}' has no overload name "
                                 f"'{key}'")
        return found

    def __call__(self, *args, **kwargs):
        choices = list(_NAMES[self._qualified_op_name].values())
        if len(choices) == 1:
            return choices[0](*args, **kwargs)
        first = None
        for choice in choices:
            try:
                choice._positional(args, kwargs)
            except RuntimeError as e:
                first = first or e
                continue
            return choice(*args, **kwargs)
        raise first

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self._qualified_op_name.replace('::', '.')}')>"


class _Native(RegisteredOverload):
    """An operator of the adapter under a name in `torch.ops.prims` or one that PyTorch's `aten` has no schema for."""

    def __init__(self, name, function):
        super().__init__("aten", name, "")
        self._function = self.native = function

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    @property
    def default(self):
        return self


def _native(name):
    from . import fft, linalg, nn, special

    root = sys.modules[__package__]
    for home in (vars(root), vars(nn.functional), vars(Tensor)):
        found = home.get(name)
        if callable(found) and not isinstance(found, type):
            return found
    for prefix, home in (("linalg_", linalg), ("special_", special), ("fft_", fft)):
        found = getattr(home, name if prefix == "fft_" else name[len(prefix):], None) if name.startswith(prefix) else None
        if found is not None:
            return found
    return None


class _OpNamespace(types.ModuleType):
    def __init__(self, name):
        super().__init__("torch.ops." + name)
        self.name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        qualified = f"{self.name}::{name}"
        if qualified in _NAMES:
            return RegisteredPacket(self.name, name)
        if self.name == "aten":
            made = packet(name)
            if made is not None:
                setattr(self, name, made)
                return made
        if self.name in ("aten", "prims"):
            found = _native(name)
            if found is not None:
                return _Native(name, found)
        raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")

    def __iter__(self):
        return iter([key.partition("::")[2] for key in _NAMES if key.startswith(self.name + "::")])


class _Ops(types.ModuleType):
    __file__ = "_ops.py"

    def __init__(self):
        super().__init__("torch.ops")
        self.loaded_libraries = set()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = _OpNamespace(name)
        setattr(self, name, made)
        return made

    def load_library(self, path):
        """OSError: such a library is compiled against PyTorch. Source: PyTorch, torch.ops.load_library."""
        raise OSError(f"torch.ops.load_library({str(path)!r}): the library is compiled for PyTorch's binary interface, which is "
                      f"not here; "
                      "register the operators in Python with torch.library")

    def import_module(self, module):
        import importlib

        importlib.import_module(module)


class _Classes(types.ModuleType):
    """torch.classes: compiled classes. None can be loaded, so none is found."""

    __file__ = "_classes.py"

    def __init__(self):
        super().__init__("torch.classes")
        self.loaded_libraries = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"torch.classes.{name}: compiled classes are made for PyTorch's binary interface and cannot be loaded")

    def load_library(self, path):
        ops.load_library(path)


ops = _Ops()
classes = _Classes()
_dispatch.packets = ops.aten


def split(qualified):
    """(namespace, name, overload) of "namespace::name.overload"."""
    namespace, found, rest = qualified.partition("::")
    if not found:
        raise ValueError(f"expected a name of the form 'namespace::name', got {qualified!r}")
    name, _, overload = rest.partition(".")
    return namespace, name, "" if overload == "default" else overload


def define(namespace, schema, tags=()):
    """Make an operator known by its schema "name.overload(Tensor x) -> Tensor"; gives the OpOverload. RuntimeError where it is
    known."""
    parsed = parse(_plain(schema))
    full = f"{namespace}::{parsed.name}"
    overloads = _NAMES.setdefault(full, {})
    existing = overloads.get(parsed.overload)
    if existing is not None and existing._schema is not None:
        raise RuntimeError(f"Tried to register an operator ({full}{'.' + parsed.overload if parsed.overload else ''}) with the "
                           f"same name and "
                           "overload name multiple times. Each overload's schema should only be registered with a single call "
                           "to def().")
    made = existing or RegisteredOverload(namespace, parsed.name, parsed.overload)
    made._schema = parsed._replace(text=f"{namespace}::{schema}")
    made.tags = tuple(tags) if isinstance(tags, (tuple, list)) else (tags,)
    overloads[parsed.overload] = made
    return made


def find(qualified, create=False):
    """The OpOverload of "namespace::name[.overload]"; None (or a new one without a schema) where it is not defined."""
    namespace, name, overload = split(qualified)
    found = _NAMES.get(f"{namespace}::{name}", {}).get(overload)
    if found is None and create:
        found = _NAMES.setdefault(f"{namespace}::{name}", {})[overload] = RegisteredOverload(namespace, name, overload)
    return found


def forget(overload):
    """Take an operator out again."""
    full = f"{overload.namespace}::{overload._opname}"
    overloads = _NAMES.get(full, {})
    overloads.pop(overload._overloadname, None)
    if not overloads:
        _NAMES.pop(full, None)
