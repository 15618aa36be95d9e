# Tensors and submodules of a module by dotted path: get, set, swap, many at a time.
from ... import Tensor

_MISSING = object()


def set_tensor(module, name, tensor):
    """Put a tensor (or None) where the module has parameter, buffer or attribute `name`."""
    swap_tensor(module, name, tensor, allow_missing=True)


def swap_tensor(module, name, tensor, allow_missing=False):
    """Put `tensor` at `name` of the module itself and give what was there.

    The tensor goes straight into the table that held the old one, so that any tensor may stand for a parameter.
    """
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')
    if not (tensor is None or tensor is _MISSING or isinstance(tensor, Tensor)):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    table = next((t for t in (module._parameters, module._buffers) if name in t), None)
    if table is not None:
        original = table[name]
        if tensor is _MISSING:
            del table[name]
        else:
            table[name] = tensor
        return original
    if hasattr(module, name):
        original = getattr(module, name)
        if not isinstance(original, Tensor):
            raise TypeError(f"attribute `{name}`: {original} is not an instance of torch.Tensor")
    elif allow_missing:
        original = _MISSING
    else:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if tensor is _MISSING:
        delattr(module, name)
    else:
        setattr(module, name, tensor)
    return original


def swap_submodule(module, name, submodule):
    """Put `submodule` at `name` of the module itself and give what was there."""
    if name not in module._modules:
        raise KeyError(f"{module._get_name()} has no submodule `{name}`")
    original = module._modules[name]
    module._modules[name] = submodule
    return original


class NamedMemberAccessor:
    """Access to the tensors and submodules of `module` by dotted path."""

    def __init__(self, module):
        self.module = module
        self.memo = {}

    def get_submodule(self, name):
        if not name:
            return self.module
        if name not in self.memo:
            self.memo[name] = self.module.get_submodule(name)
        return self.memo[name]

    def _owner(self, name):
        path, _, last = name.rpartition(".")
        return self.get_submodule(path), last

    def swap_submodule(self, path, value):
        owner, last = self._owner(path)
        return swap_submodule(owner, last, value)

    def get_tensor(self, name):
        owner, last = self._owner(name)
        try:
            tensor = getattr(owner, last)
        except AttributeError:
            raise AttributeError(f"{owner._get_name()} has no attribute `{last}`") from None
        if not isinstance(tensor, Tensor) and tensor is not None:
            raise TypeError(f"{tensor} is not an instance of torch.Tensor")
        return tensor

    def set_tensor(self, name, value):
        owner, last = self._owner(name)
        set_tensor(owner, last, value)

    def del_tensor(self, name):
        owner, last = self._owner(name)
        if not hasattr(owner, last):
            raise AttributeError(f"{owner._get_name()} has no attribute `{last}`")
        delattr(owner, last)

    def swap_tensor(self, name, value, allow_missing=False):
        owner, last = self._owner(name)
        return swap_tensor(owner, last, value, allow_missing)

    def get_tensors(self, names):
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names, values):
        names, values = list(names), list(values)
        if len(names) != len(values):
            raise AssertionError(f"got {len(names)} names but {len(values)} values")
        for name, value in zip(names, values):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors):
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names):
        for name in names:
            self.del_tensor(name)

    def swap_tensors(self, names, values, allow_missing=False):
        names, values = list(names), list(values)
        if len(names) != len(values):
            raise AssertionError(f"got {len(names)} names but {len(values)} values")
        return [self.swap_tensor(name, value, allow_missing) for name, value in zip(names, values)]

    def swap_tensors_dict(self, named_tensors, allow_missing=False):
        """Swap all; gives what was there and the names that were missing. On an error everything is put back."""
        before, missing = {}, []
        try:
            for name, tensor in named_tensors.items():
                original = self.swap_tensor(name, tensor, allow_missing=True)
                if original is _MISSING:
                    missing.append(name)
                before[name] = original
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        except Exception:
            for name, tensor in before.items():
                self.swap_tensor(name, tensor, allow_missing=True)
            raise
        return before, missing

    def check_keys(self, keys):
        """(names of the module missing among `keys`, keys the module does not have)."""
        keys = set(keys)
        names = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(names - keys), sorted(keys - names)

    def named_parameters(self, remove_duplicate=True):
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate=True):
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate=True):
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate=True):
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)
