# Copies of a module for several devices: with one device, the module itself.
__all__ = ["replicate"]


def replicate(network, devices, detach=False):
    """A list with the module for its one device; NotImplementedError for several. Source: PyTorch,
    torch.nn.parallel.replicate.
    """
    if len(devices) > 1:
        raise NotImplementedError(
            "torch.nn.parallel.replicate: several devices in one process are not available; start one process a device."
        )
    return [network for _ in devices]
