"""From a schema to Python: the function that binds and checks arguments, the named tuple of results, the texts of errors."""

from collections import namedtuple

import numpy as np

from msadapter_hook.tensor import Tensor, dtypes, from_array

from . import arguments
from .arguments import Mismatch
from .schema import MISSING

RETURN_TYPES = {}  # name -> named tuple


def binder(schema):
    """A function with the schema's signature that gives the checked arguments as a tuple."""
    environment = {"single": _single, "wrapped": _wrapped, "Mismatch": Mismatch, "Tensor": Tensor, "_default": []}
    head, body, names = [], [], []
    star = False
    parameters = schema.parameters
    variadic = _variadic(parameters)
    for i, p in enumerate(parameters):
        label = "input" if p.name == "self" else p.name
        label = label + "_" if label in ("from", "lambda") else label
        if p.keyword_only and not star:
            head.append("*")
            star = True
        names.append(label)
        environment[f"p{i}"], environment[f"c{i}"], environment[f"d{i}"] = p, arguments.converter(p.kind), p.default
        if i == variadic:
            head.append("*rest, " + (f"{label}=d{i}"))
            star = True
            body.append(f"    if rest:\n        {label} = rest[0] if len(rest) == 1 and not single(rest[0]) "
                        "else rest\n")
            if p.default is MISSING:
                body.append(f"    elif {label} is d{i}: raise TypeError('missing {label}')\n")
        else:
            head.append(f"{label}=d{i}" if p.default is not MISSING else label)
        if p.kind == "any":
            continue
        if p.kind == "Tensor":
            test = f"{label} is None or " * p.optional + f"isinstance({label}, Tensor)"
            body.append(f"    if not ({test}): raise Mismatch(p{i}, {label}, {i})\n")
            continue
        skip = []
        if p.optional or p.default is None:
            skip.append(f"{label} is not None")
        if p.default is not MISSING and p.default is not None:
            skip.append(f"{label} is not d{i}")
        if p.kind == "bool":
            skip = [f"{label} is not True and {label} is not False"] + [s for s in skip if "None" in s]
        pad = "    "
        if skip:
            body.append(f"    if {' and '.join(skip)}:\n")
            pad = "        "
        body.append(f"{pad}try: {label} = c{i}({label})\n"
                    f"{pad}except (TypeError, AttributeError, ValueError): raise Mismatch(p{i}, {label}, {i}) from "
                    "None\n")
    operands = [i for i, p in enumerate(parameters) if p.kind == "Operand" and p.default is MISSING]
    required = any(p.kind == "Tensor" and not p.optional for p in parameters)
    if operands and operands[0] == 0 and parameters[0].name in ("self", "x", "elements") and not required:
        labels = ["input" if parameters[i].name == "self" else parameters[i].name for i in operands]
        test = " or ".join(f"isinstance({n}, Tensor)" for n in labels)
        instead = f"{labels[0]} = wrapped({labels[0]})" if schema.name in NUMBERS_AS_TENSORS else f"raise Mismatch(p0, {labels[0]}, 0)"
        body.append(f"    if not ({test}): {instead}\n")
    source = (f"def bind({', '.join(head)}):\n" + "".join(body) + "    return "
                                                                  f"({', '.join(names)}{',' if names else ''})\n")
    exec(compile(source, f"<schema {schema.name}>", "exec"), environment)
    return environment["bind"]


#: Operators that take two numbers too, as PyTorch does.
NUMBERS_AS_TENSORS = frozenset("add sub subtract mul multiply div divide true_divide floor_divide".split())


def _wrapped(number):
    """A tensor of no dimensions for a number; a floating one has the default dtype."""
    dtype = {bool: dtypes.bool_, int: dtypes.int64}.get(type(number)) or dtypes.get_default_dtype()
    if isinstance(number, complex):
        dtype = dtype.to_complex()
    return from_array(np.asarray(number, dtype.numpy), dtype)


def _single(x):
    """Whether `x`, given alone where a size may be spelled out, is one number of it."""
    if isinstance(x, Tensor):
        return not x.dim()
    if isinstance(x, int):
        return type(x) is not bool
    return hasattr(x, "__index__") and not getattr(x, "ndim", 0)  # NumPy's integers


def _variadic(parameters):
    """Which parameter takes the rest of the positional arguments: a list of ints right after self, and alone there."""
    positional = [i for i, p in enumerate(parameters) if not p.keyword_only]
    if (len(positional) >= 2 and positional[-1] == 1 and parameters[1].kind == "int[]"
            and parameters[0].kind == "Tensor"):
        return 1
    if len(positional) == 1 and parameters[0].kind == "int[]":
        return 0
    return None


def result_type_of(schema):
    if len(schema.returns) < 2 or not all(schema.returns):
        return None
    short = schema.name.replace(".", "_")
    made = RETURN_TYPES.get(short)
    if made is None:
        made = RETURN_TYPES[short] = return_type(short, schema.returns)
    return made


def return_type(name, fields):
    """A named tuple that prints as PyTorch's `torch.return_types`."""
    base = namedtuple(name, fields)

    def __repr__(self):
        inner = ",\n".join(f"{f}={v!r}" for f, v in zip(fields, self))
        return f"torch.return_types.{name}(\n{inner})"

    def __new__(cls, *items):
        if len(items) == 1 and len(fields) != 1:
            items = tuple(items[0])
        return tuple.__new__(cls, items)

    return type(name, (base,),
                {"__slots__": (), "__repr__": __repr__, "__new__": __new__, "__module__": "torch.return_types",
                                "n_fields": len(fields), "n_sequence_fields": len(fields), "n_unnamed_fields": 0})
