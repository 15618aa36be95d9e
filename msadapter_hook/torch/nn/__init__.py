# torch.nn: modules, parameters, initialization, utilities.
from . import (
    _reduction,
    attention,
    common_types,
    functional,
    grad,
    init,
    intrinsic,
    modules,
    parallel,
    parameter,
    qat,
    quantizable,
    quantized,
    utils,
)
from .modules import *
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter


def factory_kwargs(kwargs):
    """The keyword arguments `device`, `dtype` and `memory_format` of a constructor, for its tensors.

    They come plain or inside a dictionary `factory_kwargs`; TypeError for another key or a key in both.
    Source: PyTorch, torch.nn.factory_kwargs.
    """
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    unexpected = set(kwargs) - simple - {"factory_kwargs"}
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for key in simple:
        if key in kwargs:
            if key in result:
                raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
            result[key] = kwargs[key]
    return result
