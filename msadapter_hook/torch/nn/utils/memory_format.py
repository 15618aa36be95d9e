# Memory format of convolution weights.
from .. import modules


def _convert(module, memory_format, *kinds):
    if isinstance(module, kinds):
        data = module.weight.detach().clone().contiguous(memory_format=memory_format)
        module.weight.data = data.resize_(data.size(), memory_format=memory_format)
    for child in module.children():
        _convert(child, memory_format, *kinds)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """Weights of all Conv2d and ConvTranspose2d in `module` in `memory_format`; gives the module.

    Source: PyTorch, torch.nn.utils.convert_conv2d_weight_memory_format.
    """
    return _convert(module, memory_format, modules.Conv2d, modules.ConvTranspose2d)


def convert_conv3d_weight_memory_format(module, memory_format):
    """Weights of all Conv3d and ConvTranspose3d in `module` in `memory_format`; gives the module.

    Source: PyTorch, torch.nn.utils.convert_conv3d_weight_memory_format.
    """
    return _convert(module, memory_format, modules.Conv3d, modules.ConvTranspose3d)
