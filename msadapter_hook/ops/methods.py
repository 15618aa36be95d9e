"""What a tensor does besides calling operators: numbers in and out, conversion, Python's operators, copying."""

import numpy as np

from msadapter_hook import foreign, prims
from msadapter_hook.tape.recording import state
from msadapter_hook.tensor import Tensor, cast_value, detached, dtypes, geometry
from msadapter_hook.tensor import view as moves
from msadapter_hook.tensor.device import device as Device
from msadapter_hook.tensor.formats import like_geometry

from . import arguments, dispatch, expanded, overrides
from .creation import copy as copy_value
from .creation import from_data, from_numpy, notice_scalar
from .devices import place
from .guards import copied
from .indexing import _fit, getitem, setitem
from .refusals import CONTROL_FLOW, ITEM, NO_DATA, refuse_mapped
from .registry import composite, plain
from .tables import METHODS, OPERATORS
from .views import flat_moves, whole_history
from .writing import check_inplace, refuse_overlap


# ------------------------------------------------------------------------------------------------ out to Python
def item(self):
    """The one element as a Python number. Source: PyTorch, Tensor.item."""
    if self.numel() != 1:
        raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
    refuse_mapped(self, ITEM)
    if (overrides.entered or self._dispatches) and dispatch.active(self):
        return dispatch.emit("_local_scalar_dense", self)
    if self.is_meta:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")
    found = detached(self).numpy.reshape(()).item()
    return float(found) if self._dtype.is_floating_point else found


def tolist(self):
    """Nested lists of Python numbers. Source: PyTorch, Tensor.tolist."""
    refuse_mapped(self, NO_DATA)
    array = detached(self).numpy
    if self._dtype.is_floating_point and array.dtype.kind != "f":
        array = array.astype(np.float32)
    return array.tolist()


def numpy(self, *, force=False):
    """A NumPy array over the tensor's memory. Source: PyTorch, Tensor.numpy."""
    refuse_mapped(self, NO_DATA)
    if force:
        return self.detach().cpu().resolve_conj().resolve_neg().numpy()
    if state.enabled and self.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if self.is_meta:
        raise TypeError("can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")
    if self._dtype.numpy.kind == "V" or self._dtype is dtypes.complex32:
        raise TypeError(f"Got unsupported ScalarType {self._dtype.scalar_name}")
    if self._moves or self._history.parent is not None:
        if self.is_conj():
            raise RuntimeError("Can't call numpy() on Tensor that has conjugate bit set. Use tensor.resolve_conj().numpy() instead.")
        if self.is_neg():
            raise RuntimeError("Can't call numpy() on Tensor that has negative bit set. Use tensor.resolve_neg().numpy() instead.")
    self._history.storage.lent = True
    return self._strided_numpy()


def asnumpy(self):
    """A NumPy array over the tensor's memory, history or not. Source: MindSpore, Tensor.asnumpy (the functional route)."""
    return self.detach().cpu().numpy()


def __array__(self, dtype=None, copy=None):
    array = self.numpy()
    return array if dtype is None else array.astype(dtype, copy=False)


def __array_wrap__(self, array, context=None, return_scalar=False):
    """What a NumPy function makes of a tensor is a tensor over the same memory, truth values as uint8. Source: PyTorch, Tensor."""
    array = np.asarray(array)
    return from_numpy(array.astype(np.uint8) if array.dtype == bool else array)


def __bool__(self):
    if self.numel() == 0:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
    if self.numel() > 1:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    refuse_mapped(self, CONTROL_FLOW)
    return bool(item(self))


def __len__(self):
    if self.ndim == 0:
        raise TypeError("len() of a 0-d tensor")
    return self._size[0]


def __iter__(self):
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def __reversed__(self):
    """Flipped along the first dimension. Source: PyTorch, Tensor.__reversed__."""
    return self if self.ndim == 0 else self.flip(0)


def __contains__(self, element):
    element = foreign.tensor(element)
    if isinstance(element, (Tensor, int, float, complex, bool)):
        return bool((self == element).any().item())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")


def __index__(self):
    if self.numel() != 1 or self._dtype.is_floating_point or self._dtype.is_complex:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    refuse_mapped(self, ITEM)
    return int(item(self))


def __format__(self, spec):
    if self.dim() == 0 and type(self) is Tensor and not self.is_meta:
        return item(self).__format__(spec)
    return object.__format__(self, spec)


def _number(self, name):
    """The one element, for Python's `name(tensor)`."""
    if self.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    refuse_mapped(self, ITEM, 2)
    found = item(self)
    if name is not None and isinstance(found, complex):
        if found.imag:
            raise RuntimeError(f"value cannot be converted to type {name} without overflow")
        return found.real
    return found


