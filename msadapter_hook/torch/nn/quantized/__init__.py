"""torch.nn.quantized: the old place of torch.ao.nn.quantized."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from ...ao.nn import quantized

    return getattr(quantized, name)
