# Modules and parameters in sequences and dictionaries: Sequential, ModuleList/Dict, ParameterList/Dict.
import operator
import warnings
from collections import OrderedDict
from collections import abc as container_abcs
from itertools import chain, islice

from ... import Tensor
from ..parameter import Parameter, is_lazy
from .module import Module, _addindent, _typename

__all__ = ["Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


class Container(Module):
    """Deprecated: a module with the given modules as children."""

    def __init__(self, **kwargs):
        super().__init__()
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. "
            "Subclass that instead.",
            FutureWarning,
            stacklevel=2,
        )
        for key, value in kwargs.items():
            self.add_module(key, value)


def _position(index, length):
    """`index` as a number in range(length), counted from the end when negative; IndexError beyond."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length if length else index


class Sequential(Module):
    """Modules applied one after another, given in order or as an OrderedDict. Source: PyTorch, torch.nn.Sequential."""

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for key, module in args[0].items():
                self.add_module(key, module)
        else:
            for index, module in enumerate(args):
                self.add_module(str(index), module)

    def _key(self, index):
        return next(islice(self._modules, _position(index, len(self)), None))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def __setitem__(self, index, module):
        setattr(self, self._key(index), module)

    def __delitem__(self, index):
        keys = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        for key in keys:
            delattr(self, key)
        # Names stay numbers without gaps.
        modules = list(self._modules.values())
        self._modules = OrderedDict((str(i), module) for i, module in enumerate(modules))

    def __len__(self):
        return len(self._modules)

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def pop(self, key):
        """Remove the module at `key` and return it."""
        module = self[key]
        del self[key]
        return module

    def __iadd__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        offset = len(self)
        for index, module in enumerate(other):
            self.add_module(str(index + offset), module)
        return self

    def __mul__(self, other):
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        # The same modules again, not copies.
        return Sequential(*(module for _ in range(other) for module in self))

    def __rmul__(self, other):
        return self.__mul__(other)

    def __imul__(self, other):
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        modules = list(self)
        for repetition in range(1, other):
            for index, module in enumerate(modules):
                self.add_module(str(index + repetition * len(modules)), module)
        return self

    def __dir__(self):
        return [key for key in super().__dir__() if not key.isdigit()]

    def __iter__(self):
        return iter(self._modules.values())

    def forward(self, input):
        for module in self:
            input = module(input)
        return input

    def append(self, module):
        """Add a module at the end; returns self."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index, module):
        """Put a module before position `index`; returns self. IndexError beyond the ends, TypeError for no module."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        length = len(self)
        if not -length <= index <= length:
            raise IndexError(f"Index out of range: {index}")
        if index < 0:
            index += length
        for i in range(length, index, -1):
            self._modules[str(i)] = self._modules[str(i - 1)]
        self._modules[str(index)] = module
        return self

    def extend(self, sequential):
        """Add modules at the end; returns self."""
        for module in sequential:
            self.append(module)
        return self


class ModuleList(Module):
    """A list of modules, registered. Source: PyTorch, torch.nn.ModuleList."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self += modules

    def _get_abs_string_index(self, index):
        return str(_position(index, len(self)))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._get_abs_string_index(index)]

    def __setitem__(self, index, module):
        setattr(self, self._get_abs_string_index(index), module)

    def __delitem__(self, index):
        keys = list(range(len(self)))[index] if isinstance(index, slice) else [self._get_abs_string_index(index)]
        for key in keys:
            delattr(self, str(key))
        modules = list(self._modules.values())
        self._modules = OrderedDict((str(i), module) for i, module in enumerate(modules))

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        return type(self)(list(chain(self, other)))

    def __repr__(self):
        # Neighbours that print alike are printed once, with their range and count.
        if len(self) == 0:
            return self._get_name() + "()"
        groups = []
        for index, text in enumerate(map(repr, self)):
            if groups and groups[-1][2] == text:
                groups[-1][1] = index
            else:
                groups.append([index, index, text])
        lines = []
        for first, last, text in groups:
            label = f"({first}): " if first == last else f"({first}-{last}): {last - first + 1} x "
            lines.append(_addindent(label + text, 2))
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"

    def __dir__(self):
        return [key for key in super().__dir__() if not key.isdigit()]

    def insert(self, index, module):
        """Put a module before position `index`."""
        for i in range(len(self), index, -1):
            self._modules[str(i)] = self._modules[str(i - 1)]
        self._modules[str(index)] = module

    def pop(self, key):
        """Remove the module at `key` and return it."""
        module = self[key]
        del self[key]
        return module

    def append(self, module):
        """Add a module at the end; returns self."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        """Add modules from an iterable; returns self. TypeError when it is none."""
        if not isinstance(modules, container_abcs.Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        offset = len(self)
        for index, module in enumerate(modules):
            self.add_module(str(offset + index), module)
        return self


class ModuleDict(Module):
    """A dictionary of modules, registered, in order of insertion. Source: PyTorch, torch.nn.ModuleDict."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key):
        """Remove the module at `key` and return it."""
        module = self[key]
        del self[key]
        return module

    def keys(self):
        return self._modules.keys()

    def items(self):
        return self._modules.items()

    def values(self):
        return self._modules.values()

    def update(self, modules):
        """Add modules from a mapping or an iterable of pairs; TypeError/ValueError for anything else."""
        for key, module in _pairs("ModuleDict", modules, sort=False):
            self[key] = module


