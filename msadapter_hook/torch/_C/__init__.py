"""torch._C: the few names of PyTorch's compiled module that Python programs reach for."""

import enum as _enum

from msadapter_hook.ops import complex as _complex
from msadapter_hook.ops import dispatch as _dispatch
from msadapter_hook.ops import overrides as _overrides
from msadapter_hook.ops.overrides import DisableTorchFunctionSubclass
from msadapter_hook.tensor import Size, Tensor, device, dtypes
from msadapter_hook.tensor.core import DISABLED as _disabled_torch_function_impl
from msadapter_hook.tensor.core import DISABLED_DISPATCH, TensorBase, TensorMeta
from msadapter_hook.tensor.generator import Generator

DisableTorchFunction = DisableTorchFunctionSubclass
_TensorMeta = type(Tensor)
dtype, layout, memory_format = dtypes.dtype, dtypes.layout, dtypes.memory_format


class DispatchKey(_enum.Enum):
    """Names of the ways in which PyTorch chooses a kernel. Only registrations ask for them: see torch.library."""

    Undefined, CPU, CUDA, XPU, MPS, Meta, PrivateUse1 = 0, 1, 2, 3, 4, 5, 6
    Autograd, AutogradCPU, AutogradCUDA, ADInplaceOrView = 7, 8, 9, 10
    AutocastCPU, AutocastCUDA, AutocastXPU, AutocastMPS = 11, 12, 13, 14
    CompositeImplicitAutograd, CompositeExplicitAutograd, BackendSelect, Python, Functionalize = 15, 16, 17, 18, 19


class DispatchKeySet:
    """A set of keys. Source: PyTorch, torch._C.DispatchKeySet."""

    def __init__(self, *keys):
        self._keys = frozenset(keys)

    def __or__(self, other):
        return DispatchKeySet(*(self._keys | other._keys))

    def __and__(self, other):
        return DispatchKeySet(*(self._keys & other._keys))

    def has(self, key):
        return key in self._keys

    def add(self, key):
        return DispatchKeySet(*self._keys, key)

    def remove(self, key):
        return DispatchKeySet(*(self._keys - {key}))


class _ExcludeDispatchKeyGuard:
    """Context: kernels of the keys given are passed over; of those, only the autograd keys and autocast have a meaning here."""

    def __init__(self, keys):
        names = {key.name for key in keys._keys}
        self._autograd = bool(names & {"Autograd", "AutogradCPU", "AutogradCUDA"})
        self._autocast = [n for n in names if n.startswith("Autocast")]

    def __enter__(self):
        from .._ops import below_autograd
        from ..amp import autocast

        self._inner = [below_autograd()] if self._autograd else []
        self._inner += [autocast(name[len("Autocast"):].lower(), enabled=False) for name in self._autocast]
        for one in self._inner:
            one.__enter__()

    def __exit__(self, *exc):
        for one in reversed(self._inner):
            one.__exit__(*exc)


def _AutoDispatchBelowAutograd():
    from .._ops import below_autograd

    return below_autograd()


def _log_api_usage_once(name):
    """Nothing is logged."""


def _get_tracing_state():
    """None: no trace is being recorded. Source: PyTorch, torch._C._get_tracing_state."""
    return None


def _are_functorch_transforms_active():
    return False


def _get_accelerator(check=None):
    return device("cpu")


def _jit_set_profiling_executor(on):
    """There is no compiler of scripts: what it was is False."""
    return False


_jit_set_profiling_mode = _jit_set_profiling_executor


def _jit_clear_class_registry():
    """There are no compiled classes to forget."""


class _TorchFunctionState(_enum.Enum):
    """Who is asked by `__torch_function__`. Source: PyTorch, torch._C._TorchFunctionState."""

    ENABLED, SUBCLASSES_DISABLED, ALL_DISABLED = 0, 1, 2


def _get_torch_function_state():
    return _TorchFunctionState.SUBCLASSES_DISABLED if _overrides.state.disabled else _TorchFunctionState.ENABLED


def _is_torch_function_enabled():
    return not _overrides.state.disabled


def _len_torch_function_stack():
    """How many function modes are entered in this thread."""
    return len(_overrides.state.modes)


def _DisableFuncTorch():
    """Context: there is no stack of interpreters of torch.func to set aside."""
    import contextlib

    return contextlib.nullcontext()


def _set_conj(tensor, conjugated):
    """Let a complex tensor read its memory conjugated, or as it lies. Source: PyTorch, torch._C._set_conj."""
    if not tensor.is_complex():
        if conjugated:
            raise RuntimeError("_set_conj: only complex tensors have a conjugate")
        return
    _complex.set_waiting(tensor, conjugated=conjugated)


def _set_neg(tensor, negated):
    """Let a tensor read its memory negated, or as it lies. Source: PyTorch, torch._C._set_neg."""
    _complex.set_waiting(tensor, negated=negated)


_DisableTorchDispatch = _dispatch.disabled
_disabled_torch_dispatch_impl = DISABLED_DISPATCH
_TensorBase, _TensorMeta = TensorBase, TensorMeta


def _dispatch_isTensorSubclassLike(tensor):
    """Whether a tensor, or a dispatch mode, does its own thing with operators. Source: PyTorch, torch._C."""
    return type(tensor)._dispatches or bool(_dispatch.state.modes)


_push_on_torch_dispatch_stack = _dispatch.push_mode
_pop_torch_dispatch_stack = _dispatch.pop_mode


def _len_torch_dispatch_stack():
    """How many dispatch modes are entered in this thread."""
    return len(_dispatch.state.modes)


def _get_dispatch_stack_at(index):
    """A dispatch mode of this thread, 0 the outermost."""
    return _dispatch.state.modes[index]


def _get_privateuse1_backend_name():
    """The name of a backend that nobody has registered. Source: PyTorch, torch._C."""
    return "privateuseone"


from . import _nn
