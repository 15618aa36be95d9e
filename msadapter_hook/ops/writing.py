"""Writing to tensors, in place and into `out=`: what PyTorch refuses, and what a write does to sizes, dtypes and kept versions."""

import warnings

import numpy as np

from msadapter_hook.tape import Value
from msadapter_hook.tape.recording import state
from msadapter_hook.tensor import Tensor, cast_value, dtypes, geometry
from msadapter_hook.tensor.core import DTYPE_OF

from . import compound, gradient_names, kept

SELF_OVERLAP = ("unsupported operation: more than one element of the written-to tensor refers to a single memory "
                 "location. Please clone() the tensor before performing the operation.")
_OVERLAP = ("unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
            "memory location. Please clone() the tensor before performing the operation.")
_SEQUENCES = frozenset(["arange", "linspace", "logspace", "range"])  # fill `out` in its own shape where the number fits
_DRAWN = frozenset(["bernoulli"])  # zeros and ones, of whatever dtype `out` has


def own_memory(value, tensor):
    if value._numpy is not None and np.may_share_memory(value._numpy, tensor._history.storage.buffer):
        return Value(value.shape, value.dtype, value._numpy.copy(), None, value.node, value.index, value.requires_grad)
    return value


def refuse_overlap(tensor, other, anything=False):
    """Raise where `other` shares only a part of the memory that is to be written (`anything`: or all of it)."""
    if other is not tensor and other._history.storage is tensor._history.storage:
        found = geometry.overlap_of((tensor._size, tensor._stride, tensor._offset),
                                    (other._size, other._stride, other._offset))
        if found == "partial" or found and anything:
            raise RuntimeError(_OVERLAP)
    elif anything and other is tensor and tensor.numel():
        raise RuntimeError(_OVERLAP)


def check_overlap(tensor, overload, bound, first):
    """Raise where an argument, from the `first` on, overlaps the written tensor in a way the operator does not
    allow."""
    anything = overload.overlap == "any"
    for i in overload.tensors:
        t = bound[i]
        if i >= first and isinstance(t, Tensor):
            refuse_overlap(tensor, t, anything)
    for i in overload.lists:
        for t in bound[i]:
            if t is not None:
                refuse_overlap(tensor, t, anything)


def check_inplace(tensor):
    """Raise where PyTorch refuses to write to `tensor`."""
    if state.enabled and tensor._extra is not None and tensor._extra.get("no_grad_view"):
        made = tensor._extra["no_grad_view"]
        now = "with grad mode enabled" if made == "no_grad" else "in normal mode"
        raise RuntimeError(
            f"A view was created in {made} mode and is being modified inplace "
            f"{now}. Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code "
            "by moving both "
            f"the view and the inplace either both inside the {made if made == 'no_grad' else 'inference_mode'} block "
            "(if you don't "
            "want the inplace to be tracked) or both outside (if you want the inplace to be tracked).")
    if state.enabled and tensor.requires_grad:
        if tensor._extra is not None and "multiview" in tensor._extra:
            place, name = tensor._extra["multiview"]
            raise RuntimeError(f"Output {place} of {gradient_names.camel(name)} is a view and is being modified inplace. This view is "
                               "the output of a function that returns multiple views. Such functions do not allow "
                               "the output views to be modified inplace. You should replace the inplace operation by "
                               "an out-of-place one.")
        if tensor._extra is not None and "of_function" in tensor._extra:
            place, name = tensor._extra["of_function"]
            raise RuntimeError(
                f"Output {place} of {name} is a view and is being modified inplace. This view was created inside a "
                "custom Function (or "
                "because an input was returned as-is) and the autograd logic to handle view+inplace would override the "
                "custom backward "
                "associated with the custom Function, leading to incorrect gradients. This behavior is forbidden. You "
                "can fix this by "
                "cloning the output of the custom Function.")
        if tensor._leaf is not None:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        if tensor._history.value.leaf is not None:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    elif state.enabled and tensor._moves and tensor._history.value.leaf is not None:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    if tensor._compound:
        raise compound.refusal("the in-place operator", tensor)
    if geometry.overlaps(tensor._size, tensor._stride):
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single "
                           "memory location. Please clone() the tensor before performing the operation.")


def write_inplace(tensor, value, dtype=None, overload=None, bound=(), name=None):
    """Write the result Value of an in-place operator to `tensor`, with PyTorch's checks of size and dtype."""
    if value.shape != tensor._size:
        raise RuntimeError(f"output with shape {list(tensor._size)} doesn't match the broadcast shape "
                           f"{list(value.shape)}")
    dtype = dtype or DTYPE_OF[value.dtype]
    if dtype is not tensor._dtype:
        if not dtypes.can_cast(dtype, tensor._dtype):
            raise RuntimeError(f"result type {dtype.scalar_name} can't be cast to the desired output type "
                               f"{tensor._dtype.scalar_name}")
        value = cast_value(value, tensor._dtype)
    node = value.node if value.requires_grad else None
    saved = None
    if node is not None:
        if node.operator is None:
            node.operator = name or overload and overload.name_of(value, bound)
        if overload is not None and overload.saves and node.saved is None:
            saved = True
            node.saved = kept.versions(overload, bound, (tensor,), inplace=True)
    tensor._write(value)
    if saved:  # the result is kept as it is after the write
        node.saved += tuple(kept.results_of(overload, bound, (tensor,)))


def write_out(name, out, result):
    """Put `result` into the tensor given as `out=`: resized where its size differs, cast where that loses no
    category."""
    if name not in _DRAWN and not dtypes.can_cast(result._dtype, out._dtype):
        raise RuntimeError(f"result type {result._dtype.scalar_name} can't be cast to the desired output type "
                           f"{out._dtype.scalar_name}")
    if name in _SEQUENCES and out._size != result._size:
        if out.numel() == result.numel():
            result = result.reshape(out._size)
        else:
            out.resize_(result._size)
            out._history.version.count -= 1
    value = cast_value(result.value, out._dtype)
    if out._size != result._size:
        if out.numel():
            warnings.warn(
                f"An output with one or more elements was resized since it had shape {list(out._size)}, which does not "
                "match the "
                f"required output shape {list(result._size)}. This behavior is deprecated, and in a future PyTorch "
                "release "
                "outputs will not be resized unless they have zero elements.", UserWarning, stacklevel=4)
        out.resize_(result._size)
        out._history.version.count -= 1  # counts as one write with what follows
    out._write(value)
