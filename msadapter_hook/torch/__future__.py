# torch.__future__: how modules convert and load their parameters. Off by default, as in PyTorch.
_overwrite_module_params_on_conversion = False
_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value):
    """Whether conversions of a module make new parameters instead of changing those there are. Source: PyTorch, torch.__future__."""
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion():
    """See set_overwrite_module_params_on_conversion."""
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value):
    """Whether conversions and load_state_dict swap parameters with `torch.utils.swap_tensors`. Source: PyTorch, torch.__future__."""
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion():
    """See set_swap_module_params_on_conversion."""
    return _swap_module_params_on_conversion
