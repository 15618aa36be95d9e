"""torch.autograd.anomaly_mode: find the operation whose gradient fails."""

from msadapter_hook.autograd.anomaly import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]
