# DataParallel: the module runs on the one device there is.
from ..modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


def _check_devices(name, device_ids):
    if device_ids is not None and len({str(d) for d in device_ids}) > 1:
        raise NotImplementedError(
            f"torch.nn.{name}: several devices in one process are not available; give one device, or none, and start "
            "one process a device for more."
        )


class DataParallel(Module):
    """Runs `module` as it is, as PyTorch does with one device or none; parameters stand under `module.`.

    NotImplementedError for several devices. Source: PyTorch, torch.nn.DataParallel.
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        _check_devices("DataParallel", device_ids)
        self.module = module
        self.device_ids = []

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """Output of `module` on `inputs`, computed on the one device. Source: PyTorch, torch.nn.parallel.data_parallel."""
    _check_devices("parallel.data_parallel", device_ids)
    inputs = inputs if isinstance(inputs, tuple) else (inputs,) if inputs is not None else ()
    return module(*inputs, **(module_kwargs or {}))
