"""Rows of a table by index: embedding and bags of embeddings."""

import warnings

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import Value, constant, no_grad, value_of
from msadapter_hook.tape.recording import state
from msadapter_hook.tensor import Size, Tensor

from ._contract import shaped
from .promotion import dtype_of
from .refusals import type_text
from .registry import operator, plain
from .tables import call


# ------------------------------------------------------------------------------------------------ lookup
def _check_indices(indices, name):
    if indices.dtype.name not in ("int64", "int32"):
        raise RuntimeError("Expected tensor for argument #1 'indices' to have one of the following scalar types: "
                           "Long, Int; but got "
                           f"torch.{dtype_of(indices).scalar_name}Tensor instead (while checking arguments for {name})")


def _in_range(indices, rows):
    at = indices.numpy
    if at.size and (at.min() < 0 or at.max() >= rows):
        raise IndexError("index out of range in self")


def _rows(weight, indices):
    """weight[indices] for indices of any shape."""
    if indices.ndim == 0:
        return shaped(prims.gather(weight, shaped(indices, (1,)), axis=0), weight.shape[1:])
    return prims.gather(weight, indices, axis=0)


@operator("embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool "
          "sparse=False) -> Tensor",
          forms="function", grad_name="EmbeddingBackward0")
def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """Rows of a table (V, D) at int64 or int32 indices of any shape. IndexError out of range.

    Source: PyTorch, torch.embedding.
    """
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices(indices, "embedding")
    _in_range(indices, weight.shape[0])
    if sparse:
        return prims.sparse_lookup(weight, indices, padding=padding_idx, scaled=scale_grad_by_freq)
    out = _rows(weight, indices)
    if not out.requires_grad:
        return out
    at = indices.numpy
    if scale_grad_by_freq:
        counts = np.bincount(at.reshape(-1), minlength=weight.shape[0])[at]
        scaled = out * value_of((1.0 / counts).astype(out.dtype)[..., None])
        out = prims.graft(scaled, out.detach())
    if padding_idx >= 0:
        padded = at == padding_idx
        if padded.any():  # no gradient reaches the row of the padding
            keep = value_of(np.ascontiguousarray(np.broadcast_to(~padded[..., None], out.shape)))
            out = prims.where(keep, out, out.detach())
    return out


def _renormalize(weight, indices, max_norm, norm_type):
    """Shorten the rows in use to `max_norm`, in place."""
    w = weight.value.numpy
    used = np.unique(indices.value.numpy)
    rows = w[used].astype(np.float64)
    norms = np.linalg.norm(rows, norm_type, axis=1)
    scale = np.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)
    made = w.copy()
    made[used] = (rows * scale[:, None]).astype(w.dtype)
    new = Value(made.shape, made.dtype, made)
    with no_grad():
        for level in state.levels:  # a tangent stays as it is
            level.copy(weight.value, new)
        weight._write(new)


def functional_embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """Rows of `weight` (V, D) at the indices `input`: shape (*, D). `padding_idx` gets no gradient; with `max_norm`
    the rows in use are shortened in place first. Source: PyTorch, torch.nn.functional.embedding.
    """
    if padding_idx is not None:
        rows = weight.size(0)
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx = padding_idx % rows
    else:
        padding_idx = -1
    if max_norm is not None:
        _check_indices(input.value, "embedding")
        _in_range(input.value, weight.size(0))
        _renormalize(weight, input, max_norm, norm_type)
    return call("embedding", weight, input, padding_idx, scale_grad_by_freq, sparse)


functional_embedding.__name__ = functional_embedding.__qualname__ = "embedding"
plain(functional_embedding, name="nn.functional.embedding")


# ------------------------------------------------------------------------------------------------ bags
@operator("_embedding_bags(Tensor weight, Tensor indices, Tensor offsets, str mode, Tensor? per_sample_weights, int "
          "padding_idx, "
          "bool include_last_offset, bool scale_grad_by_freq, bool sparse=False) -> Tensor", forms="function",
          grad_name="EmbeddingBagBackward0")
