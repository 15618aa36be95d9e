# The unpickler behind weights_only=True: a small pickle machine of its own that knows the opcodes of protocol 2 and
# calls nothing but what is on its list. It never imports a module because a file names it.
import pickle
import struct
import warnings
from collections import Counter, OrderedDict
from functools import lru_cache
from io import BytesIO
from pickle import UnpicklingError

_ROOT = __package__
_BLOCKED_MODULES = ("sys", "os", "posix", "nt")
_DEFAULT_PROTOCOL = 2
# pickles of protocol 2 name builtins as Python 2 did
_PY2_NAMES = {("__builtin__", name): ("builtins", name) for name in (
    "set", "complex", "bytearray", "range", "frozenset", "slice", "object", "getattr", "eval", "exec", "print", "list",
    "dict", "tuple", "int", "float", "str",
)}  # fmt: skip
_PY2_NAMES[("__builtin__", "xrange")] = ("builtins", "range")
_PY2_NAMES[("__builtin__", "long")] = ("builtins", "int")
_PY2_NAMES[("__builtin__", "unicode")] = ("builtins", "str")
_PY2_NAMES[("copy_reg", "_reconstructor")] = ("copyreg", "_reconstructor")

_marked_safe_globals = set()


def _add_safe_globals(safe_globals):
    _marked_safe_globals.update(safe_globals)


def _get_safe_globals():
    return list(_marked_safe_globals)


def _clear_safe_globals():
    _marked_safe_globals.clear()


def _remove_safe_globals(globals_to_remove):
    _marked_safe_globals.difference_update(globals_to_remove)


class _safe_globals:
    """Allows `safe_globals` within the block."""

    def __init__(self, safe_globals):
        self.safe_globals = safe_globals

    def __enter__(self):
        self.added = set(self.safe_globals) - _marked_safe_globals
        _add_safe_globals(self.added)

    def __exit__(self, *exc):
        _remove_safe_globals(self.added)


def _get_user_allowed_globals():
    """Full name -> object, of what the user has declared safe."""
    named = {}
    for entry in _marked_safe_globals:
        if isinstance(entry, tuple):
            if len(entry) != 2:
                raise ValueError(f"Expected tuple of length 2 (global, str of callable full path), but got: {entry}")
            if not isinstance(entry[1], str):
                raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {entry}")
            named[entry[1]] = entry[0]
        else:
            named[f"{entry.__module__}.{entry.__qualname__}"] = entry
    return named


# What is allowed, but must not be called with anything: a file could ask for an endless bytearray.
def _encode(text, encoding):
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise UnpicklingError(f"_codecs.encode is allowed for latin1 only, got {encoding!r}")
    return text.encode("latin1")


def _bytearray(*args):
    if not args:
        return bytearray()
    if isinstance(args[0], (bytes, bytearray)) and len(args) == 1:
        return bytearray(args[0])
    if isinstance(args[0], str) and len(args) == 2 and args[1] in ("latin-1", "latin1"):
        return bytearray(args[0], "latin1")
    raise UnpicklingError("bytearray is allowed from bytes only")


