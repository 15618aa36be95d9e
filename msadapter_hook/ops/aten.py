"""The operators under PyTorch's names: which overload of `torch.ops.aten` a call is, with which arguments, and what calls it.

The schemas are PyTorch's (`aten_schemas.txt`, written by `tests/record/aten.py`). An operator that PyTorch makes of others before
anything in Python sees it is taken apart here in the same way (`made_of`), so that handlers see what they see there.
"""

import functools
import pathlib
import re
from typing import NamedTuple

from msadapter_hook.tensor import Tensor, dtypes
from msadapter_hook.tensor.device import current_device

from . import arguments
from .schema import MISSING, parse

_FILE = pathlib.Path(__file__).with_name("aten_schemas.txt")
_WORDS = {"Mean": 1, "Sum": 2, "contiguous_format": dtypes.contiguous_format, "long": dtypes.int64, "strided": dtypes.strided}
_PREFIXES = (("nn.functional.", ""), ("linalg.", "linalg_"), ("special.", "special_"), ("fft.", "fft_"))
_NAMES = {  # operators whose schema here has another name
    "_norms._vector_norm": "linalg_vector_norm", "_methods.polygamma": "polygamma",
}
_NUMBER_AS_TENSOR = frozenset("add sub mul div floor_divide add_ sub_ mul_ div_ floor_divide_".split())
_SPREADS = frozenset(["var", "std", "var_mean", "std_mean"])
_FIRST = ("self", "input", "x", "A", "tensor")  # names of the tensor that comes first


class Aten(NamedTuple):
    """One overload: its schema, PyTorch's text of it, whether it is made of others, whether it writes or gives views."""

    schema: object
    text: str
    implicit: bool


@functools.cache
def _lines():
    found = {}
    for line in _FILE.read_text().splitlines():
        found.setdefault(re.split(r"[.(]", line[1:], maxsplit=1)[0], []).append(line)
    return found


def plain(text):
    """A schema without what says which arguments are written or aliased: `Tensor(a!) x` is `Tensor x`."""
    text = re.sub(r"\b(\w+\??)\([a-z](?:\s*->\s*\*|!|\|[a-z])*\)", r"\1", text)
    return text.replace("Tensor?[]", "OptionalTensor[]")


@functools.cache
def overloads(name):
    """{name of the overload: Aten} of an operator, in PyTorch's order; empty where there is none."""
    made = {}
    for line in _lines().get(name, ()):
        schema = parse(plain(line[1:]))
        schema = schema._replace(parameters=tuple([p._replace(default=_default(p)) for p in schema.parameters]))
        made[schema.overload] = Aten(schema, line[1:], line[0] == "-")
    return made


def _default(parameter):
    default = parameter.default
    return _WORDS.get(default, default) if isinstance(default, str) and parameter.kind != "str" else default


def names():
    """All operators there are."""
    return _lines().keys()


def name_of(name):
    """An operator's name in `torch.ops.aten`."""
    if name in _NAMES:
        return _NAMES[name]
    for prefix, instead in _PREFIXES:
        if name.startswith(prefix):
            return instead + name[len(prefix):]
    return name.rpartition(".")[2]


# ------------------------------------------------------------------------------------------------ from a call to an overload
def _fits(kind, value, name):
    if kind == "Tensor":
        return isinstance(value, Tensor) or name in _NUMBER_AS_TENSOR and arguments.is_number(value)
    if kind == "Scalar":
        return not isinstance(value, Tensor)
    if kind in ("Tensor[]", "OptionalTensor[]"):
        return isinstance(value, (list, tuple))
    if kind.startswith(("int[", "float[", "bool[")):
        return isinstance(value, (list, tuple)) or kind[-2] != "[" and not isinstance(value, Tensor)
    if kind in ("int", "float", "bool"):
        return not isinstance(value, (Tensor, list, tuple))
    return True


def _arranged(aten, given, name):
    """(positional arguments, keyword arguments) of an overload from arguments by name, as PyTorch hands them on: defaults at the
    end left out. None where they do not fit."""
    left = dict(given)
    args, kwargs, last = [], {}, 0
    for p in aten.schema.parameters:
        label = p.name if p.name in left else next((n for n in _FIRST if n in left), None) if p.name in _FIRST else None
        value = left.pop(label, None) if label in left else (p.default if p.default is not MISSING else None)
        if value is None:
            if not p.optional and p.default is MISSING:
                return None
        elif not _fits(p.kind, value, name):
            return None
        default = list(p.default) if isinstance(p.default, tuple) else p.default
        if p.kind.startswith(("int[", "float[")):
            value, default = _listed(p.kind, value), _listed(p.kind, default)
            if value is None and default == []:
                value = default
        elif isinstance(value, (tuple, list)):
            value = list(value)
        common = p.default is not MISSING and type(value) is type(default) and value == default or value is None and p.optional
        if p.keyword_only:
            if not common:
                kwargs[p.name] = value
            continue
        args.append(value)
        if not common or p.default is MISSING:
            last = len(args)
    return (args[:last], kwargs, left)


def _listed(kind, value):
    """Numbers as the list that a parameter like `int[2]` takes."""
    count = int(re.sub(r"\D", "", kind) or 1)
    if isinstance(value, (tuple, list)):
        return list(value) * (count if len(value) == 1 else 1)
    return [value] * count if isinstance(value, (int, float)) else value


def target(overload, bound, inplace=False):
    """(name, Aten, args, kwargs) of the overload that a call of an operator is; None where PyTorch has none for it."""
    schema = overload.schema
    name = name_of(schema.name) + ("_" if inplace else "")
    given = {p.name: v for p, v in zip(schema.parameters, bound)}
    unsaid = {p.name for p, v in zip(schema.parameters, bound) if v is None or v is p.default or v == p.default
              and not isinstance(v, Tensor)}
    best = None
    for aten in overloads(name).values():
        found = _arranged(aten, given, name)
        if found is None or not unsaid.issuperset(found[2]):
            continue
        rank = (aten.implicit, aten.schema.overload != schema.overload)
        if best is None or rank < best[0]:
            best = (rank, aten, found)
    if best is None:
        return None
    _, aten, (args, kwargs, _) = best
    if name in _SPREADS and args[1:] and "correction" not in kwargs:
        kwargs = {"correction": 1, **kwargs}
    if overload.factory is not None:
        kwargs = _options(schema, given, kwargs)
    return name, aten, args, kwargs


def chosen(name, args, kwargs):
    """(overload, args, kwargs) of the overload that fits arguments given as to a method. TypeError where none does."""
    for overload, aten in overloads(name).items():
        places = [p.name for p in aten.schema.parameters if not p.keyword_only]
        if len(args) > len(places):
            continue
        given = {**dict(zip(places, args)), **kwargs}
        found = _arranged(aten, given, name)
        if found is not None and not found[2]:
            return overload, found[0], found[1]
    raise TypeError(f"{name}() received an invalid combination of arguments")


def _options(schema, given, kwargs):
    """The options of a factory as PyTorch hands them on."""
    made = {k: v for k, v in kwargs.items() if k not in ("device", "pin_memory")}
    if given.get("device") is not None or not isinstance(next(iter(given.values()), None), Tensor):
        made["device"] = given.get("device") or current_device()
    made["pin_memory"] = bool(given.get("pin_memory"))
    return made
