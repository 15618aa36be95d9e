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


def dense_form(func, inputs, masked, outputs=True):
    """(function of dense tensors, dense inputs) that stand for a function and inputs among which sparse tensors are.

    `outputs`: sparse results are made dense too."""
    flows, makers = [], []
    for one in inputs:
        sparse = getattr(one, "_compound", False) and one.requires_grad
        flow, make = _taken_apart(one, masked) if sparse else (one, None)
        flows.append(flow)
        makers.append(make)

    def dense(*given):
        found = func(*[g if make is None else make(g) for g, make in zip(given, makers)])
        if not outputs:
            return found
        several = isinstance(found, (tuple, list))
        found = [r.to_dense() if getattr(r, "_compound", False) else r for r in (found if several else [found])]
        return tuple(found) if several else found[0]

    return dense, tuple(flows)


def as_sparse_gradcheck(gradcheck):
    """A gradcheck that also takes functions of sparse tensors: their elements are checked as dense inputs.

    Source: PyTorch, torch.sparse.as_sparse_gradcheck.
    """

    @functools.wraps(gradcheck)
    def checked(func, inputs, **kwargs):
        inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        return gradcheck(*dense_form(func, inputs, kwargs.get("masked", False)), **kwargs)

    return checked
