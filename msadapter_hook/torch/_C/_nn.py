"""torch._C._nn: what libraries reach for of PyTorch's compiled functions of networks."""


def _parse_to(*args, **kwargs):
    """(device, dtype, non_blocking, memory format) of the arguments of `Module.to`. Source: PyTorch, torch.nn.Module.to."""
    from ..nn.modules._helpers import _parse_to

    return _parse_to(*args, **kwargs)