def __float__(self):
    notice_scalar(self, 3)
    return float(_number(self, "double"))


def __int__(self):
    return int(_number(self, "int64_t"))


def __complex__(self):
    notice_scalar(self, 3)
    return complex(_number(self, None))


# ------------------------------------------------------------------------------------------------ conversion
def convert(self, dtype=None, device=None, copy=False, memory_format=None):
    """The tensor in another dtype, device or memory format; itself where nothing changes."""
    if (overrides.entered or self._dispatches) and dispatch.active(self):
        return copied(self, dtype, device, copy, memory_format)
    if self._compound:
        return self._converted(dtype, device, copy)
    dtype = dtype or self._dtype
    made = self
    if dtype is not self._dtype:
        value = cast_value(self.value, dtype)
        if value is self.value:
            value = copy_value(value)
        if value.requires_grad and value.node.operator is None:
            value.node.operator = "ToCopyBackward0"
        made = Tensor._make(value, dtype, like_geometry(self, memory_format))
    elif memory_format not in (None, dtypes.preserve_format) and not self.is_contiguous(memory_format=memory_format) or copy:
        made = self.clone(memory_format=memory_format or dtypes.preserve_format)
    if device is not None and device != made.device:
        made = place(made, device)
    return made


def to(self, *args, **kwargs):
    """Another dtype, device or memory format. Source: PyTorch, Tensor.to."""
    dtype, device = kwargs.pop("dtype", None), kwargs.pop("device", None)
    copy, non_blocking = kwargs.pop("copy", False), kwargs.pop("non_blocking", False)
    memory_format = kwargs.pop("memory_format", None)
    other = kwargs.pop("other", None)
    if kwargs:
        raise TypeError(f"to() received an invalid combination of arguments - got unexpected keyword {next(iter(kwargs))!r}")
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
    elif rest and (rest[0] is None or isinstance(rest[0], (Device, str, int)) and not isinstance(rest[0], bool)):
        device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], dtypes.dtype) or rest[0] in (float, int, bool, complex)):
            dtype = rest.pop(0)
    elif rest and (isinstance(rest[0], dtypes.dtype) or rest[0] in (float, int, bool, complex)):
        dtype = rest.pop(0)
    for name in ("non_blocking", "copy"):
        if rest:
            if not isinstance(rest[0], bool):
                given = ", ".join(arguments.type_name(a) for a in args)
                raise TypeError(f"to() received an invalid combination of arguments - got ({given})")
            value = rest.pop(0)
            copy = value if name == "copy" else copy
            non_blocking = value if name == "non_blocking" else non_blocking
    if rest:
        raise TypeError("to() received an invalid combination of arguments")
    if other is not None:
        dtype, device = dtype or other._dtype, device if device is not None else other.device
    if dtype is not None:
        dtype = arguments.scalar_type(dtype)
    if device is not None:
        device = arguments.device(device)
    return convert(self, dtype, device, copy, memory_format)


def type_(self, dtype=None, non_blocking=False, **kwargs):
    """The type's name, or the tensor in another type. Source: PyTorch, Tensor.type."""
    if dtype is None:
        prefix = "torch." if self.device.type == "cpu" else f"torch.{self.device.type}."
        return f"{prefix}{self._dtype.scalar_name}Tensor"
    return convert(self, named_type(dtype))


def named_type(dtype):
    """The dtype that `Tensor.type` is given: itself, by name, or a class of tensors. ValueError for a name of none."""
    if isinstance(dtype, str):
        name = dtype.rsplit(".", 1)[-1].removesuffix("Tensor")
        found = [t for t in dtypes.ALL if t.scalar_name == name]
        if not found:
            raise ValueError(f"invalid type: '{dtype}'")
        return found[0]
    if dtype is Tensor:
        return dtypes.get_default_dtype()
    own = getattr(dtype, "dtype", None)
    if isinstance(own, dtypes.dtype):
        return own
    try:
        return arguments.scalar_type(dtype)
    except TypeError:
        raise TypeError("dtype must be a type, str, or dtype object") from None


def _caster(dtype):
    def cast(self, memory_format=None):
        return convert(self, dtype, memory_format=memory_format)

    return cast


for _name, _dtype in {"float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
                      "int": dtypes.int32, "long": dtypes.int64, "short": dtypes.int16, "char": dtypes.int8,
                      "byte": dtypes.uint8, "bool": dtypes.bool_, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128,
                      "chalf": dtypes.complex32}.items():
    METHODS[_name] = _caster(_dtype)
    METHODS[_name].__name__ = _name