# How PyTorch's messages spell the two classes.
_UPDATERS = {"ModuleDict": "ModuleDict", "ParameterDict": "ParametersDict"}


def _pairs(owner, values, sort):
    if not isinstance(values, container_abcs.Iterable):
        raise TypeError(
            f"{_UPDATERS[owner]}.update should be called with an iterable of key/value pairs, "
            f"but got {type(values).__name__}"
        )
    if isinstance(values, container_abcs.Mapping) or hasattr(values, "items"):
        pairs = list(values.items())
        # A plain mapping of parameters is taken in the order of its keys, an ordered one as it is.
        return sorted(pairs) if sort and not isinstance(values, (OrderedDict, ParameterDict)) else pairs
    pairs = []
    for place, pair in enumerate(values):
        if not isinstance(pair, container_abcs.Iterable):
            raise TypeError(f"{owner} update sequence element #{place} should be Iterable; is{type(pair).__name__}")
        pair = list(pair)
        if len(pair) != 2:
            raise ValueError(f"{owner} update sequence element #{place} has length {len(pair)}; 2 is required")
        pairs.append(pair)
    return pairs


def _parameter_line(key, value, kind_of):
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    size = "x".join(str(n) for n in value.size()) if not is_lazy(value) else ""
    place = f" ({value.device})" if value.device.type != "cpu" else ""
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"  ({key}): {kind} containing: [{kind_of(value)} of size {size}{place}]"


class ParameterList(Module):
    """A list of parameters, registered; tensors become parameters, other values stay. Source: PyTorch,
    torch.nn.ParameterList.
    """

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(getattr(self, str(i)) for i in range(*index.indices(len(self))))
        return getattr(self, str(_position(index, len(self))))

    def __setitem__(self, index, param):
        # Assignment of a tensor makes a parameter of it; a parameter given stays the same object.
        if isinstance(param, Tensor) and not isinstance(param, Parameter):
            param = Parameter(param)
        setattr(self, str(_position(index, len(self))), param)

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, parameters):
        return self.extend(parameters)

    def __dir__(self):
        return [key for key in super().__dir__() if not key.isdigit()]

    def append(self, value):
        """Add a value at the end; returns self."""
        self._size += 1
        self[len(self) - 1] = value
        return self

    def extend(self, values):
        """Add values from an iterable; returns self. TypeError when it is none, or a tensor."""
        if not isinstance(values, container_abcs.Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def extra_repr(self):
        return "\n".join(_parameter_line(i, value, lambda t: t.dtype) for i, value in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters, registered; tensors become parameters, other values stay. Source: PyTorch,
    torch.nn.ParameterDict.
    """

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key):
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key):
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key, value):
        self._keys[key] = None
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, self._key_to_attr(key), value)

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def copy(self):
        """A new ParameterDict with the same values."""
        return ParameterDict(OrderedDict((key, self[key]) for key in self._keys))

    def setdefault(self, key, default=None):
        """Value at `key`, put there if missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        """Remove all values."""
        for key in self._keys.copy():
            del self[key]

    def pop(self, key):
        """Remove the value at `key` and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Remove the last pair and return it."""
        key, _ = self._keys.popitem()
        # The pair is looked up, and its value deleted, once the key is back in place.
        self._keys[key] = None
        value = self[key]
        del self[key]
        return key, value

    def get(self, key, default=None):
        """Value at `key`, else `default`."""
        return self[key] if key in self else default

    def fromkeys(self, keys, default=None):
        """A new ParameterDict with `default` at each of `keys`."""
        return ParameterDict((key, default) for key in keys)

    def keys(self):
        return self._keys.keys()

    def items(self):
        return ((key, self[key]) for key in self._keys)

    def values(self):
        return (self[key] for key in self._keys)

    def update(self, parameters):
        """Add values from a mapping or an iterable of pairs; TypeError/ValueError for anything else."""
        for key, value in _pairs("ParameterDict", parameters, sort=True):
            self[key] = value

    def extra_repr(self):
        return "\n".join(_parameter_line(key, value, _typename) for key, value in self.items())

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other):
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other):
        merged = other.copy()
        merged.update(self)
        return merged

    def __ior__(self, other):
        self.update(other)
        return self
