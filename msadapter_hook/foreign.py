"""Objects of other libraries that take part as tensors or modules: tables by class, filled by `interop`, read by the layers.

Nothing is imported here. An operator looks here only after its arguments did not fit, so plain programs pay nothing.
"""

TENSORS = {}  # class -> function(object) that gives a tensor of ours
MODULES = {}  # class -> function(object, Module) that gives an instance of the served Module


def _found(table, x):
    if table:
        for cls in type(x).__mro__:
            convert = table.get(cls)
            if convert is not None:
                return convert
    return None


def is_tensor(x):
    """True for a tensor of another library that the adapter can take."""
    return _found(TENSORS, x) is not None


def tensor(x):
    """A tensor of ours for a tensor of another library; anything else as it is."""
    convert = _found(TENSORS, x)
    if convert is not None:
        return convert(x)
    return x


def module(x, Module):
    """A served module (an instance of `Module`) for a module of another library; None where it is none."""
    convert = _found(MODULES, x)
    return None if convert is None else convert(x, Module)


def tree(x):
    """`x` with every foreign tensor in its lists, tuples and dicts made ours; the same object where there is none."""
    if isinstance(x, (list, tuple)):
        made = [tree(item) for item in x]
        if all(a is b for a, b in zip(made, x)):
            return x
        return type(x)(*made) if hasattr(x, "_fields") else type(x)(made)
    if isinstance(x, dict):
        made = {key: tree(item) for key, item in x.items()}
        if all(made[key] is x[key] for key in x):
            return x
        return made if type(x) is dict else type(x)(made)
    return tensor(x)


def arguments(args, kwargs):
    """(args, kwargs) with foreign tensors made ours, or None where there is none."""
    if not TENSORS:
        return None
    made, named = tree(args), tree(kwargs)
    return None if made is args and named is kwargs else (made, named)


def given(args, kwargs):
    """(args, kwargs) of a module's call with foreign tensors made ours: those that stand there themselves."""
    for x in args:
        if type(x) in TENSORS:
            args = tuple([TENSORS[type(a)](a) if type(a) in TENSORS else a for a in args])
            break
    if kwargs and any(type(x) in TENSORS for x in kwargs.values()):
        kwargs = {key: TENSORS[type(a)](a) if type(a) in TENSORS else a for key, a in kwargs.items()}
    return args, kwargs


def cast_to_adapter_tensor(x):
    """Foreign tensors in `x` (also in lists, tuples, dicts) as ours; everything else as it is. Source: MindTorch,
    torch.cast_to_adapter_tensor."""
    return tree(x)
