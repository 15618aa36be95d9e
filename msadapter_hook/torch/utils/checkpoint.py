"""torch.utils.checkpoint: trade computation for memory. A region is computed again as a whole: there is no early stop, so
`early_stop` and `set_checkpoint_early_stop` change nothing that a function without side effects shows."""

import contextlib as _contextlib
import enum as _enum
import warnings as _warnings

from msadapter_hook.autograd.checkpoint import CheckpointError
from msadapter_hook.autograd.checkpoint import checkpoint_region as _checkpoint_region
from msadapter_hook.errors import unsupported as _unsupported
from msadapter_hook.ops.autocast import state as _autocast_state

from .. import is_grad_enabled

__all__ = ["CheckpointError", "CheckpointPolicy", "DefaultDeviceType", "SelectiveCheckpointContext", "check_backward_validity",
           "checkpoint", "checkpoint_sequential", "create_selective_checkpoint_contexts", "detach_variable", "get_device_states",
           "noop_context_fn", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states"]


def noop_context_fn():
    """Two contexts that do nothing."""
    return _contextlib.nullcontext(), _contextlib.nullcontext()


def checkpoint(function, *args, use_reentrant=None, context_fn=noop_context_fn, determinism_check="default", debug=False,
               early_stop=True, **kwargs):
    """`function(*args)`, whose inner values are computed again in backward. Source: PyTorch,
    torch.utils.checkpoint.checkpoint. ValueError for unknown keywords with `use_reentrant=True`."""
    if use_reentrant is None:
        _warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling "
            "checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to "
            "preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
            "differences between the two variants.", stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs and use_reentrant:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if use_reentrant:
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        from .. import Tensor

        if is_grad_enabled() and not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            _warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)
            from .. import no_grad

            with no_grad():
                return function(*args)
        first = again = _contextlib.nullcontext
    else:
        made = context_fn()
        first, again = (lambda: made[0]), (lambda: made[1])
    on, dtype = _autocast_state.device, dict(_autocast_state.dtype)

    @_contextlib.contextmanager
    def same_autocast():
        before = _autocast_state.device, _autocast_state.dtype
        _autocast_state.device, _autocast_state.dtype = on, dtype
        try:
            with again():
                yield
        finally:
            _autocast_state.device, _autocast_state.dtype = before

    def run(*inner):
        return function(*inner, **kwargs)

    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    return _checkpoint_region(run, args, first, same_autocast, preserve, bool(use_reentrant), determinism_check == "default")


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """A sequence of modules in `segments` checkpointed pieces. Source: PyTorch, torch.utils.checkpoint.checkpoint_sequential."""
    from .. import nn

    if use_reentrant is None:
        _warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In version "
            "2.9 we "
            "will raise an exception if use_reentrant is not passed. use_reentrant=False is recommended, but if you need to "
            "preserve "
            "the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the differences "
            "between "
            "the two variants.", stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if isinstance(functions, nn.Sequential):
        functions = list(functions.children())

    def piece(start, end):
        def forward(x):
            for f in functions[start:end]:
                x = f(x)
            return x

        return forward

    size = len(functions) // segments
    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(piece(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return piece(end, len(functions))(input)


class set_checkpoint_early_stop:
    """The second run of a region always goes to its end. Source: PyTorch, torch.utils.checkpoint.set_checkpoint_early_stop."""

    def __init__(self, enable):
        self.enable = enable

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        return False


class set_checkpoint_debug_enabled(set_checkpoint_early_stop):
    """Regions are checked when they are differentiated, in either case. Source: PyTorch,
    torch.utils.checkpoint.set_checkpoint_debug_enabled."""


# ------------------------------------------------------------------------------------------------ pieces that programs build on
class CheckpointPolicy(_enum.Enum):
    """What a selective checkpoint does with the result of an operator. Source: PyTorch, torch.utils.checkpoint.CheckpointPolicy."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVED = frozenset(policy for policy in CheckpointPolicy if not policy.name.endswith("RECOMPUTE"))


class SelectiveCheckpointContext:
    """What a policy is told: whether the region is computed again. Source: PyTorch, the same name."""

    def __init__(self, *, is_recompute):
        self.is_recompute = is_recompute


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation=False):
    """The two contexts of a selective checkpoint: `functools.partial` of this is a `context_fn`.

    `policy_fn_or_list`: `policy(ctx, op, *args, **kwargs)` gives a CheckpointPolicy (or True to save) for each operator of `torch.ops`
    that the region calls, or a list of those whose results are saved. What is saved is not computed again; a write to it is an error
    unless `allow_cache_entry_mutation`. TypeError for another policy, ValueError for what is no operator of `torch.ops`. Offloading
    saves on the CPU, where everything is. Source: PyTorch, torch.utils.checkpoint.create_selective_checkpoint_contexts.
    """
    from ._selective import contexts

    if isinstance(policy_fn_or_list, list):
        policy = _listed(policy_fn_or_list)
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")

    def saves(op, args, kwargs):
        chosen = policy(SelectiveCheckpointContext(is_recompute=False), op, *args, **kwargs)
        return chosen in _SAVED if isinstance(chosen, CheckpointPolicy) else bool(chosen)

    return contexts(saves, allow_cache_entry_mutation)


def _listed(ops):
    from .._ops import OpOverload

    for op in ops:
        if not isinstance(op, OpOverload):
            text = f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. "
            if type(op).__name__.endswith("Packet"):
                text += f"Please update the OpOverloadPacket to a specific OpOverload. For example, if you have `{op}`, try `{op}.default`."
            raise ValueError(text)
    return lambda ctx, op, *args, **kwargs: op in ops


class DefaultDeviceType:
    """The device whose random state a checkpoint keeps where its arguments lie on the CPU. Source: PyTorch,
    torch.utils.checkpoint.DefaultDeviceType."""

    _kind = "cpu"

    @staticmethod
    def set_device_type(device="cuda"):
        DefaultDeviceType._kind = device

    @staticmethod
    def get_device_type():
        return DefaultDeviceType._kind


def detach_variable(inputs):
    """The tensors of a tuple cut from the graph, as leaves that require grad where they did. RuntimeError unless a tuple.

    Source: PyTorch, torch.utils.checkpoint.detach_variable.
    """
    from .. import Tensor

    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: ", type(inputs).__name__)
    made = []
    for one in inputs:
        if isinstance(one, Tensor):
            cut = one.detach()
            cut.requires_grad = one.requires_grad
            one = cut
        made.append(one)
    return tuple(made)


def check_backward_validity(inputs):
    """Warn where none of the inputs requires grad: the checkpoint gives no gradients then. Source: PyTorch,
    torch.utils.checkpoint.check_backward_validity."""
    from .. import Tensor

    if not any(t.requires_grad for t in inputs if isinstance(t, Tensor)):
        _warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def get_device_states(*args):
    """(devices, states) of the random generators of the arguments' accelerators: none, all numbers are drawn on the host.

    Source: PyTorch, torch.utils.checkpoint.get_device_states.
    """
    return [], []


def set_device_states(devices, states, *, device_type=None):
    """Put back what get_device_states gave. Source: PyTorch, torch.utils.checkpoint.set_device_states."""
    if devices or states:
        raise _unsupported("torch.utils.checkpoint.set_device_states",
                           "accelerators have no generators of their own here; torch.set_rng_state sets the one there is")
