"""What the operators of torch.masked make of sparse inputs and masks: they work on the dense forms, and the result takes the layout of
the input, with the places that the mask shows."""

import functools
from importlib import import_module

torch = import_module("..", __package__)  # the root that this tree is served under


def any_layout(function, output_mask):
    """An operator of dense tensors as one of tensors of any layout. `output_mask(function, input, …)`: which results count."""

    @functools.wraps(function)
    def run(input, *args, mask=None, **kwargs):
        shown = mask if mask is None or not mask._compound else mask.to_dense()
        if not input._compound or not hasattr(input, "to_dense") or input.layout is torch.strided:
            return function(input, *args, mask=shown, **kwargs)
        dense = input.to_dense()
        made = function(dense, *args, mask=shown, **kwargs)
        if shown is None:
            return made.to_sparse(layout=input.layout)
        seen = output_mask(run, dense, *args, mask=shown, **kwargs)
        return made.sparse_mask(seen.to_sparse(layout=input.layout))

    return run


def where(mask, input, fill_value):
    """`input` where the mask shows it; elsewhere `fill_value`, or nothing where the layout leaves elements out.

    Source: PyTorch, torch.masked._where.
    """
    if mask.layout is torch.strided:
        return torch.where(mask, input, fill_value)
    if mask.layout is torch.sparse_coo:
        mask = mask.coalesce()
        if not mask.dense_dim():
            shown = mask.values()
            mask = torch.sparse_coo_tensor(mask.indices()[:, shown], shown[shown], mask.shape, is_coalesced=True)
            return input.sparse_mask(mask)
        found = input.sparse_mask(mask)
        return found._like(torch.where(mask.values(), found._values(), fill_value))
    return where(mask.to_sparse(), input.to_sparse(), fill_value).to_sparse(layout=mask.layout)