def cpu(self, memory_format=None):
    return convert(self, device=Device("cpu"), memory_format=memory_format)


@composite("contiguous(Tensor self, *, MemoryFormat memory_format=torch.contiguous_format) -> Tensor", forms="method")
def contiguous(self, memory_format=dtypes.contiguous_format):
    """Itself where contiguous, else a contiguous copy. Source: PyTorch, Tensor.contiguous."""
    memory_format = dtypes.contiguous_format if isinstance(memory_format, str) else memory_format
    if memory_format is dtypes.preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return self if self.is_contiguous(memory_format=memory_format) else self.clone(memory_format=memory_format)


# ------------------------------------------------------------------------------------------------ in place without a functional form
def copy_(self, src, non_blocking=False):
    """The elements of `src`, broadcast and cast. Source: PyTorch, Tensor.copy_."""
    src = src if isinstance(src, Tensor) else foreign.tensor(src)
    if not isinstance(src, Tensor):
        raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {arguments.type_name(src)}")
    if src._compound:
        names = [t.type() if t.layout in (dtypes.strided, dtypes.sparse_coo) else repr(t.layout) for t in (self, src)]
        raise RuntimeError(f"copy_() between dense and sparse Tensors is not implemented! Found self type = {names[0]} and src type = "
                           f"{names[1]}")
    check_inplace(self)
    refuse_overlap(self, src)
    value = cast_value(src.value, self._dtype)
    if value.shape != self._size:
        value = _fit(value, self._size)
    elif src._dtype is self._dtype:  # a value of its own: memory may be visible from outside, and hooks and leaves are of one tensor
        value = copy_value(value)
    if value.requires_grad and state.enabled and self.requires_grad:
        value = prims.overwrite(self.value, value)
    if value.requires_grad and value.node is not None and value.node.operator is None:
        value.node.operator = "CopyBackwards"
    self._write(value)
    return self


def fill_(self, value):
    """Every element set to one number. Source: PyTorch, Tensor.fill_."""
    if not isinstance(value, Tensor) and not arguments.is_number(value):
        wrong = f"\n      didn't match because some of the arguments have invalid types: (!{type(value).__name__}!)"
        raise TypeError(f"fill_() received an invalid combination of arguments - got ({type(value).__name__}), but expected one of:\n"
                        f" * (Tensor value){wrong}\n * (Number value){wrong}\n")
    if not isinstance(value, Tensor) and 0 in self._stride and expanded.is_expanded(self):
        fill_(expanded.once(self), value)
        return self
    check_inplace(self)
    if isinstance(value, Tensor):
        if value.dim():
            raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.dim()} dimensions.")
        new = prims.broadcast_to(cast_value(value.value, self._dtype), shape=tuple(self._size))
    elif self.is_meta:
        new = self.value.detach()
    else:
        new = from_data(np.full(self._size, from_data(arguments.scalar(value), self._dtype).value.numpy)).value
    name = f"FillBackward{3 if isinstance(value, Tensor) else 2}"
    if new.requires_grad:
        new.node.operator = name
    self._write(new)
    _name_overwrite(self, name)
    return self


def _name_overwrite(tensor, name):
    """What was written over a whole tensor that had a gradient shows the name of the operator that wrote."""
    node = tensor._history.value.node
    if node is not None and node.primitive is prims.overwrite:
        node.operator = name


def zero_(self):
    """Every element set to zero. Source: PyTorch, Tensor.zero_."""
    fill_(self, 0)
    _name_overwrite(self, "ZeroBackward0")
    return self


plain(fill_)
plain(zero_)


