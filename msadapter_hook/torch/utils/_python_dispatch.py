# torch.utils._python_dispatch: modes that see every operator below autograd, and helpers for tensor subclasses.
import contextlib

from msadapter_hook.ops import dispatch as _dispatch

from .. import Tensor
from .._aten import schema_of
from .._ops import OpOverload


class TorchDispatchMode:
    """A context in which every operator call of the thread asks `__torch_dispatch__(func, types, args, kwargs)` of this object, `func`
    being an overload of `torch.ops.aten`. While it answers it is not entered. Source: PyTorch,
    torch.utils._python_dispatch.TorchDispatchMode."""

    def __init__(self, _dispatch_key=None):
        if _dispatch_key is not None:
            raise NotImplementedError("TorchDispatchMode(_dispatch_key=...): there are no infrastructure modes here; leave it out")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _dispatch.push_mode(self)
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        _dispatch.pop_mode()

    @classmethod
    def push(cls, *args, **kwargs):
        """An object of the class, made by calling it. Source: PyTorch, TorchDispatchMode.push."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls):
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that does what would be done without it. Source: PyTorch, torch.utils._python_dispatch.BaseTorchDispatchMode."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode():
    """The innermost mode of the thread, or None."""
    return _dispatch.state.modes[-1] if _dispatch.state.modes else None


def _get_current_dispatch_mode_stack():
    """The modes of the thread, outermost first."""
    return list(_dispatch.state.modes)


def is_in_torch_dispatch_mode(include_infra_modes=True):
    """Whether a mode is entered in this thread."""
    return bool(_dispatch.state.modes)


def _push_mode(mode):
    _dispatch.push_mode(mode)


def _pop_mode(k=None):
    return _dispatch.pop_mode()


@contextlib.contextmanager
def _pop_mode_temporarily(k=None):
    """Context without the innermost mode, which it gives."""
    mode = _dispatch.pop_mode()
    try:
        yield mode
    finally:
        _dispatch.push_mode(mode)


@contextlib.contextmanager
def _disable_current_modes():
    """Context without any mode; gives those that were entered."""
    modes = _dispatch.state.modes
    with _dispatch.without_modes():
        yield list(modes)


# ------------------------------------------------------------------------------------------------ subclasses made of tensors
def is_traceable_wrapper_subclass(t):
    """Whether `t` is of a subclass that can be taken apart (`__tensor_flatten__`) and made again (`__tensor_unflatten__`)."""
    return isinstance(t, Tensor) and type(t) is not Tensor and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def is_traceable_wrapper_subclass_type(t):
    """The same of a class."""
    return issubclass(t, Tensor) and t is not Tensor and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def transform_subclass(t, callback, outer_size=None, outer_stride=None):
    """A subclass like `t`, each tensor inside replaced by callback(name, tensor). Source: PyTorch,
    torch.utils._python_dispatch.transform_subclass."""
    names, context = t.__tensor_flatten__()
    inside = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    made = type(t).__tensor_unflatten__(inside, context, size, stride)
    if tuple(made.shape) != tuple(size):
        raise AssertionError(f"Expected return value from {type(t)}__tensor_unflatten__() to have shape equal to {size}, but got: "
                             f"{made.shape}")
    return made


def return_and_correct_aliasing(func, args, kwargs, out):
    """What a handler gives for `func`: the argument itself where the operator writes it, else `out`.

    Views of wrapper subclasses share what the tensors inside share. Source: PyTorch,
    torch.utils._python_dispatch.return_and_correct_aliasing.
    """
    if not isinstance(func, OpOverload):
        raise AssertionError(f"expected an overload of torch.ops, got {func}")
    schema = schema_of(func)
    arguments = schema.arguments
    sets = [frozenset() if r.alias_info is None or not r.alias_info.is_write else r.alias_info.before_set for r in schema.returns]

    def written(which, given):
        for i, a in enumerate(arguments):
            if a.is_write and a.alias_info.before_set & which:
                return args[i] if i < len(args) else kwargs[a.name]
        return given

    if not any(sets):
        return out
    if len(sets) == 1:
        return written(sets[0], out)
    return type(out)([written(s, o) if s else o for s, o in zip(sets, out)])


__all__ = ["BaseTorchDispatchMode", "TorchDispatchMode", "is_traceable_wrapper_subclass", "return_and_correct_aliasing",
           "transform_subclass"]
