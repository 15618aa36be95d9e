# torch.ops.aten: the operators by PyTorch's names, their overloads and schemas. What runs them is in `ops.aten_parts`.
from typing import NamedTuple

from msadapter_hook.ops import aten as _aten
from msadapter_hook.ops import behind  # noqa: F401  (what backward asks of tensors that dispatch)
from msadapter_hook.ops import dispatch as _dispatch
from msadapter_hook.ops.aten_parts import native_of as _native_of
from msadapter_hook.ops.schema import MISSING as _MISSING


class _Alias(NamedTuple):
    """Which memory an argument or result shares, and whether it is written."""

    before_set: frozenset
    is_write: bool


class Argument(NamedTuple):
    """One argument of a schema. Source: PyTorch, torch._C.Argument."""

    name: str
    type: str
    default_value: object
    kwarg_only: bool
    alias_info: object

    @property
    def is_write(self):
        return self.alias_info is not None and self.alias_info.is_write

    def has_default_value(self):
        return self.default_value is not _MISSING


class FunctionSchema:
    """The schema of an overload: its text, `name`, `overload_name`, `arguments`, `returns`. Source: PyTorch,
    torch._C.FunctionSchema."""

    def __init__(self, namespace, found):
        self.name = f"{namespace}::{found.schema.name}"
        self.overload_name = found.schema.overload
        self._text = f"{namespace}::{found.text}"
        inside, _, given = found.text.partition("(")[2].rpartition(") -> ")
        parts = [p for p in _split(inside) if p != "*"]
        self.arguments = [Argument(p.name, p.kind + "?" * p.optional, p.default, p.keyword_only, _alias(text))
                          for p, text in zip(found.schema.parameters, parts)]
        results = _split(given[1:-1]) if given.startswith("(") else [given] if given else []
        self.returns = [Argument(name or None, text.split()[0], _MISSING, False, _alias(text))
                        for text, name in zip(results, [*found.schema.returns, *[""] * len(results)])]

    @property
    def is_mutable(self):
        """Whether an argument is written."""
        return any(a.is_write for a in self.arguments)

    def __str__(self):
        return self._text

    __repr__ = __str__


def schema_of(func):
    """The FunctionSchema of an overload of `torch.ops`, whoever registered it."""
    schema = func._schema
    if isinstance(schema, FunctionSchema):
        return schema
    return FunctionSchema(func.namespace, _aten.Aten(schema, schema.text.partition("::")[2], False))


def _split(text):
    """The parts of a list of arguments or results, which may hold commas in brackets."""
    parts, depth, at = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "[(") - (c in "])")
        if c == "," and not depth:
            parts.append(text[at:i].strip())
            at = i + 1
    return [p for p in (*parts, text[at:].strip()) if p]


def _alias(text):
    kind = text.split()[0] if not text.startswith("Tensor(") else text[: text.index(")") + 1]
    if not kind.startswith("Tensor("):
        return None
    inside = kind[7:-1]
    return _Alias(frozenset([inside[0]]), "!" in inside)


class OpOverload:
    """One overload of an operator. Source: PyTorch, torch._ops.OpOverload."""

    def __deepcopy__(self, memo):
        return self


class OpOverloadPacket:
    """All overloads of an operator. Source: PyTorch, torch._ops.OpOverloadPacket."""

    def __deepcopy__(self, memo):
        return self


class AtenOverload(OpOverload):
    """One of the adapter's own operators: what `__torch_dispatch__` is given, and may call."""

    namespace = "aten"

    def __init__(self, packet, found):
        self.overloadpacket = packet
        self._opname, self._overloadname = packet._opname, found.schema.overload or "default"
        self._found = found
        self._schema = FunctionSchema("aten", found)
        self.written = [i for i, a in enumerate(self._schema.arguments) if a.is_write]
        self.gives_list = found.text.endswith("[]")
        self.native = packet._function
        self.tags = []
        self.__name__ = self.__qualname__ = f"{self._opname}.{self._overloadname}"
        self.__module__ = "torch._ops.aten"

    @property
    def _overload(self):
        return self._overloadname

    def name(self):
        return self._schema.name + (f".{self._schema.overload_name}" if self._schema.overload_name else "")

    @property
    def is_view(self):
        """Whether the results share memory with an argument that is not written."""
        return not self.written and any(a.alias_info is not None for a in self._schema.arguments)

    def __call__(self, *args, **kwargs):
        if self._found.implicit:
            return self.native(*args, **kwargs)
        return _dispatch.call(self, list(args), kwargs)

    def decompose(self, *args, **kwargs):
        """What the operator is made of; NotImplemented where it stands for itself."""
        return self.native(*args, **kwargs) if self._found.implicit else NotImplemented

    def has_kernel_for_dispatch_key(self, key):
        name = str(key).rpartition(".")[2]
        return name == ("CompositeImplicitAutograd" if self._found.implicit else "CPU")

    def __str__(self):
        return f"aten.{self._opname}.{self._overloadname}"

    def __repr__(self):
        return f"<OpOverload(op='aten.{self._opname}', overload='{self._overloadname}')>"

    def __reduce__(self):
        return _restored, (self._opname, self._overloadname)


def _restored(name, overload=None):
    from . import ops

    packet = getattr(ops.aten, name)
    return packet if overload is None else getattr(packet, overload)


class AtenPacket(OpOverloadPacket):
    """An operator of the adapter with all its overloads; calling it takes the one that fits."""

    def __init__(self, name, function):
        self._opname, self._function = name, function
        self._qualified_op_name = f"aten::{name}"
        self.__name__ = name
        self.__module__ = "torch._ops.aten"

    def overloads(self):
        return [key or "default" for key in _aten.overloads(self._opname)]

    def __getattr__(self, key):
        if key.startswith("__"):
            raise AttributeError(key)
        found = _aten.overloads(self._opname).get("" if key == "default" else key)
        if found is None:
            raise AttributeError(f"The underlying op of 'aten.{self._opname}' has no overload name '{key}'")
        made = AtenOverload(self, found)
        setattr(self, key, made)
        return made

    def __call__(self, *args, **kwargs):
        if len(_aten.overloads(self._opname)) == 1 and _dispatch.active(args, kwargs):
            return getattr(self, self.overloads()[0])(*args, **kwargs)
        return self._function(*args, **kwargs)

    def __str__(self):
        return f"aten.{self._opname}"

    def __repr__(self):
        return f"<OpOverloadPacket(op='aten.{self._opname}')>"

    def __reduce__(self):
        return _restored, (self._opname,)


def packet(name):
    """The packet of a name in `torch.ops.aten`; None where the adapter has no such operator."""
    function = _native_of(name)
    if function is None or not callable(function) or not _aten.overloads(name):
        return None
    return AtenPacket(name, function)

