"""Schemas in PyTorch's notation: `name.overload(Tensor self, int[1]? dim=None, *, ScalarType? dtype=None) -> Tensor`."""

import re
from typing import NamedTuple


class Parameter(NamedTuple):
    """`kind`: Tensor, Scalar, int, int[2], …; `optional`: None is allowed; `default`: `MISSING` where there is none."""

    name: str
    kind: str
    optional: bool
    default: object
    keyword_only: bool


class Schema(NamedTuple):
    name: str
    overload: str
    parameters: tuple
    returns: tuple  # names of the results ('' where they have none)
    returns_list: bool
    text: str


class _Missing:
    def __repr__(self):
        return "MISSING"


MISSING = _Missing()

_HEAD = re.compile(r"^([\w.]+?)(?:\.(\w+))?\((.*)\)\s*->\s*(.+)$", re.S)
_PARAMETER = re.compile(r"^([\w|]+(?:\[\d*\])?)(\?)?\s+(\w+)(?:\s*=\s*(.+))?$", re.S)
_CONSTANTS = {"None": None, "True": True, "False": False}


def parse(text: str, namespace: str = "") -> Schema:
    """The parts of a schema. ValueError where it cannot be read.

    A dot in the name separates the overload; a namespace (`nn.functional`, `linalg`) is given beside it.
    """
    found = _HEAD.match(" ".join(text.split()))
    if not found:
        raise ValueError(f"not a schema: {text!r}")
    name, overload, inside, result = found.groups()
    parameters, keyword_only = [], False
    for part in _split(inside):
        if part == "*":
            keyword_only = True
            continue
        p = _PARAMETER.match(part)
        if not p:
            raise ValueError(f"parameter {part!r} in {text!r}")
        kind, optional, label, default = p.groups()
        parameters.append(Parameter(label, kind, bool(optional), _default(default) if default else
                                    (MISSING if default is None else default), keyword_only))
    result = result.strip()
    returns_list = result.endswith("[]")
    if result.startswith("("):
        returns = tuple([(r.split() + [""])[1] for r in _split(result[1:-1])])
    else:
        returns = ("",)
    return Schema(f"{namespace}.{name}" if namespace else name, overload or "", tuple(parameters), returns, returns_list, text)


def _split(text):
    parts, depth, at = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "[(" and 1 or c in "])" and -1 or 0
        if c == "," and depth == 0:
            parts.append(text[at:i].strip())
            at = i + 1
    parts.append(text[at:].strip())
    return [p for p in parts if p]


def _default(text):
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] == "[":
        return tuple([_default(p) for p in _split(text[1:-1])])
    if text[0] in "'\"":
        return text[1:-1]
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text
