"""What the old names of torch.cuda.amp and torch.cpu.amp say of themselves."""

import warnings


def old_name(device, name):
    """Warn that `torch.<device>.amp.<name>` goes by another name now, at the line of who called the caller."""
    call = f"args..., device_type='{device}'" if name.startswith("custom") else f"'{device}', args..."
    warnings.warn(f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}({call})` instead.", FutureWarning,
                  stacklevel=3)