def _embedding_bags(weight, indices, offsets, mode, per_sample_weights, padding_idx, include_last_offset, scale_grad_by_freq,
                    sparse=False):
    _check_indices(indices, "embedding_bag")
    outside = (indices.numpy < 0) | (indices.numpy >= weight.shape[0])
    quick = padding_idx < 0 and mode != "max" and weight.dtype.name in ("float32", "float16", "bfloat16")
    if quick and outside.any():
        place = int(outside.reshape(-1).argmax())
        raise RuntimeError(f"Index {place} of input takes value {int(indices.numpy.reshape(-1)[place])} which is not in the valid range "
                           f"[0, {weight.shape[0]})")
    if outside.any():
        raise RuntimeError("embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be "
                           f"{int(indices.numpy[outside][0])}")
    if per_sample_weights is not None and per_sample_weights.dtype != weight.dtype:
        names = [type_text(dtype_of(v)) for v in (weight, per_sample_weights)]
        raise RuntimeError("Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
                           f"'per_sample_weights'; but type {names[0]} does not equal {names[1]} "
                           "(while checking arguments for embedding_bag)")
    at, starts = indices.numpy, offsets.numpy
    if starts.size and starts[0] != 0:
        raise RuntimeError("offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
                           "position 0. However, "
                           f"got {int(starts[0])}")
    if starts.size and starts[-1] > at.size:
        raise RuntimeError(f"offsets[-1] can not be greater than input's length {at.size} but got offsets[-1] of "
                           f"{int(starts[-1])}")
    if (starts[1:] < starts[:-1]).any():
        raise RuntimeError("embedding_bag: offsets must not decrease")
    starts, ends = _bounds(starts, at.size, include_last_offset, quick and mode == "sum")
    bags = len(starts)
    bag_of = np.repeat(np.arange(bags), ends - starts)
    count = len(bag_of)
    live = at[:count] != padding_idx
    places = value_of(np.ascontiguousarray(at[:count]))
    rows = prims.sparse_lookup(weight, places, padding=padding_idx, scaled=False) if sparse else _rows(weight, places)
    if scale_grad_by_freq and rows.requires_grad:
        counts = np.bincount(at[:count], minlength=weight.shape[0])[at[:count]]
        rows = prims.graft(rows * value_of((1.0 / counts).astype(rows.dtype)[:, None]), rows.detach())
    if per_sample_weights is not None:
        used = per_sample_weights if count == at.size else prims.strided_slice(per_sample_weights, start=(0,), stop=(count,), step=(1,))
        rows = rows * shaped(used, (count, 1))
    if mode == "max":
        return _largest(rows, starts, ends, live, bags)
    if not live.all():
        rows = rows * value_of(live.astype(rows.dtype)[:, None])
    zero = value_of(np.zeros((bags, weight.shape[1]), rows.dtype))
    total = prims.index_add(zero, value_of(bag_of), rows, axis=0)
    if mode == "mean":
        sizes = np.bincount(bag_of[live], minlength=bags)
        many = value_of(np.maximum(sizes, 1).astype(rows.dtype)[:, None])
        mean = total / many
        if quick and include_last_offset and bags and offsets.numpy[-1] < count:  # PyTorch counts those after the last bag, and adds none
            last, within = int(offsets.numpy[-1]), np.zeros((bags, weight.shape[1]), np.float32)
            np.add.at(within, bag_of[:last], rows.numpy[:last].astype(np.float32))
            mean = prims.graft(mean, value_of(within.astype(rows.dtype)) / many)
        return mean
    return total


def _bounds(starts, length, include_last_offset, exact):
    """Where bags start and end. What lies after a last offset that is less than the length belongs to the last bag unless `exact`."""
    if not include_last_offset:
        return starts, np.append(starts[1:], length)
    ends = starts[1:].copy()
    if ends.size and not exact:
        ends[-1] = length
    return starts[:-1], ends


def _largest(rows, starts, ends, live, bags):
    x = rows.numpy
    width = x.shape[1]
    chosen = np.zeros((bags, width), np.int64)
    full = np.zeros((bags, 1), bool)
    for b in range(bags):
        places = np.arange(starts[b], ends[b])[live[starts[b]:ends[b]]]
        if places.size:
            chosen[b] = places[np.argmax(x[places], 0)]
            full[b] = True
    if not rows.shape[0]:  # zeros that still belong to the graph
        return prims.index_add(value_of(np.zeros((bags, width), x.dtype)), value_of(np.zeros(0, np.int64)), rows, axis=0)
    made = prims.take_along(rows, value_of(chosen), axis=0)
    return made if full.all() else prims.where(value_of(np.broadcast_to(full, made.shape).copy()), made, constant(0, x.dtype))


