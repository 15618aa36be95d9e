"""Tensors from nothing: from Python data, from numbers, from ranges."""

import math
import warnings
from itertools import chain

import numpy as np

from msadapter_hook import foreign, prims
from msadapter_hook.tape import value_of
from msadapter_hook.tensor import Tensor, UntypedStorage, dtypes, from_array, from_storage, share_array, sparse
from msadapter_hook.tensor.device import current_device
from msadapter_hook.tensor.formats import in_channels_last, like_geometry

from . import arguments
from .devices import place
from .registry import composite, warn_once
from .schema import MISSING
from .sharing import from_dlpack, frombuffer

_OPTIONS = ("*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool "
            "requires_grad=False")
_LIKE = _OPTIONS.replace("bool requires_grad", "MemoryFormat? memory_format=None, bool requires_grad")


def finish(tensor, device=None, requires_grad=False, layout=None):
    """Apply the options that every factory takes."""
    if layout is not None and layout is not dtypes.strided:
        raise NotImplementedError(f"Could not run 'aten::fill_' for a tensor of layout {layout}: torch.zeros and torch.sparse_coo_tensor "
                                  "and its kin make such tensors; ask for torch.strided here")
    device = device or current_device()
    if device.type != "cpu":
        tensor = place(tensor, device)
    if requires_grad and not (tensor._dtype.is_floating_point or tensor._dtype.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return tensor.requires_grad_() if requires_grad else tensor


def _filled(size, value, dtype):
    for n in size:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(size)}")
    return from_array(np.zeros(size, dtype.numpy) if type(value) is int and value == 0
                      else np.full(size, value, dtype.numpy), dtype)


def empty_sparse(size, dtype=None, layout=dtypes.sparse_coo, device=None, requires_grad=False):
    """A sparse tensor of this size without elements."""
    dtype = arguments.scalar_type(dtype) if dtype is not None else dtypes.get_default_dtype()
    elements = finish(_filled((0,), 0, dtype), device and arguments.device(device), requires_grad)
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    return sparse.empty(size, layout, elements)


@composite(f"empty(int[] size, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor", forms="function out")
@composite(f"zeros(int[] size, {_OPTIONS}) -> Tensor", forms="function out")
def zeros(size, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False, memory_format=None):
    """Zeros. Source: PyTorch, torch.zeros."""
    if layout is not None and layout is not dtypes.strided:
        return empty_sparse(size, dtype, layout, device, requires_grad)
    if any(n < 0 for n in size):
        raise RuntimeError("zeros: Dimension size must be non-negative.")
    made = _filled(size, 0, dtype or dtypes.get_default_dtype())
    if memory_format in (dtypes.channels_last, dtypes.channels_last_3d):
        made = Tensor._make(made.value, made._dtype, in_channels_last(made._size, memory_format))
    elif memory_format is dtypes.preserve_format:
        raise RuntimeError("unsupported memory format Preserve")
    return finish(made, device, requires_grad, layout)