@lru_cache(maxsize=1)
def _get_allowed_globals():
    """Full name -> object, of what checkpoints may contain by default."""
    import sys

    from msadapter_hook.tensor import Size, Tensor, device, dtypes

    from . import _tensor, _utils, serialization, storage
    from .nn.parameter import Parameter

    allowed = {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "builtins.set": set,
        "builtins.complex": complex,
        "builtins.bytearray": _bytearray,
        "_codecs.encode": _encode,
        "torch.nn.parameter.Parameter": Parameter,
        "torch.serialization._get_layout": serialization._get_layout,
        "torch.Size": Size,
        "torch.Tensor": Tensor,
        "torch.device": device,
        "torch._tensor._rebuild_from_type_v2": _tensor._rebuild_from_type_v2,
        "torch.storage.TypedStorage": storage.TypedStorage,
        "torch.storage.UntypedStorage": storage.UntypedStorage,
    }
    for name, dtype in dtypes.DTYPES.items():
        allowed[f"torch.{name}"] = dtype
    for name in storage.LEGACY_STORAGES:
        allowed[f"torch.{name}"] = allowed[f"torch.cuda.{name}"] = serialization.StorageType(name)
    for name in (
        "_rebuild_parameter",
        "_rebuild_parameter_with_state",
        "_rebuild_qtensor",
        "_rebuild_tensor",
        "_rebuild_tensor_v2",
        "_rebuild_tensor_v3",
        "_rebuild_sparse_tensor",
        "_rebuild_meta_tensor_no_storage",
        "_rebuild_nested_tensor",
        "_rebuild_wrapper_subclass",
        "_rebuild_device_tensor_from_numpy",
        "_rebuild_device_tensor_from_cpu_tensor",
    ):
        allowed[f"torch._utils.{name}"] = getattr(_utils, name)
    root = sys.modules[_ROOT]
    for kind in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool"):
        cls = getattr(root, f"{kind}Tensor", None)
        if cls is not None:
            allowed[f"torch.{kind}Tensor"] = cls
    return allowed


def _read_globals(data):
    """The names of all globals that a pickle stream mentions, in order; nothing is executed."""
    import pickletools

    strings, found = [], []
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name == "GLOBAL":
            found.append(_modern_name(*argument.split(" ", 1)))
        elif opcode.name == "STACK_GLOBAL":
            found.append(_modern_name(*strings[-2:]))
        elif isinstance(argument, str):
            strings.append(argument)
    return found


def _modern_name(module, name):
    module, name = _PY2_NAMES.get((module, name), (module, name))
    if module == "__builtin__":
        module = "builtins"
    return f"{module}.{name}"


def get_globals_in_pkl(file):
    """The set of full names of globals in a pickle file."""
    return set(_read_globals(file))


