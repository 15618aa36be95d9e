"""gradcheck of functions that take or give sparse tensors: they are taken apart into dense ones for it."""

import functools


def _taken_apart(tensor, masked):
    """(dense tensor, function that makes the sparse one of it): the elements alone under `masked`, else all that may be there."""
    from .. import ones_like, sparse_coo

    if tensor.layout is sparse_coo:
        if not masked:
            tensor = ones_like(tensor.to_dense()).to_sparse(tensor.sparse_dim()).mul(0).add(tensor.detach().coalesce()).coalesce()
        else:
            tensor = tensor.detach().coalesce()
        flow = tensor._values().detach().clone().requires_grad_()
        return flow, tensor._like
    if not masked:
        raise NotImplementedError("as_sparse_gradcheck: masked=False of compressed layouts is not supported; convert to sparse_coo")
    flow = tensor.detach().values().detach().clone().requires_grad_()
    return flow, tensor.detach()._like


def as_sparse_gradcheck(gradcheck):
    """A gradcheck that also takes functions of sparse tensors: their elements are checked as dense inputs.

    Source: PyTorch, torch.sparse.as_sparse_gradcheck.
    """

    @functools.wraps(gradcheck)
    def checked(func, inputs, **kwargs):
        masked = kwargs.get("masked", False)
        inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        flows, makers = [], []
        for one in inputs:
            if getattr(one, "_compound", False) and one.requires_grad:
                flow, make = _taken_apart(one, masked)
            else:
                flow, make = one, None
            flows.append(flow)
            makers.append(make)

        def dense(*given):
            found = func(*[g if make is None else make(g) for g, make in zip(given, makers)])
            several = isinstance(found, (tuple, list))
            found = [r.to_dense() if getattr(r, "_compound", False) else r for r in (found if several else [found])]
            return tuple(found) if several else found[0]

        return gradcheck(dense, tuple(flows), **kwargs)

    return checked
