"""What is wrong with the arguments of a call that no overload takes, in PyTorch's words.

Where the number of arguments leaves one signature, it says what that one misses; else it lists all of them.
"""

import itertools

from msadapter_hook.tensor import Tensor

from . import arguments
from .arguments import Mismatch
from .binding import NUMBERS_AS_TENSORS
from .schema import MISSING

_PREFIXED = frozenset(["linalg", "fft", "special"])  # namespaces that are part of the name in errors

_COMPILED = frozenset(  # functions of torch.nn.functional that are no Python
    "avg_pool1d avg_pool2d avg_pool3d bilinear channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d "
    "cosine_similarity gelu hardshrink linear logsigmoid one_hot pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu "
    "scaled_dot_product_attention softplus softshrink".split())

#: Other names that arguments may be given by.
ALIASES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other", "self": "input", "a": "input"}


class Call:
    """A call that failed: the operator, the arguments given, and whether it was a method (whose `self` does not count)."""

    def __init__(self, entry, args, kwargs, method=None):
        namespace = entry.name.rpartition(".")[0]
        self.name = method or (f"{namespace}_{entry.short}" if namespace in _PREFIXED else entry.short)
        self.skip = 0 if method is None else 1
        self.python = namespace == "nn.functional" and entry.short not in _COMPILED
        self.every = entry.overloads
        self.overloads = sorted((o for o in self.every if not o.schema.overload.startswith(("older", "deprecated"))), key=_required)
        self.operands = entry.short.rstrip("_") not in NUMBERS_AS_TENSORS
        self.args, self.given, self.kwargs = args, args[self.skip:], kwargs
        self.takes_out = method is None and entry.function is not None and getattr(entry.function, "__takes_out__", False)
        self.count = len(self.given) + len(kwargs)

    def error(self):
        """The TypeError."""
        fitting = self.overloads if len(self.every) == 1 else [o for o in self.overloads if self._could_be(o)]
        alone = len(fitting) == 1 and len(self._spelled(fitting[0])) == 1
        text = self._of_one(fitting[0]) if alone else None
        return TypeError(text or self._of_all())

    def _parameters(self, overload):
        return overload.schema.parameters[self.skip:]

    def _could_be(self, overload):
        parameters = self._parameters(overload)
        return sum(p.default is MISSING for p in parameters) <= self.count <= len(parameters) + self.takes_out

    def _spelled(self, overload):
        """The kinds of the parameters in each of the signatures that PyTorch has for one: an operand is a tensor or a number."""
        kinds = [p.kind for p in self._parameters(overload)]
        parameters = self._parameters(overload)
        places = [i for i, p in enumerate(parameters) if p.kind == "Operand" and p.default is MISSING] if self.operands else []
        found = []
        for choice in itertools.product(("Tensor", "Scalar"), repeat=len(places)):
            made = list(kinds)
            for i, kind in zip(places, reversed(choice)):
                made[i] = kind
            found.append(made)
        tensors = any(kind == "Tensor" for kind in kinds)
        return found if tensors or self.skip or len(found) == 1 else found[:-1]

    # ---------------------------------------------------------------------------------------- one signature
    def _of_one(self, overload):
        parameters = self._parameters(overload)
        positional = [p for p in parameters if not p.keyword_only]
        lone_size = [p.kind for p in positional] == ["int[]"]
        if len(self.given) > len(positional) and not lone_size:
            return f"{self.name}() {self._too_many(positional)}"
        known = {label(p): p for p in parameters}
        given = {ALIASES.get(k, k) if k not in known else k for k in self.kwargs}
        missing = [n for i, (n, p) in enumerate(known.items()) if p.default is MISSING and n not in given
                   and (p.keyword_only or i >= len(self.given))]
        if missing:
            if self.python:
                several = "s" if len(missing) > 1 else ""
                return f"{self.name}() missing {len(missing)} required positional argument{several}: {_listed(missing)}"
            names = ", ".join(f'"{n}"' for n in missing)
            return f"{self.name}() missing {len(missing)} required positional argument{'s' if len(missing) == 1 else ''}: {names}"
        unknown = next((k for k in self.kwargs if k not in known and ALIASES.get(k, k) not in known), None)
        try:
            overload.bind(*self.args, **{k if k in known else ALIASES.get(k, k): v for k, v in self.kwargs.items() if k != unknown})
        except Mismatch as wrong:
            return self._mismatch(wrong)
        except TypeError:
            pass
        return f"{self.name}() got an unexpected keyword argument '{unknown}'" if unknown is not None else None

    def _too_many(self, positional):
        most, least = len(positional), sum(p.default is MISSING for p in positional)
        takes = f"takes from {least} to {most}" if least < most else f"takes {most}"
        n = len(self.given)
        return f"{takes} positional argument{'' if most == 1 else 's'} but {n} {'was' if n == 1 else 'were'} given"

    def _mismatch(self, wrong):
        p, value, at = wrong.parameter, wrong.value, wrong.position
        place = None if at is None or at >= len(self.args) else at - self.skip
        if p.kind == "Tensor[]" and isinstance(value, (list, tuple)):
            number = next(i for i, t in enumerate(value) if not isinstance(t, Tensor))
            return f"expected Tensor as element {number} in argument {place or 0}, but got {type(value[number]).__name__}"
        where = "" if place is None else f" (position {place + 1})"
        text = f"{self.name}(): argument '{label(p)}'{where} must be {arguments.kind_name(p.kind)}, "
        if p.kind.startswith("int[") and isinstance(value, (list, tuple)):
            number, odd = next(((i, v) for i, v in enumerate(value) if not isinstance(v, int) or isinstance(v, bool)), (0, None))
            if number:
                return (f"{self.name}(): argument '{label(p)}' failed to unpack the object at pos {number + 1} with error \"type must be "
                        f"tuple of ints,but got {type(odd).__name__}\"")
            return f"{text}but found element of type {type(odd).__name__} at pos 0"
        return f"{text}not {type(value).__name__}"

    # ---------------------------------------------------------------------------------------- several signatures
    def _of_all(self):
        given = [type_of(a) for a in self.given]
        named = [f"{k}={type_of(v)}" for k, v in self.kwargs.items()]
        shown = ", ".join(given + named) + (", " if named and not given else "")
        spelled = [(o, kinds, self._signature(o, kinds)) for o in self.overloads for kinds in self._spelled(o)]
        if len(spelled) == 1:
            expected = f"({', '.join(spelled[0][2])})"
        else:
            options = [f"\n * ({', '.join(parts)}){self._why_not(o, kinds, parts)}" for o, kinds, parts in spelled]
            expected = f"one of:{''.join(options)}\n"
        return f"{self.name}() received an invalid combination of arguments - got ({shown}), but expected {expected}"

    def _signature(self, overload, kinds):
        """The parts of a signature, as PyTorch prints them."""
        parts, star = [], False
        for p, kind in zip(self._parameters(overload), kinds):
            if p.keyword_only and not star:
                parts.append("*")
                star = True
            name = "self" if p.name == "self" and kind == "Scalar" else label(p)
            parts.append(f"{arguments.kind_name(kind)} {name}{_default(p)}")
        if self.takes_out:
            results = overload.schema.returns
            out = ("tuple of Tensors" if len(results) > 1 else "Tensor") + " out = None"
            star_at = parts.index("*") if star else None
            if star_at is not None and "torch.dtype dtype = None" in parts and overload.factory is not None:
                parts.insert(star_at + 1, out)
            else:
                parts += [out] if star else ["*", out]
        return parts

    def _why_not(self, overload, kinds, parts):
        """The kinds of the arguments, those that do not fit marked, where there are as many as the signature has parts."""
        parameters = [p._replace(kind=kind) for p, kind in zip(self._parameters(overload), kinds)]
        if max(len(parts), 1) != self.count:
            return ""
        known = {label(p): p for p in parameters}
        wrong = [k for k in self.kwargs if k not in known]
        if wrong:
            return f"\n      didn't match because some of the keywords were incorrect: {', '.join(wrong)}"
        shown = [_marked(p, a) for p, a in itertools.zip_longest(parameters[:len(self.given)], self.given)]
        shown += [f"{k}={_marked(known[k], v)}" for k, v in self.kwargs.items()]
        return f"\n      didn't match because some of the arguments have invalid types: ({', '.join(shown)}{',' * (not self.given)})"


def label(parameter):
    """The name of a parameter as users write it."""
    return "input" if parameter.name == "self" else parameter.name


def type_of(value):
    return type(value).__name__


def _required(overload):
    return sum(p.default is MISSING for p in overload.schema.parameters)


def _listed(names):
    """'a', 'b', and 'c', as Python does it."""
    quoted = [f"'{n}'" for n in names]
    return " and ".join(quoted) if len(quoted) < 3 else ", ".join(quoted[:-1]) + f", and {quoted[-1]}"


def _marked(parameter, value):
    if parameter is None:
        return f"!{type_of(value)}!"
    try:
        if value is not None or not (parameter.optional or parameter.default is None):
            arguments.converter(parameter.kind)(value)
    except (TypeError, AttributeError, ValueError):
        return f"!{type_of(value)}!"
    return type_of(value)


def _default(p):
    if p.default is MISSING:
        return ""
    if p.name == "pin_memory":
        return " = False"
    return f' = "{p.default}"' if isinstance(p.default, str) else f" = {p.default if p.default != () else 'None'}"
