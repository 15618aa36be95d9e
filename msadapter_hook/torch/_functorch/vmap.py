"""vmap: a function of samples as a function of batches. What is checked here is what PyTorch checks, in its words."""

import functools

from msadapter_hook.autograd import vmap as _mapping

from .. import Tensor, empty, stack
from ..utils._pytree import TreeSpec, _broadcast_to_and_flatten, tree_flatten, tree_map, tree_unflatten

__all__ = ["vmap", "get_chunk_sizes"]


def _name(func):
    return getattr(func, "__name__", None) or repr(func)


def _flat_inputs(in_dims, args, func):
    """(size of the batch, flat in_dims, flat arguments, their spec). ValueError in PyTorch's words."""
    name = _name(func)
    head = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(head + "expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
                                "got: "
                         f"{type(in_dims)}.")
    if len(args) == 0:
        raise ValueError(f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
                         "function with no inputs. The latter is unsupported.")
    flat, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(head + "in_dims is not compatible with the structure of `inputs`. in_dims has structure "
                         f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}.")
    for i, (x, dim) in enumerate(zip(flat, dims)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(head + f"Got in_dim={dim} for an input but in_dim must be either an integer dimension or None.")
        if not isinstance(x, Tensor):
            raise ValueError(head + f"Got in_dim={dim} for an input but the input is of type {type(x)}. We cannot vmap over "
                             "non-Tensor arguments, please use None as the respective in_dim")
        if not -x.dim() <= dim < x.dim():
            raise ValueError(head + f"Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {x.dim()} so "
                             f"expected in_dim to satisfy -{x.dim()} <= in_dim < {x.dim()}.")
        dims[i] = dim % x.dim()
    sizes = [x.size(dim) for x, dim in zip(flat, dims) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(s != sizes[0] for s in sizes):
        raise ValueError("vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                         f"{sizes} for the mapped dimension")
    return sizes[0], dims, flat, spec


def _flat_out_dims(out_dims, func, spec: TreeSpec):
    """One out_dim per leaf of the results."""
    name = _name(func)
    if isinstance(out_dims, int) or out_dims is None and spec.is_leaf():
        return [out_dims] * spec.num_leaves
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
                         f"`outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}.")
    return dims


def _check_out_dims(out_dims, func):
    def check(dim):
        if dim is not None and not isinstance(dim, int):
            raise ValueError(f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python "
                             "collection "
                             "of ints representing where in the outputs the vmapped dimension should appear.")

    tree_map(check, out_dims)


def _check_results(results, func, dims):
    for x, dim in zip(results, dims):
        if not isinstance(x, Tensor) and dim is not None:
            raise ValueError(f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type {type(x)}. Did you "
                             "mean "
                             "to set out_dims= to None for output?")


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """`func`, which takes samples, as a function of batches.

    `in_dims`: which dimension of each argument is the batch (None: the same for all samples); `out_dims`: where it goes in each
    result. `randomness`: "error", "same" draws for all samples, or "different" ones. `chunk_size`: samples at a time.
    ValueError for arguments that do not fit. Source: PyTorch, torch.func.vmap.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, updated=() if not hasattr(func, "__dict__") else ("__dict__",))
    def mapped(*args, **kwargs):
        return _mapped(func, in_dims, out_dims, randomness, chunk_size, args, kwargs)

    return mapped


def _mapped(func, in_dims, out_dims, randomness, chunk_size, args, kwargs):
    _check_out_dims(out_dims, func)
    size, dims, flat, spec = _flat_inputs(in_dims, args, func)

    def sample(i):
        chosen = [x if d is None else x.select(d, i) for x, d in zip(flat, dims)]
        return func(*tree_unflatten(chosen, spec), **kwargs)

    if size == 0:
        return _of_nothing(func, out_dims, flat, dims, spec, kwargs)
    batched = [x for x, d in zip(flat, dims) if d is not None]
    found = _mapping.run(sample, size, randomness, batched, chunk_size)
    leaves, specs = zip(*[tree_flatten(f) for f in found])
    places = _flat_out_dims(out_dims, func, specs[0])
    _check_results(leaves[0], func, places)
    results = []
    for column, dim in zip(zip(*leaves), places):
        if dim is None:
            if isinstance(column[0], Tensor) and not _mapping.equal(column):
                raise ValueError(f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when out_dim is None")
            results.append(column[0])
        else:
            results.append(stack(column, dim))
    return tree_unflatten(results, specs[0])


def _of_nothing(func, out_dims, flat, dims, spec, kwargs):
    """The results for a batch without samples: structure and shapes are those of a sample of zeros."""
    zeros = [x if d is None else x.new_zeros(tuple(x.shape[:d]) + tuple(x.shape[d + 1:])) for x, d in zip(flat, dims)]
    found, spec = tree_flatten(_mapping.run_empty(lambda: func(*tree_unflatten(zeros, spec), **kwargs)))
    places = _flat_out_dims(out_dims, func, spec)
    _check_results(found, func, places)
    results = []
    for x, dim in zip(found, places):
        if dim is not None:
            shape = list(x.shape)
            shape.insert(dim % (len(shape) + 1), 0)
            x = empty(shape, dtype=x.dtype)
        results.append(x)
    return tree_unflatten(results, spec)


def get_chunk_sizes(total_elems, chunk_size):
    """The sizes of the pieces in which `total_elems` samples are mapped."""
    whole, rest = divmod(total_elems, chunk_size)
    return [chunk_size] * whole + ([rest] if rest else [])