def _check_padding(padding_idx, rows):
    if not -rows <= padding_idx < rows:
        raise RuntimeError(f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but got "
                           f"{padding_idx}")


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean", sparse=False,
                  per_sample_weights=None, include_last_offset=False, padding_idx=None):
    """Sums, means or largest elements of bags of rows: input (B, N), or (L,) with the start of each bag in `offsets`.

    ValueError where input, offsets and weights do not fit. Source: PyTorch, torch.nn.functional.embedding_bag.
    """
    if weight.dtype == call_int64() and input.is_floating_point():
        warnings.warn("Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, "
                      "...)` is "
                      "deprecated, and should now be `embedding_bag(input, weight, ...)`.", stacklevel=2)
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(f"embedding_bag: If per_sample_weights ({Size(per_sample_weights.shape)}) is not None, then "
                         "it must have the "
                         f"same shape as the input ({Size(input.shape)})")
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of "
                             "fixed length "
                             f"sequences. However, found offsets of type {type(offsets)}")
        bags, length = input.shape
        offsets = call("arange", 0, bags * length if length else bags, length or 1, dtype=input.dtype)
        if not length:
            offsets = call("zeros", bags, dtype=input.dtype)
        if include_last_offset:
            include_last_offset = False
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max":
        if scale_grad_by_freq:
            raise ValueError("max mode does not support scaling the gradient by the frequency")
        if sparse:
            raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag: per_sample_weights was not None. per_sample_weights is only "
                                  "supported for mode='sum' "
                                  f"(got mode='{mode}'). Please open a feature request on GitHub.")
    if max_norm is not None:
        _renormalize(weight, input, max_norm, norm_type)
    if padding_idx is not None:
        rows = weight.size(0)
        _check_padding(padding_idx, rows)
        padding_idx = padding_idx % rows
    return call("_embedding_bags", weight, input, offsets, mode, per_sample_weights, -1 if padding_idx is None else padding_idx,
                include_last_offset, scale_grad_by_freq, sparse)


def call_int64():
    from msadapter_hook.tensor import dtypes

    return dtypes.int64


plain(embedding_bag, name="nn.functional.embedding_bag")


_MODES = ("sum", "mean", "max")


def root_embedding_bag(weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None,
                       include_last_offset=False, padding_idx=None):
    """(output, bag of each index, size of each bag, index of each largest element): mode 0 sums, 1 means, 2 is largest.

    What no gradient would need is empty or zero, as in PyTorch. Source: PyTorch, torch.embedding_bag.
    """
    if indices.dim() not in (1, 2):
        raise RuntimeError(f"input has to be a 1D or 2D Tensor, but got Tensor of dimension {indices.dim()}")
    if indices.dim() == 1 and offsets.dim() != 1:
        raise RuntimeError(f"offsets has to be a 1D Tensor, but got Tensor of dimension {offsets.dim()}")
    if weight.dim() != 2:
        raise RuntimeError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if per_sample_weights is not None and per_sample_weights.numel() != indices.numel():
        raise RuntimeError("per_sample_weights must have as many elements as indices, but got "
                           f"{per_sample_weights.numel()} and {indices.numel()}")
    if padding_idx is not None and padding_idx != -1:
        _check_padding(padding_idx, weight.size(0))
        padding_idx = padding_idx % weight.size(0)
    else:
        padding_idx = -1
    indices = indices.reshape(-1)
    made = call("_embedding_bags", weight, indices, offsets, _MODES[mode], per_sample_weights, padding_idx, include_last_offset,
                scale_grad_by_freq, sparse)
    at, bags = indices.value.numpy, made.size(0)
    starts, ends = _bounds(offsets.value.numpy, at.size, include_last_offset, False)
    bag_of = np.repeat(np.arange(bags), ends - starts).astype(at.dtype)
    live = at[:bag_of.size] != padding_idx
    sizes = np.bincount(bag_of[live], minlength=bags).astype(at.dtype)
    largest = sizes
    if mode == 2:
        rows, largest = weight.value.numpy, np.zeros((bags, weight.size(1)), at.dtype)
        for b in range(bags):
            places = at[:bag_of.size][(bag_of == b) & live]
            if places.size:
                largest[b] = places[np.argmax(rows[places], 0)]
    elif mode == 0 and padding_idx < 0:  # the sum needs none of these
        bag_of, sizes = bag_of[:0], np.zeros_like(sizes)
        largest = sizes
    return made, *[Tensor._make(value_of(np.ascontiguousarray(a)), None) for a in (bag_of, sizes, largest)]


for _name in ("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only"):
    plain(root_embedding_bag, name=_name)
root_embedding_bag.__name__ = root_embedding_bag.__qualname__ = "embedding_bag"
