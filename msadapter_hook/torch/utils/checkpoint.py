"""torch.utils.checkpoint: trade computation for memory. A region is computed again as a whole: there is no early stop, so
`early_stop` and `set_checkpoint_early_stop` change nothing that a function without side effects shows."""

import contextlib as _contextlib
import warnings as _warnings

from msadapter_hook.autograd.checkpoint import CheckpointError
from msadapter_hook.autograd.checkpoint import checkpoint_region as _checkpoint_region
from msadapter_hook.ops.autocast import state as _autocast_state

from .. import is_grad_enabled

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "noop_context_fn", "set_checkpoint_debug_enabled",
           "set_checkpoint_early_stop"]


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
