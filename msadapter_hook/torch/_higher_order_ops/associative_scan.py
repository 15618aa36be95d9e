"""The running results of an associative function along a dimension."""

from ..utils._pytree import tree_flatten, tree_unflatten


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """[x0, f(x0, x1), f(f(x0, x1), x2), …] along `dim`, from the end where `reverse`.

    xs: tensors in a container, of one length along `dim`. `combine_fn` takes and gives such containers; with "pointwise" it
    gets single slices, with "generic" slices that keep the dimension. RuntimeError where lengths differ or shapes change.
    Source: PyTorch, torch._higher_order_ops.associative_scan.
    """
    from .. import stack

    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, spec = tree_flatten(xs)
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    length = leaves[0].shape[dim]
    if any(leaf.shape[dim] != length for leaf in leaves):
        raise RuntimeError(f"associative_scan: all tensors need the same length along dimension {dim}")
    if length == 0:
        return xs
    generic = combine_mode == "generic"
    running, found = None, []
    for i in reversed(range(length)) if reverse else range(length):
        here = [leaf.narrow(dim, i, 1) if generic else leaf.select(dim, i) for leaf in leaves]
        if running is not None:
            made, _ = tree_flatten(combine_fn(tree_unflatten(running, spec), tree_unflatten(here, spec)))
            if [m.shape for m in made] != [h.shape for h in here]:
                raise RuntimeError("associative_scan: combine_fn must keep the shapes of its arguments")
            here = made
        running = here
        found.append([leaf.squeeze(dim) if generic else leaf for leaf in here])
    if reverse:
        found.reverse()
    return tree_unflatten([stack(parts, dim) for parts in zip(*found)], spec)
