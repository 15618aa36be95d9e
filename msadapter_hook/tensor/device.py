"""`device`: where a tensor lives. The names only; which of them can compute is the backend's concern."""

import re
import threading
import warnings

# In the order PyTorch names them in its error; `npu` is what its Ascend plugin adds.
DEVICE_TYPES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)
_EXTRA_TYPES = ("npu",)
_KNOWN = frozenset(DEVICE_TYPES + _EXTRA_TYPES)
_STRING = re.compile(r"([A-Za-z_]+)(?::(0|[1-9][0-9]*))?")

_SIGNATURES = (
    "device() received an invalid combination of arguments - got {got}, but expected one of:\n{why}"
    " * (str type, int index = -1)\n"
)


class _Overrides(threading.local):
    """The devices that `with device(...)` put in force in this thread, innermost last."""

    def __init__(self):
        self.stack = []


_overrides = _Overrides()
_default = None  # set_default_device's choice, process-wide in effect; None means the CPU


def _wrong_arguments(args, kwargs):
    """The TypeError for a call that fits no signature, with PyTorch's account of what was given."""
    given = [_type_name(a) for a in args] + [f"{k}={_type_name(v)}" for k, v in kwargs.items()]
    got = "(" + ", ".join(given) + (", " if kwargs else "") + ")"
    why = " * (torch.device device)\n"
    if kwargs and len(args) + len(kwargs) == 1:
        why += f"      didn't match because some of the keywords were incorrect: {', '.join(kwargs)}\n"
    elif len(args) == 1 and not kwargs:
        why += f"      didn't match because some of the arguments have invalid types: (!{_type_name(args[0], True)}!)\n"
    return TypeError(_SIGNATURES.format(got=got, why=why))


def _type_name(value, elements=False):
    name = type(value).__name__
    if elements and isinstance(value, (list, tuple)):
        inner = ", ".join(type(v).__name__ for v in value)
        if isinstance(value, list):
            return f"{name} of [{inner}]"
        return f"{name} of ({inner},)" if len(value) == 1 else f"{name} of ({inner})"
    return name


def _parse(text):
    """(type, index or None) of a device string; RuntimeError in PyTorch's words."""
    if not text:
        raise RuntimeError("Device string must not be empty")
    found = _STRING.fullmatch(text)
    if found is None:
        raise RuntimeError(f"Invalid device string: '{text}'")
    kind, index = found.groups()
    if kind not in _KNOWN:
        raise RuntimeError(
            f"Expected one of {', '.join(DEVICE_TYPES)} device type at start of device string: {kind}"
        )
    if kind == "mkldnn":
        warnings.warn(
            "'mkldnn' is no longer used as device type. So torch.device('mkldnn') will be deprecated and removed in "
            "the future. Please use other valid device types instead.", UserWarning, stacklevel=3,
        )
    if index is None:
        return kind, None
    number = int(index)
    if number > 2**31 - 1:
        raise RuntimeError(f"Could not parse device index '{index}' in device string '{text}'")
    return kind, number


class device:
    """A device type with an optional index: `device("cuda:1")`, `device("cuda", 1)`, `device(type="cuda", index=1)`.

    Immutable, hashable; as a context manager it is the device of factories in the block.
    RuntimeError for a string that names none. Source: PyTorch, torch.device."""

    __slots__ = ("index", "type")
    __module__ = "torch"

    def __new__(cls, *args, **kwargs):
        if len(args) == 1 and not kwargs:
            only = args[0]
            if isinstance(only, str):
                return _interned(*_parse(only))
            if isinstance(only, device):
                return only
            if isinstance(only, bytes):
                return _interned(*_parse(only.decode()))
            if isinstance(only, int) and not isinstance(only, bool):
                if only < 0:
                    raise RuntimeError("Device index must not be negative")
                return _accelerator(only)
            raise _wrong_arguments(args, kwargs)
        if not args and tuple(kwargs) == ("device",):
            return device(kwargs["device"])
        return _from_pair(args, kwargs)

    def __init_subclass__(cls, **kwargs):
        raise TypeError("type 'torch.device' is not an acceptable base type")

    def __setattr__(self, name, value):
        if name in ("type", "index"):
            raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")
        raise AttributeError(f"'torch.device' object has no attribute '{name}'")

    def __eq__(self, other):
        if not isinstance(other, device):
            return NotImplemented
        return self.type == other.type and self.index == other.index

    def __hash__(self):
        return hash((self.type, self.index))

    def __lt__(self, other):
        raise TypeError("comparison not implemented")

    __le__ = __gt__ = __ge__ = __lt__

    def __repr__(self):
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self):
        return (device, (self.type,) if self.index is None else (self.type, self.index))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __enter__(self):
        _overrides.stack.append(self)
        return self

    def __exit__(self, *exc):
        _overrides.stack.pop()
        return False


_made = {}


def _interned(kind, index):
    """The one instance for (type, index), so that the common comparison is by identity."""
    key = (kind, index)
    found = _made.get(key)
    if found is None:
        found = object.__new__(device)
        object.__setattr__(found, "type", kind)
        object.__setattr__(found, "index", index)
        found = _made.setdefault(key, found)
    return found


def _from_pair(args, kwargs):
    """device(type, index=None) in any spelling."""
    if len(args) > 2 or bool(args) == ("type" in kwargs) or set(kwargs) - {"type", "index"}:
        raise _wrong_arguments(args, kwargs)
    kind = args[0] if args else kwargs["type"]
    index = args[1] if len(args) == 2 else kwargs.get("index")
    if not isinstance(kind, str):
        if len(args) + len(kwargs) == 1:
            raise _wrong_arguments(args, kwargs)
        name = "torch.device" if isinstance(kind, device) else type(kind).__name__
        raise TypeError(f"device(): argument 'type' (position 1) must be str, not {name}")
    if index is not None and (not isinstance(index, int) or isinstance(index, bool)):
        raise TypeError(f"device(): argument 'index' (position 2) must be int, not {type(index).__name__}")
    parsed, inner = _parse(kind)
    if inner is not None and (len(args) + len(kwargs) > 1 or kwargs):
        raise RuntimeError(
            f"type (string) must not include an index because index was passed explicitly: {kind}"
        )
    if index is not None and index < 0:
        raise RuntimeError("Device index must not be negative")
    return _interned(parsed, inner if index is None else index)


accelerator_type = None  # the device type a bare index means; the backend names it where there is one


def _accelerator(index):
    if accelerator_type is None:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return _interned(accelerator_type, index)


def set_accelerator(kind):
    """Say which device type `device(3)` means (None: no accelerator)."""
    global accelerator_type
    accelerator_type = kind


cpu = _interned("cpu", None)
meta = _interned("meta", None)


def current_device():
    """The device of factories without `device=`: the innermost `with device(...)`, else the default device."""
    if _overrides.stack:
        return _overrides.stack[-1]
    return cpu if _default is None else _default


def set_default_device(target):
    """Set the default device (a device, a string, or None for the CPU). Source: PyTorch, torch.set_default_device."""
    global _default
    _default = None if target is None else device(target)
