"""Whether operations are recorded: the grad mode of the thread, as PyTorch keeps it."""

import threading


class _State(threading.local):
    enabled = True
    inference = False
    levels = ()  # of forward mode, the outermost first: each gives the results of primitives their tangents
    transforms = 0  # how many function transforms (torch.func) are running
    saving = None  # hooks on the tensors that graphs keep (autograd.graph.saved_tensors_hooks)
    saving_disabled = None  # the error for setting such hooks
    anomaly = False  # nodes remember where they were recorded, and pass gradients on one by one
    anomaly_check = True  # and gradients are searched for NaN
    mutation = False  # tensors that a graph keeps may be written to (autograd.graph.allow_mutation_on_saved_tensors)
    symbolic = False  # operations on tensors without data are noted for their gradients only
    mapped = None  # the innermost mapped call (vmap), which watches writes


state = _State()


def grad_enabled() -> bool:
    """True while operations on values that require grad are recorded in this thread."""
    return state.enabled


def set_grad_enabled(mode: bool) -> bool:
    """Switch recording in this thread; gives the mode before."""
    before = state.enabled
    state.enabled = mode
    return before


class _Mode:
    """Context in which recording is on or off; re-entrant, restores what it found."""

    __slots__ = ("_mode", "_before")

    def __init__(self, mode):
        self._mode = mode
        self._before = []

    def __enter__(self):
        self._before.append(state.enabled)
        state.enabled = self._mode

    def __exit__(self, *exc):
        state.enabled = self._before.pop()


def no_grad():
    """Context: nothing is recorded."""
    return _Mode(False)


def enable_grad():
    """Context: operations are recorded."""
    return _Mode(True)
