"""Placing tensors on devices. The adapter computes on the one device MindSpore was given."""

import warnings

from msadapter_hook.tensor.device import device as Device

_told = set()


def place(tensor, device):
    """`tensor` on `device`. An accelerator that PyTorch code names becomes MindSpore's device, with one warning."""
    device = device if isinstance(device, Device) else Device(device)
    if device.type == "cpu":
        return tensor
    if device.type == "meta":
        raise NotImplementedError("device='meta': tensors without data are not supported; make them on the CPU "
                                  "(torch.empty), or skip the initialisation with torch.nn.utils.skip_init")
    if device.type not in _told:
        _told.add(device.type)
        warnings.warn(f"device '{device.type}' was asked for; the adapter computes on MindSpore's device (CPU here), where the "
                      "tensors stay", UserWarning, stacklevel=3)
    return tensor