class Unpickler:
    """Loads one pickle. UnpicklingError for everything that is not allowed or not well formed."""

    def __init__(self, file, *, encoding="bytes"):
        self.encoding = encoding
        self._read = file.read
        self._readline = file.readline
        self.memo = {}
        self.proto = -1

    def persistent_load(self, pid):
        """What a persistent id stands for; the loader sets its own."""
        raise UnpicklingError("unsupported persistent id encountered")

    def load(self):
        """The object."""
        try:
            return self._run()
        except UnpicklingError:
            raise
        except (
            IndexError,
            KeyError,
            ValueError,
            TypeError,
            AttributeError,
            struct.error,
            EOFError,
            OverflowError,
            UnicodeError,
            MemoryError,
            RecursionError,
        ) as error:
            raise UnpicklingError(f"the pickle is not well formed ({type(error).__name__}: {error})") from error

    # -- reading --------------------------------------------------------------------------------------------------
    def _take(self, count):
        data = self._read(count)
        if len(data) != count:
            raise EOFError("unexpected end of the pickle")
        return data

    def _unpack(self, form, count):
        return struct.unpack(form, self._take(count))[0]

    def _line(self):
        line = self._readline()
        if not line.endswith(b"\n"):
            raise EOFError("unexpected end of the pickle")
        return line[:-1].decode("utf-8")

    def _text(self, raw):
        return raw if self.encoding == "bytes" else raw.decode(self.encoding)

    # -- the machine ----------------------------------------------------------------------------------------------
    def _run(self):
        self.stack, self.metastack = [], []
        dispatch = _DISPATCH
        while True:
            opcode = self._read(1)
            if not opcode:
                raise EOFError("unexpected end of the pickle")
            if opcode == pickle.STOP:
                return self.stack.pop()
            action = dispatch.get(opcode[0])
            if action is None:
                raise UnpicklingError(f"Unsupported operand {opcode[0]}")
            action(self)

    def _pop_mark(self):
        items = self.stack
        self.stack = self.metastack.pop()
        return items

    def _proto(self):
        self.proto = self._take(1)[0]
        if self.proto != _DEFAULT_PROTOCOL:
            warnings.warn(
                f"Detected pickle protocol {self.proto} in the checkpoint, which was not the default pickle protocol "
                f"used by `torch.load` ({_DEFAULT_PROTOCOL}). The weights_only Unpickler might not support all "
                "instructions implemented by this protocol, please file an issue for adding support if you encounter "
                "this.",
                stacklevel=4,
            )

    def _global(self):
        module, name = self._line(), self._line()
        full = _modern_name(module, name)
        module = full.rpartition(".")[0] if "." not in name else module
        self.stack.append(self._find(module, full))

    def _find(self, module, full):
        if _ROOT != "torch" and full.startswith(_ROOT + "."):
            full = "torch" + full[len(_ROOT) :]
        allowed = _get_allowed_globals()
        if full in allowed:
            return allowed[full]
        user = _get_user_allowed_globals()
        if full in user:
            return user[full]
        if module.split(".", 1)[0] in _BLOCKED_MODULES:
            raise UnpicklingError(f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked.")
        shown = full[len("builtins.") :] if full.startswith("builtins.") else full
        raise UnpicklingError(
            f"Unsupported global: GLOBAL {shown} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{shown}])` or the `torch.serialization.safe_globals([{shown}])` "
            "context manager to allowlist this global if you trust this class/function."
        )

    def _callable(self, func):
        for known in (_get_allowed_globals().values(), _get_user_allowed_globals().values()):
            if any(func is entry for entry in known):
                return True
        return False

    def _newobj(self):
        args = self.stack.pop()
        cls = self.stack.pop()
        from msadapter_hook.tensor import Tensor

        from .nn.parameter import Parameter

        if cls in (OrderedDict, Counter, set) and args == ():
            self.stack.append(cls())
        elif cls is Parameter or cls is Tensor:
            self.stack.append(cls(*args))
        elif any(cls is entry for entry in _get_user_allowed_globals().values()):
            self.stack.append(cls.__new__(cls, *args))
        else:
            raise UnpicklingError(f"Can not create new object for arbitrary type {cls}")

    def _reduce(self):
        args = self.stack.pop()
        func = self.stack[-1]
        if not self._callable(func):
            raise UnpicklingError(f"Trying to call reduce for unrecognized function {func}")
        if func is set and args and not isinstance(args[0], (list, tuple, set)):
            raise UnpicklingError("set is allowed from a list only")
        self.stack[-1] = func(*args)

    def _build(self):
        state = self.stack.pop()
        target = self.stack[-1]
        from msadapter_hook.tensor import Tensor

        from .nn.parameter import Parameter

        if type(target) is Tensor:
            target.set_(*state)
        elif type(target) is Parameter:
            target.__setstate__(state)
        elif type(target) in (OrderedDict, Counter):
            target.__dict__.update(state)
        elif any(type(target) is entry for entry in _get_user_allowed_globals().values()):
            _set_state(target, state)
        else:
            raise UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, "
                f"but got {type(target)}"
            )

    def _extend(self, items):
        target = self.stack[-1]
        if type(target) is list:
            target.extend(items)
        elif any(type(target) is entry for entry in _get_user_allowed_globals().values()):
            for item in items:
                target.append(item)
        else:
            raise UnpicklingError(f"Can only append to lists, but got {type(target)}")

    def _set_items(self, items):
        target = self.stack[-1]
        if type(target) not in (dict, OrderedDict, Counter) and not any(
            type(target) is entry for entry in _get_user_allowed_globals().values()
        ):
            raise UnpicklingError(f"Can only set items of dictionaries, but got {type(target)}")
        if len(items) % 2:
            raise UnpicklingError("odd number of items for SETITEMS")
        for i in range(0, len(items), 2):
            target[items[i]] = items[i + 1]

    def _set_item(self):
        value = self.stack.pop()
        key = self.stack.pop()
        self._set_items([key, value])

    def _persid(self):
        pid = self.stack.pop()
        if type(pid) is not tuple and not isinstance(pid, int):
            raise UnpicklingError(f"persistent_load id must be tuple or int, but got {type(pid)}")
        if type(pid) is tuple and len(pid) > 0 and self._plain(pid[0]) != "storage":
            raise UnpicklingError(f"Only persistent_load of storage is allowed, but got {pid[0]}")
        self.stack.append(self.persistent_load(pid))

    @staticmethod
    def _plain(text):
        return text.decode("ascii") if isinstance(text, bytes) else text

    def _long1(self):
        self.stack.append(int.from_bytes(self._take(self._take(1)[0]), "little", signed=True))

    def _tuple_of(self, count):
        items = tuple(self.stack[-count:])
        if len(items) != count:
            raise IndexError("stack is too short")
        self.stack[-count:] = [items]


