# Helpers of Module: names in messages, indentation, registration of hooks, arguments of `to`.
from msadapter_hook import foreign

from ... import Tensor
from ... import device as _device
from ... import dtype as _dtype
from ...utils.hooks import RemovableHandle


def _typename(value):
    if isinstance(value, Tensor):
        return value.type()
    kind = value if isinstance(value, type) else type(value)
    module = getattr(kind, "__module__", "")
    return kind.__qualname__ if module in ("", "builtins") else f"{module}.{kind.__qualname__}"


def _addindent(text, count):
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * count + line for line in rest)])


def _remove_from(name, *tables):
    for table in tables:
        if isinstance(table, dict):
            table.pop(name, None)
        elif table is not None:
            table.discard(name)


def _adopted(value, Module):
    # A module of another library (a MindSpore Cell) as an instance of `Module`; anything else as it is.
    return value if isinstance(value, Module) else foreign.module(value, Module) or value


def _set_other(self, name, value, Module):
    # An attribute that is neither parameter, module nor buffer of ours: modules and parameters of another library are
    # registered as ours, everything else is a plain attribute.
    if foreign.MODULES and "_modules" in self.__dict__:
        module = foreign.module(value, Module)
        made = foreign.tensor(value) if module is None else module
        if module is not None or (made is not value and isinstance(made, Tensor) and made.is_leaf and made.requires_grad):
            setattr(self, name, made)
            return
    object.__setattr__(self, name, value)


def _add_hook(table, hook, prepend=False, marks=()):
    # `marks`: tables that note a property of the hook, each with whether it has it; the handle cleans them too.
    handle = RemovableHandle(table, extra_dict=[mark for mark, _ in marks]) if marks else RemovableHandle(table)
    table[handle.id] = hook
    for mark, on in marks:
        if on:
            mark[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def _parse_to(*args, **kwargs):
    """(device, dtype, non_blocking, memory_format) from the arguments of Module.to; TypeError for others."""
    values = {"device": None, "dtype": None, "non_blocking": False, "memory_format": None}
    names = ["device", "dtype", "non_blocking", "copy"]
    if "tensor" in kwargs or (args and isinstance(args[0], Tensor)):
        other, *args = args if "tensor" not in kwargs else (kwargs.pop("tensor"), *args)
        values["device"], values["dtype"] = other.device, other.dtype
        names = ["non_blocking", "copy"]
    elif args and isinstance(args[0], _dtype):
        names = ["dtype", "non_blocking", "copy"]
    if len(args) > 4:
        raise TypeError(f"to() takes from 0 to 4 positional arguments but {len(args)} were given")
    if len(args) > len(names) or any(k not in values and k != "copy" for k in kwargs):
        raise TypeError(
            "to() received an invalid combination of arguments; expected (torch.device device = None, torch.dtype "
            "dtype = None, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None), "
            "(torch.dtype dtype, ...) or (Tensor tensor, ...)"
        )
    values.update(zip(names, args))
    values.update(kwargs)
    if values["device"] is not None:
        values["device"] = _device(values["device"])
    return tuple(values[name] for name in ("device", "dtype", "non_blocking", "memory_format"))


def _reported_name(module):
    # What the report calls a module: the public name of PyTorch's own classes, the class's full name of others.
    kind = type(module)
    ours = kind.__module__.startswith("torch.nn.modules")
    return f"torch.nn.{kind.__name__}" if ours else f"{kind.__module__}.{kind.__qualname__}"
