"""Anomaly mode: gradients that are NaN are errors."""

import warnings

from . import engine


class detect_anomaly:
    """Context: backward raises where a gradient is NaN. Source: PyTorch, torch.autograd.detect_anomaly."""

    def __init__(self, check_nan=True):
        self.check_nan = check_nan
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
                      "debugging.", stacklevel=2)

    def __enter__(self):
        self.before = engine.anomaly.check
        engine.anomaly.check = self.check_nan

    def __exit__(self, *exc):
        engine.anomaly.check = self.before


class set_detect_anomaly:
    """Switch anomaly mode at once; as a context the mode before comes back. Source: PyTorch,
    torch.autograd.set_detect_anomaly."""

    def __init__(self, mode, check_nan=True):
        self.before = engine.anomaly.check
        engine.anomaly.check = bool(mode) and check_nan

    def __enter__(self):
        pass

    def __exit__(self, *exc):
        engine.anomaly.check = self.before