def _set_state(target, state):
    setter = getattr(target, "__setstate__", None)
    if setter is not None:
        setter(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        target.__dict__.update(state)
    for key, value in (slots or {}).items():
        setattr(target, key, value)


def _push(make):
    def action(self):
        self.stack.append(make(self))

    return action


def _mark(self):
    self.metastack.append(self.stack)
    self.stack = []


def _tuple(self):
    items = self._pop_mark()
    self.stack.append(tuple(items))


def _appends(self):
    items = self._pop_mark()
    self._extend(items)


def _setitems(self):
    items = self._pop_mark()
    self._set_items(items)


def _append(self):
    item = self.stack.pop()
    self._extend([item])


def _memoize(form, count):
    def action(self):
        self.memo[self._unpack(form, count)] = self.stack[-1]

    return action


def _recall(form, count):
    return _push(lambda self: self.memo[self._unpack(form, count)])


def _dup_text(form, count):
    return _push(lambda self: self._text(self._take(self._unpack(form, count))))


_DISPATCH = {
    opcode[0]: action
    for opcode, action in {
        pickle.PROTO: Unpickler._proto,
        pickle.GLOBAL: Unpickler._global,
        pickle.NEWOBJ: Unpickler._newobj,
        pickle.REDUCE: Unpickler._reduce,
        pickle.BUILD: Unpickler._build,
        pickle.APPEND: _append,
        pickle.APPENDS: _appends,
        pickle.SETITEM: Unpickler._set_item,
        pickle.SETITEMS: _setitems,
        pickle.MARK: _mark,
        pickle.TUPLE: _tuple,
        pickle.TUPLE1: lambda self: self._tuple_of(1),
        pickle.TUPLE2: lambda self: self._tuple_of(2),
        pickle.TUPLE3: lambda self: self._tuple_of(3),
        pickle.NONE: _push(lambda self: None),
        pickle.NEWFALSE: _push(lambda self: False),
        pickle.NEWTRUE: _push(lambda self: True),
        pickle.EMPTY_TUPLE: _push(lambda self: ()),
        pickle.EMPTY_LIST: _push(lambda self: []),
        pickle.EMPTY_DICT: _push(lambda self: {}),
        pickle.EMPTY_SET: _push(lambda self: set()),
        pickle.BININT: _push(lambda self: self._unpack("<i", 4)),
        pickle.BININT1: _push(lambda self: self._take(1)[0]),
        pickle.BININT2: _push(lambda self: self._unpack("<H", 2)),
        pickle.BINFLOAT: _push(lambda self: self._unpack(">d", 8)),
        pickle.BINUNICODE: _push(lambda self: str(self._take(self._unpack("<I", 4)), "utf-8", "surrogatepass")),
        pickle.SHORT_BINSTRING: _dup_text("<B", 1),
        pickle.BINSTRING: _dup_text("<I", 4),
        pickle.LONG1: Unpickler._long1,
        pickle.BINPUT: _memoize("<B", 1),
        pickle.LONG_BINPUT: _memoize("<I", 4),
        pickle.BINGET: _recall("<B", 1),
        pickle.LONG_BINGET: _recall("<I", 4),
        pickle.BINPERSID: Unpickler._persid,
    }.items()
}


def load(file, *, encoding="ASCII"):
    """One pickle from a file."""
    return Unpickler(file, encoding=encoding).load()


def loads(data, *, encoding="ASCII"):
    """One pickle from bytes."""
    return load(BytesIO(data), encoding=encoding)
