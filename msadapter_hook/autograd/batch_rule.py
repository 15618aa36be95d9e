"""The `vmap` staticmethod of a Function: what a mapped call gives to it, and takes from it.

Samples run one after the other, so the rule sees batches of one sample, as it does under `chunk_size=1`.
"""

from typing import NamedTuple

from msadapter_hook.tape.recording import state
from msadapter_hook.tensor import Tensor

MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What a rule is told. Source: PyTorch, torch.autograd.function.VmapInfo."""

    batch_size: int
    randomness: str


VmapInfo.__module__ = "torch.autograd.function"


def mapped_call(args):
    """The innermost mapped call that one of the arguments depends on, None where there is none."""
    tensors = [t for a in args for t in _tensors(a)]
    watcher = state.mapped
    while watcher is not None and not (watcher.maps and any(watcher.owns(t) for t in tensors)):
        watcher = watcher.outer
    return watcher


def run(function, mapped, args):
    """What `function.vmap` makes of one sample of a mapped call. RuntimeError where it does not give outputs and their dimensions."""
    dims = tuple([_map(lambda t: 0 if isinstance(t, Tensor) and mapped.owns(t) else None, a) for a in args])
    batches = [_map(lambda t: t.unsqueeze(0) if isinstance(t, Tensor) and mapped.owns(t) else t, a) for a in args]
    with mapped.left():
        result = function.vmap(VmapInfo(1, mapped.lanes.mode), dims, *batches)
        if not isinstance(result, tuple) or len(result) != 2:
            got = f"{len(result)} returns" if isinstance(result, tuple) else f"a {type(result)}"
            raise RuntimeError("Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
                               f"compatible with the output. Got {got} instead")
        return _samples(*result)


def _samples(output, dims):
    """The sample in each output: at the place that its dimension names, the output itself where that is None."""
    if isinstance(output, (tuple, list)):
        if type(dims) is int or dims is None:
            dims = [dims] * len(output)
        if len(dims) != len(output):
            raise _incompatible(dims, output)
        made = [_samples(o, d) for o, d in zip(output, dims)]
        return type(output)(*made) if hasattr(output, "_fields") else type(output)(made)
    if isinstance(dims, (tuple, list)):
        raise _incompatible(dims, output)
    return output.select(dims, 0) if dims is not None and isinstance(output, Tensor) else output


def _incompatible(dims, output):
    return RuntimeError("The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
                        f"out_dims={dims} to be compatible with the structure of `output`. out_dims has {_count(dims)} but output has "
                        f"{_count(output)}. {MORE}")


def _count(x):
    return f"{len(x)} entries" if isinstance(x, (tuple, list)) else "one entry"


def _map(function, x):
    if isinstance(x, (tuple, list)):
        made = [_map(function, item) for item in x]
        return type(x)(*made) if hasattr(x, "_fields") else type(x)(made)
    if isinstance(x, dict):
        return {key: _map(function, item) for key, item in x.items()}
    return function(x)


def _tensors(x):
    found = []
    _map(lambda t: found.append(t) if isinstance(t, Tensor) else None, x)
    return found
