"""The backward passes that run in this thread, innermost last, and what gradients are summed under.

The engine fills this in; whoever needs to know of a pass without running one asks here.
"""

import threading


class _Passes(threading.local):
    def __init__(self):
        self.running = []


_passes = _Passes()


def current_pass():
    """The innermost backward pass that runs in this thread, or None."""
    return _passes.running[-1] if _passes.running else None


def begun(walk):
    """`walk` runs from now on, until `ended`."""
    _passes.running.append(walk)


def ended():
    """The innermost pass is over; gives whether it was the outermost too."""
    _passes.running.pop()
    return not _passes.running


def queue_callback(callback, outermost=False):
    """Call `callback()` at the end of the backward pass that runs; `outermost`: of the one that those of reentrant checkpoints run
    in. RuntimeError where none does."""
    if not _passes.running:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    _passes.running[0 if outermost else -1].callbacks.append(callback)


def key_of(value):
    """What the cotangents of a value are summed under: its leaf, or its place among the outputs of its node."""
    return value.leaf if value.leaf is not None else (value.node, value.index)
