"""torch.fx._compatibility: the mark that says how stable an API is."""


def compatibility(is_backward_compatible):
    """The function itself. Source: PyTorch, torch.fx._compatibility.compatibility."""
    return lambda fn: fn
