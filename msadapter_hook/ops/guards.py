"""Methods that are no operators, made visible: to `__torch_function__`, and to `__torch_dispatch__` as overloads of
`torch.ops.aten`. Where neither a mode nor a subclass takes part they are called straight away.
"""

import functools

from msadapter_hook.tensor import Tensor, dtypes

from . import aten, dispatch, overrides
from .creation import from_data
from .dispatch import emit
from .indexing import _as_index, _normalise
from .tables import METHODS, OPERATORS, call

_END = 2 ** 63 - 1


def _special(given):
    """Whether an argument, or one in it, is of a subclass that may want a say."""
    if type(given) in (tuple, list):
        return any(getattr(t, "_overrides", False) for t in given)
    return getattr(given, "_overrides", False)


def guarded(method, seen=None):
    """`method` of Tensor, asking those who take part first. `seen` is what is done where somebody dispatches (None: the method)."""

    @functools.wraps(method)
    def guard(self, *args, **kwargs):
        if overrides.entered or self._overrides or args and _special(args[0]):
            if overrides.state.modes:
                return overrides.call_mode(guard, (self, *args), kwargs)
            tensors = list(dispatch.tensors_in((self, args, kwargs)))
            if not overrides.state.disabled and any(t._asks for t in tensors):
                return overrides.call_override(guard, tensors, (self, *args), kwargs)
            if seen is not None and not self._compound and dispatch.active(tensors):
                return seen(self, *args, **kwargs)
        return method(self, *args, **kwargs)

    guard.__guards__ = True
    return guard


# ------------------------------------------------------------------------------------------------ indexing
def _index(t):
    """An index as a tensor, whatever it was given as."""
    return t if isinstance(t, Tensor) else _as_index(t)


def _windows(self, key):
    """(the view that numbers, slices, None and Ellipsis show, index tensors by dimension)."""
    key = _normalise(key)
    taken = 0
    for item in key:
        if item is None or item is Ellipsis or isinstance(item, bool):
            continue
        tensor = isinstance(item, (Tensor, list, tuple, range)) or hasattr(item, "ndim") and item.ndim
        mask = _index(item) if tensor else None
        taken += mask.dim() if mask is not None and mask._dtype in (dtypes.bool_, dtypes.uint8) else 1
    if taken > self.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
    out, d, index = self, 0, {}
    for item in key:
        if item is None:
            out, d = out.unsqueeze(d), d + 1
        elif item is Ellipsis:
            d += self.ndim - taken
        elif isinstance(item, bool):
            out = out.unsqueeze(d)
            index[d] = call("tensor", item) if "tensor" in OPERATORS else _as_index([item])
            d += 1
        elif isinstance(item, slice):
            if item != slice(None):
                step = [] if item.step in (None, 1) else [int(item.step)]
                low = 0 if item.start is None else int(item.start)
                out = emit("slice.Tensor", out, d, low, _END if item.stop is None else int(item.stop), *step)
            d += 1
        elif isinstance(item, (Tensor, list, tuple, range)) or hasattr(item, "ndim") and item.ndim:
            item = _index(item)
            if item.dim() == 0 and item._dtype not in (dtypes.bool_, dtypes.uint8):
                out = out.select(d, int(item.item()))
                continue
            index[d] = item
            d += item.dim() if item._dtype in (dtypes.bool_, dtypes.uint8) else 1
        else:
            out = out.select(d, item.__index__())
    return out, [index.get(i) for i in range(max(index, default=-1) + 1)]


def _getitem(self, key):
    out, index = _windows(self, key)
    if index:
        return emit("index.Tensor", out, index)
    return emit("alias", out) if out is self else out


def _setitem(self, key, new):
    if not isinstance(new, Tensor):
        new = emit("lift_fresh", from_data(new, self._dtype))
    out, index = _windows(self, key)
    if index:
        emit("index_put_", out, index, new)
    else:
        while new.ndim > out.ndim and new._size[0] == 1:
            new = new.squeeze(0)
        out.copy_(new)


# ------------------------------------------------------------------------------------------------ conversion and filling
def copied(self, dtype, device, copy, memory_format):
    """Another dtype, device or memory format of a tensor that somebody watches."""
    options = {}
    if dtype is not None and dtype is not self._dtype:
        options["dtype"] = dtype
    if device is not None and device != self.device:
        options["device"] = device
    if memory_format is not None and memory_format is not dtypes.preserve_format and not self.is_contiguous(memory_format=memory_format):
        options["memory_format"] = memory_format
    if not options and not copy:
        return self
    if dtype is not None:
        options["dtype"] = dtype
    return emit("_to_copy", self, **options)


def _by_name(name):
    """A method under its name in `torch.ops.aten`, whose overload the arguments choose."""

    def seen(self, *args, **kwargs):
        chosen, given, rest = aten.chosen(name, (self, *args), kwargs)
        return dispatch.call(dispatch.overload_of(name, chosen), given, rest)

    return seen


def _tolist(self):
    if type(self)._dispatches:
        raise RuntimeError(f".tolist() is not supported for tensor subclasses, got {type(self).__name__}")
    return _tolist.plain(self)


def _numpy(self, **force):
    if type(self)._dispatches:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")
    return _numpy.plain(self, **force)


def module_load(self, other, assign=False):
    """What a module's parameter `self` is swapped with when `other` is loaded into it. Source: PyTorch, Tensor.module_load."""
    return other.detach() if assign else self.copy_(other).detach()


_IN_PLACE = ("normal_ uniform_ bernoulli_ exponential_ geometric_ cauchy_ log_normal_ random_ copy_ fill_ zero_ detach_ index_put_ t_ "
             "squeeze_ unsqueeze_ transpose_ resize_ set_").split()
_PLAIN = "to cpu cuda type bfloat16 bool byte cdouble cfloat chalf char double float half int long short new_tensor".split()


def install():
    """Put the guards before the methods of Tensor."""
    Tensor.module_load = guarded(module_load)
    _tolist.plain, _numpy.plain = Tensor.tolist, Tensor.numpy
    for name, seen in {"__getitem__": _getitem, "__setitem__": _setitem, "item": None, "tolist": _tolist, "numpy": _numpy,
                       **{n: _by_name(n) for n in _IN_PLACE}, **dict.fromkeys(_PLAIN)}.items():
        method = Tensor.__dict__[name]
        made = guarded(method, seen)
        setattr(Tensor, name, made)
        if METHODS.get(name) is method:
            METHODS[name] = made
