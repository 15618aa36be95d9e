# Parameters as one vector and back.
from ... import Tensor, cat
from ..modules.module import _typename


def parameters_to_vector(parameters):
    """All parameters, flattened, in one vector; TypeError when they lie on different devices.

    Source: PyTorch, torch.nn.utils.parameters_to_vector.
    """
    device = None
    pieces = []
    for param in parameters:
        device = _check_param_device(param, device)
        pieces.append(param.view(-1))
    return cat(pieces)


def vector_to_parameters(vec, parameters):
    """Let the data of the parameters be consecutive slices of `vec`. Source: PyTorch,
    torch.nn.utils.vector_to_parameters.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {_typename(vec)}")
    device = None
    start = 0
    for param in parameters:
        device = _check_param_device(param, device)
        count = param.numel()
        param.data = vec[start : start + count].view_as(param).data
        start += count


def _check_param_device(param, old_param_device):
    device = param.get_device() if param.is_cuda else -1
    if old_param_device is not None and device != old_param_device:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return device
