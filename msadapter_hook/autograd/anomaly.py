"""Anomaly mode: a gradient that fails or is NaN names the line of the forward pass that it belongs to."""

import traceback
import warnings

from msadapter_hook.tape.recording import state


class _Anomaly:
    """What both contexts do: switch the mode, and bring back the one before."""

    def _switch(self, mode, check_nan):
        self.before = state.anomaly, state.anomaly_check
        state.anomaly, state.anomaly_check = mode, check_nan

    def __exit__(self, *exc):
        state.anomaly, state.anomaly_check = self.before


class detect_anomaly(_Anomaly):
    """Context: backward raises where a gradient is NaN. Source: PyTorch, torch.autograd.detect_anomaly."""

    def __init__(self, check_nan=True):
        self.check_nan = check_nan
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
                      "debugging.", stacklevel=2)

    def __enter__(self):
        self._switch(True, self.check_nan)


class set_detect_anomaly(_Anomaly):
    """Switch anomaly mode at once; as a context the mode before comes back. Source: PyTorch,
    torch.autograd.set_detect_anomaly."""

    def __init__(self, mode, check_nan=True):
        self._switch(bool(mode), check_nan)

    def __enter__(self):
        pass


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on. Source: PyTorch, torch.is_anomaly_enabled."""
    return state.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether gradients are searched for NaN in anomaly mode. Source: PyTorch, torch.is_anomaly_check_nan_enabled."""
    return state.anomaly_check


def user_stack():
    """The stack as text, without the adapter's frames and those beneath the command that runs the program."""
    frames = []
    for frame, line in traceback.walk_stack(None):
        module = frame.f_globals.get("__name__", "")
        if module == "msadapter_hook.hook.runner":
            break
        if not module.startswith(("msadapter_hook", "torch.")):
            frames.append((frame, line))
    frames.reverse()
    return traceback.format_list(traceback.StackSummary.extract(iter(frames)))


def report(name, metadata):
    """Warn where in the forward pass the operation of a failed gradient was called."""
    text = f"Error detected in {name}. "
    stack = (metadata or {}).get("traceback_")
    if stack is None:
        text += "No forward pass information available. Enable detect anomaly during forward pass for more information."
    else:
        text += "Traceback of forward call that caused the error:\n" + "".join(stack)
    warnings.warn(text, stacklevel=2)