@composite(f"ones(int[] size, {_OPTIONS}) -> Tensor", forms="function out")
def ones(size, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """Ones. Source: PyTorch, torch.ones."""
    return finish(_filled(size, 1, dtype or dtypes.get_default_dtype()), device, requires_grad, layout)


@composite(f"full(int[1] size, Scalar fill_value, {_OPTIONS}) -> Tensor", forms="function out")
def full(size, fill_value, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """A constant; its type decides the dtype. Source: PyTorch, torch.full."""
    dtype = dtype or dtypes.scalar_dtype(fill_value)
    return finish(_filled(size, fill_value, dtype), device, requires_grad, layout)


def _like(self, value, dtype, device, requires_grad, layout, memory_format):
    dtype = dtype or self._dtype
    zeros = type(value) is int and value == 0
    array = np.zeros(self._size, dtype.numpy) if zeros else np.full(self._size, value, dtype.numpy)
    made = Tensor._make(value_of(array), dtype, like_geometry(self, memory_format))
    return finish(made, device or self.device, requires_grad, layout)


@composite(f"empty_like(Tensor self, {_LIKE}) -> Tensor", forms="function")
@composite(f"zeros_like(Tensor self, {_LIKE}) -> Tensor", forms="function")
def zeros_like(self, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None, requires_grad=False):
    """Zeros with the size and dtype of `self`. Source: PyTorch, torch.zeros_like."""
    return _like(self, 0, dtype, device, requires_grad, layout, memory_format)


@composite(f"ones_like(Tensor self, {_LIKE}) -> Tensor", forms="function")
def ones_like(self, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None, requires_grad=False):
    """Ones with the size and dtype of `self`. Source: PyTorch, torch.ones_like."""
    return _like(self, 1, dtype, device, requires_grad, layout, memory_format)


@composite(f"full_like(Tensor self, Scalar fill_value, {_LIKE}) -> Tensor", forms="function")
def full_like(self, fill_value, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None,
              requires_grad=False):
    """A constant with the size and dtype of `self`. Source: PyTorch, torch.full_like."""
    return _like(self, fill_value, dtype, device, requires_grad, layout, memory_format)


@composite(f"arange(Scalar end, {_OPTIONS}) -> Tensor", forms="function out")
@composite(f"arange.start(Scalar start, Scalar end, Scalar step=1, {_OPTIONS}) -> Tensor", forms="function out")
def arange(start, *rest):
    """Numbers from `start` up to but without `end`. Source: PyTorch, torch.arange."""
    options = rest[-5:]
    rest = rest[:-5]
    start, end, step = (start, *rest) if rest else (0, start, 1)
    dtype, layout, device, _, requires_grad = options
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (step > 0) != (end >= start) and end != start:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype is None:
        floats = any(isinstance(x, float) for x in (start, end, step))
        dtype = dtypes.get_default_dtype() if floats else dtypes.int64
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if dtype.is_floating_point:
        count = max(0, math.ceil((end - start) / step))
        array = (start + step * np.arange(count, dtype=np.float64)).astype(dtype.numpy)
    else:
        start, end, step = int(start), int(end), int(step)
        if step == 0:  # a fraction, cut off by an integral `out`
            raise ValueError("step must be nonzero")
        count = max(0, -((start - end) // step)) if step > 0 else max(0, -((end - start) // -step))
        array = (start + step * np.arange(count, dtype=np.int64)).astype(dtype.numpy)
    return finish(from_array(array, dtype), device, requires_grad, layout)


# ------------------------------------------------------------------------------------------------ from Python data
def from_data(data, dtype=None):
    """A new tensor with a copy of nested Python data, NumPy arrays or tensors; TypeError and ValueError as PyTorch."""
    if isinstance(data, Tensor) or foreign.is_tensor(data):
        made = foreign.tensor(data).detach().clone()
        return made if dtype is None else made.to(dtype)
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
        own = dtypes.from_numpy_dtype(array.dtype)
        return from_array(np.array(array, dtype=(dtype or own).numpy, order="C"), dtype or own)
    if hasattr(data, "__array__") and not isinstance(data, (list, tuple)):
        return from_data(np.asarray(data), dtype)
    if isinstance(data, (bool, int, float, complex)):
        dtype = dtype or dtypes.scalar_dtype(data)
        return from_array(_number(data, dtype), dtype)
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    if not _is_sequence(data):
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    if isinstance(data, (list, tuple)) and len(data) and isinstance(data[0], np.ndarray):
        if isinstance(data, list):
            warn_once("Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting "
                      "the list to a single numpy.ndarray with numpy.array() before converting to a tensor.")
        first = data[0]
        if all(isinstance(a, np.ndarray) and a.shape == first.shape and a.dtype == first.dtype for a in data):
            return from_data(np.stack(data), dtype)
    array = _plain_array(data, dtype)
    if array is not None:
        return from_array(array, dtype or dtypes.from_numpy_dtype(array.dtype))
    if foreign.TENSORS:
        data = foreign.tree(data)
    shape = _shape(data)
    flat = []
    _flatten(data, shape, 0, flat, ())
    if dtype is None:
        dtype = dtypes.get_default_dtype() if not flat else _common(flat)
    with np.errstate(all="ignore"):
        array = _array(flat, dtype).reshape(shape)
    return from_array(array, dtype)


def _plain_array(data, dtype):
    """The array of nested lists that hold Python's ints, floats and bools only, made in one go; None for all else."""
    level = data
    kinds = set(map(type, level))
    while kinds == {list} or kinds == {tuple}:
        level = list(chain.from_iterable(level))
        kinds = set(map(type, level))
    if not kinds or not kinds <= _PLAIN:
        return None
    try:
        array = np.array(data, np.float64 if float in kinds else np.int64 if int in kinds else np.bool_)
    except (ValueError, OverflowError):
        return None  # ragged or too large: the careful way finds the words for it
    if array.size != len(level):
        return None
    if dtype is None:
        with np.errstate(all="ignore"):
            return array.astype(dtypes.get_default_dtype().numpy) if float in kinds else array
    if dtype.numpy.kind in "iu":
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            return None
        low, high = int(array.min()), int(array.max())
        info = np.iinfo(dtype.numpy)
        if low < info.min or high > info.max:
            return None
    with np.errstate(all="ignore"):
        return array.astype(dtype.numpy)


_PLAIN = frozenset([int, float, bool])


def _number(x, dtype):
    """A Python number as a zero-dim array; RuntimeError or ValueError where `dtype` cannot hold it."""
    kind = dtype.numpy.kind
    if isinstance(x, complex) and not dtype.is_complex:
        raise RuntimeError(f"value cannot be converted to type {_short(dtype)} without overflow")
    if kind in "iu" and not isinstance(x, bool):
        if isinstance(x, int):
            _check_range(x, x, dtype)
            return np.array(x & (1 << dtype.itemsize * 8) - 1 if x < 0 and kind == "u" else x, dtype.numpy)
        if not np.isfinite(x) or not np.iinfo(dtype.numpy).min <= int(x) <= np.iinfo(dtype.numpy).max:
            raise RuntimeError(f"value cannot be converted to type {_short(dtype)} without overflow")
    with np.errstate(all="ignore"):
        return np.array(x).astype(dtype.numpy)


def _short(dtype):
    return str(dtype)[6:]


def _check_range(low, high, dtype):
    info = np.iinfo(dtype.numpy)
    if not -(2 ** 63) <= low or high >= 2 ** 63 and not (dtype.numpy == np.uint64 and high < 2 ** 64):
        raise ValueError("Overflow when unpacking long long")
    if high > info.max or low < info.min and not (dtype.numpy.kind == "u" and low >= -info.max):
        raise RuntimeError(f"value cannot be converted to type {_short(dtype)} without overflow")


def _c_name(dtype):
    return {"uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t",
            "float32": "float", "float64": "double"}.get(str(dtype)[6:], str(dtype)[6:])


def _is_sequence(x):
    """What nests: sequences and arrays. Tensors count as numbers."""
    if isinstance(x, (list, tuple, range)):
        return True
    if isinstance(x, (Tensor, str, bytes, dict, set)):
        return False
    if isinstance(x, np.ndarray):
        return x.ndim > 0
    return hasattr(x, "__len__") and hasattr(x, "__getitem__") and not isinstance(x, np.generic)


def _shape(data):
    shape = []
    while _is_sequence(data):
        if isinstance(data, np.ndarray):
            return tuple(shape) + data.shape
        shape.append(len(data))
        if not len(data):
            break
        data = data[0]
    if isinstance(data, str) and shape:
        raise ValueError("too many dimensions 'str'")
    return tuple(shape)


def _flatten(data, shape, depth, out, path):
    if isinstance(data, np.ndarray) and (data.ndim or depth == len(shape)):
        if data.shape != shape[depth:]:
            raise ValueError(f"expected sequence of length {shape[depth] if depth < len(shape) else 0} at dim {depth} "
                             f"(got {data.shape[0] if data.ndim else 0})")
        out.extend(data.reshape(-1))
        return
    if depth == len(shape):
        if isinstance(data, Tensor):
            if data.numel() != 1:
                if data._dtype.is_floating_point or data._dtype.is_complex:
                    raise ValueError("only one element tensors can be converted to Python scalars")
                raise TypeError("only integer tensors of a single element can be converted to an index")
            notice_scalar(data, 4)
            out.append(data.detach().cpu().reshape((1,)).numpy()[0])
            return
        if _is_sequence(data):
            whole = out and all(isinstance(x, (int, np.integer)) for x in out)
            raise TypeError("not a sequence" if not depth else f"'{type(data).__name__}' object cannot be interpreted "
                                                               "as an integer"
                            if whole else f"must be real number, not {type(data).__name__}")
        if isinstance(data, str) or data is None or not isinstance(data, (bool, int, float, complex, np.generic)):
            if hasattr(data, "__index__"):
                data = data.__index__()
            elif hasattr(data, "__float__"):
                data = float(data)
            elif isinstance(data, str):
                raise TypeError("new(): invalid data type 'str'")
            else:
                raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
        out.append(data)
        return
    if not _is_sequence(data):
        if isinstance(data, Tensor) and data.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        raise TypeError("not a sequence")
    if len(data) != shape[depth]:
        raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})")
    for item in data:
        _flatten(item, shape, depth + 1, out, path)


def _common(flat):
    kinds = {type(x) for x in flat}
    found = None
    for k in kinds:
        if issubclass(k, np.generic):
            d = dtypes.from_numpy_dtype(np.dtype(k))
        elif k is bool:
            d = dtypes.bool_
        elif issubclass(k, int):
            d = dtypes.int64
        elif issubclass(k, float):
            d = dtypes.get_default_dtype()
        else:
            d = dtypes.get_default_complex_dtype()
        found = d if found is None else dtypes.promote_types(found, d)
    return found


def _array(flat, dtype):
    kind = dtype.numpy.kind
    if kind in "iu" and flat:
        ints = [int(x) for x in flat]
        low, high = min(ints), max(ints)
        _check_range(low, high, dtype)
        return np.array(ints, np.int64).astype(dtype.numpy) if low < 0 else np.array(ints, dtype.numpy)
    if not dtype.is_complex and any(isinstance(x, (complex, np.complexfloating)) for x in flat):
        raise TypeError(f"can't convert complex to {'float' if dtype.is_floating_point else 'int'}")
    wide = np.complex128 if dtype.is_complex else np.float64 if dtype.is_floating_point else None
    return np.array(flat, wide).astype(dtype.numpy) if wide else np.array(flat).astype(dtype.numpy)


def _is_storage(data):
    return isinstance(data, UntypedStorage) or hasattr(data, "_untyped_storage")


def _over_storage(storage, dtype):
    """A flat tensor over a storage, whose memory it shares."""
    untyped = isinstance(storage, UntypedStorage)
    own = dtypes.int64 if untyped else storage.dtype
    if dtype is not None and not untyped and dtype is not own:
        raise RuntimeError(f"Expected a Storage of type {dtype.scalar_name} or an UntypedStorage, but got {own.scalar_name}")
    dtype = dtype or own
    memory = storage if untyped else storage._untyped_storage
    return from_storage(memory, dtype, (memory.nbytes() // dtype.itemsize,), (1,)).detach()


def tensor(data=MISSING, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A new tensor with a copy of `data`; over a storage, its memory. Source: PyTorch, torch.tensor."""
    if data is MISSING:
        raise TypeError('tensor() missing 1 required positional arguments: "data"')
    if isinstance(data, Tensor):
        warnings.warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                      "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
                      UserWarning, stacklevel=2)
    dtype = arguments.scalar_type(dtype) if dtype is not None else None
    device = arguments.device(device) if device is not None else (data.device if isinstance(data, Tensor) else None)
    made = _over_storage(data, dtype) if _is_storage(data) else from_data(data, dtype)
    return finish(made, device, requires_grad)


def notice_scalar(tensor, stacklevel):
    """Give notice of a tensor with a history that becomes a number of Python's, without it."""
    if tensor.requires_grad:
        warn_once("Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
                  "Consider using tensor.detach() first.", stacklevel)


def as_tensor(data, dtype=None, device=None):
    """`data` as a tensor, sharing memory where it can. Source: PyTorch, torch.as_tensor."""
    if isinstance(data, Tensor):
        return data.to(device=device or data.device, dtype=dtype or data.dtype)
    if isinstance(data, np.ndarray) and (dtype is None or dtype.numpy == data.dtype) and device in (None, "cpu"):
        return _shared(data)
    return tensor(data, dtype=dtype, device=device)


def _shared(array):
    """A tensor over the memory of an array; a notice where that must not be written to."""
    if not array.flags.writeable:
        warn_once("The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to this "
                  "tensor will result in undefined behavior. You may want to copy the array to protect its data or make it writable "
                  "before converting it to a tensor. This type of warning will be suppressed for the rest of this program.", 3)
    return share_array(array)


def from_numpy(array):
    """A tensor over the memory of a NumPy array. Source: PyTorch, torch.from_numpy."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    return _shared(array)


copy = prims.copy


@composite("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor")
def clone(self, memory_format=None):
    """A copy with memory of its own; gradients flow through. Source: PyTorch, torch.clone."""
    value = copy(self.value)
    if value.requires_grad:
        value.node.operator = "CloneBackward0"
    return Tensor._make(value, self._dtype, like_geometry(self, memory_format))


@composite("fill.Scalar(Tensor self, Scalar value) -> Tensor", forms="function out")
@composite("fill.Tensor(Tensor self, Tensor value) -> Tensor", forms="function out")
def fill(self, value):
    """A tensor of this one's size and dtype, every element `value`. Source: PyTorch, torch.fill."""
    made = Tensor._make(copy(self.value), self._dtype, like_geometry(self, None)).fill_(value)
    made._history.version.count = 0
    return made


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """A tensor from a tensor, an array, a number or nested data, sharing memory where it can. Source: PyTorch,
    torch.asarray."""
    if copy is False and isinstance(obj, np.generic):
        raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray.")
    if type(obj).__name__ == "PyCapsule":
        obj = from_dlpack(obj)
    if isinstance(obj, (bytes, bytearray, memoryview)):
        made = frombuffer(obj, dtype=dtype or dtypes.get_default_dtype())
        made = made.clone() if copy else made
    elif copy:
        made = tensor(obj, dtype=dtype, device=device) if not isinstance(obj, Tensor) else obj.detach().clone().to(
            device=device or obj.device, dtype=dtype or obj.dtype)
    else:
        made = as_tensor(obj, dtype=dtype, device=device)
        if copy is False and isinstance(obj, Tensor) and made is not obj:
            raise ValueError("unable to alias tensor")
    if isinstance(made, Tensor) and made is obj and not requires_grad and obj.requires_grad:
        return obj.detach()
    return made.requires_grad_() if requires_grad and not made.requires_grad else made
