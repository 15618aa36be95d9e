"""Placing tensors on devices. The adapter computes on the one device MindSpore was given."""

import warnings

from msadapter_hook.tape.abstract import NO_DATA
from msadapter_hook.tensor.device import device as Device

from .meta import moved

_told = set()


def place(tensor, device):
    """`tensor` on `device`. An accelerator that PyTorch code names becomes MindSpore's device, with one
    warning. NotImplementedError for a tensor without data that is to go to a device that has some."""
    device = device if isinstance(device, Device) else Device(device)
    if device.type == "meta":
        return tensor if tensor.device.type == "meta" else moved(tensor)
    if tensor.device.type == "meta":
        raise NotImplementedError(NO_DATA)
    if device.type == "cpu":
        return tensor
    if device.type not in _told:
        _told.add(device.type)
        warnings.warn(f"device '{device.type}' was asked for; the adapter computes on MindSpore's device (CPU here), where the "
                      "tensors stay", UserWarning, stacklevel=3)
    return tensor