def resize_(self, *size, memory_format=None):
    """Another size over the storage, which grows where needed. Source: PyTorch, Tensor.resize_."""
    size = arguments.integers(size[0] if len(size) == 1 and not hasattr(size[0], "__index__") else size)
    if self.requires_grad and state.enabled:
        raise RuntimeError("cannot resize variables that require grad")
    if size == tuple(self._size):
        return self
    storage = self._history.storage
    itemsize = storage.root.value.dtype.itemsize
    need = -(-(self._offset + geometry.numel(size)) * self._dtype.itemsize // itemsize)
    if need > geometry.numel(storage.root.size):
        if storage.lent:
            raise RuntimeError("Trying to resize storage that is not resizable")
        storage.grow(need)
    stride = geometry.contiguous_stride(size) if memory_format in (None, dtypes.contiguous_format) else (
        geometry.channels_last_stride(size))
    version, history = self._history.version, storage.root
    if version is not history.version:  # `.data` of something: the same memory, its own counter
        history = whole_history(self._history)
    steps, _, length = flat_moves(history, self._dtype)
    self._history, self._moves = history, steps + (moves.AsStrided(size, stride, self._offset, (length,), (1,)),)
    history.views = True
    self._size, self._stride = geometry.Size(size), stride
    self._value, self._generation = None, -1
    version.count += 1
    return self


# ------------------------------------------------------------------------------------------------ Python's operators
def _forward(name):
    entry = OPERATORS[name]

    def method(self, other):
        if not isinstance(other, (Tensor, int, float, complex)) and not arguments.is_number(other):
            if isinstance(other, np.ndarray):
                return entry(self, from_data(other))
            if not foreign.is_tensor(other):
                return NotImplemented
            other = foreign.tensor(other)
        return entry(self, other)

    return method


def _divided_by(self, other):
    return OPERATORS["mul"](OPERATORS["reciprocal"](self), other)


#: Reflected forms that PyTorch computes otherwise than by exchanging the operands; `3 / x` rounds twice there.
_REFLECTED = {"add": lambda self, other: OPERATORS["add"](self, other), "mul": lambda self, other: OPERATORS["mul"](self, other),
              "sub": lambda self, other: OPERATORS["rsub"](self, other), "div": _divided_by}


def _reflected(name):
    entry = OPERATORS[name]
    compute = _REFLECTED.get(name) or (lambda self, other: entry(other, self))

    def method(self, other):
        if not isinstance(other, (Tensor, int, float, complex)) and not arguments.is_number(other):
            return NotImplemented
        return compute(self, other)

    return method


def _updating(name):
    def method(self, other):
        if not isinstance(other, (Tensor, int, float, complex, np.ndarray)) and not arguments.is_number(other):
            if not foreign.is_tensor(other):
                return NotImplemented
            other = foreign.tensor(other)
        return getattr(self, name)(other)

    return method


def _invert(self):
    if self._dtype.is_floating_point or self._dtype.is_complex:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return OPERATORS["bitwise_not"](self)


def apply_(self, callable):
    """Every element replaced by what `callable` makes of it. Source: PyTorch, Tensor.apply_."""
    return _mapped(self, None, None, lambda x, *_: callable(x), "apply_")


def map_(self, tensor, callable):
    """Every element replaced by callable(element, element of `tensor`), which broadcasts. Source: PyTorch, Tensor.map_."""
    return _mapped(self, tensor, None, lambda x, y, _: callable(x, y), "map_")


def map2_(self, x, y, callable):
    """Every element replaced by callable(element, of `x`, of `y`). Source: PyTorch, Tensor.map2_."""
    return _mapped(self, x, y, callable, "map2_")


def _mapped(self, x, y, callable, name):
    if any(t is not None and t.requires_grad for t in (self, x, y)):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    others = []
    for t in (x, y):
        if t is not None and t._dtype is not self._dtype:
            raise TypeError(f"{name}: expected a tensor of dtype {self._dtype}, not {t._dtype}")
        others.append([None] * self.numel() if t is None else t.expand(self._size).reshape(-1).tolist())
    made = [callable(*items) for items in zip(self.reshape(-1).tolist(), *others)]
    return self.copy_(from_data(made, self._dtype).reshape(self._size))


def install_operators():
    """Attach Python's operators to Tensor, from the operators registered."""
    for python, name in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide",
                         "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
                         "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift"}.items():
        if name not in OPERATORS:
            continue
        setattr(Tensor, f"__{python}__", _forward(name))
        setattr(Tensor, f"__r{python}__", _reflected(name))
        if name + "_" in METHODS:
            setattr(Tensor, f"__i{python}__", _updating(name + "_"))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Tensor, f"__{name}__", _forward(name))
    Tensor.__hash__ = object.__hash__
    Tensor.__neg__ = lambda self: OPERATORS["neg"](self)
    Tensor.__pos__ = lambda self: self
    Tensor.__abs__ = lambda self: OPERATORS["abs"](self)
    if "bitwise_not" in OPERATORS:
        Tensor.__invert__ = _invert
    Tensor.__getitem__, Tensor.__setitem__ = getitem, setitem
    for method in (item, tolist, numpy, asnumpy, __array__, __array_wrap__, __bool__, __len__, __iter__, __reversed__,
                   __contains__, __index__, __format__, __float__,
                   __int__, __complex__, apply_, map_, map2_, to, cpu, copy_, fill_, zero_, resize_):
        setattr(Tensor, method.__name__, method)
    Tensor.type = type_
    Tensor.__array_priority__ = 1000
