"""Random draws inside a mapped function (`vmap`), which runs once per sample: what each sample gets of the stream.

PyTorch draws for all samples at once, operation by operation. So the first sample's k-th draw draws for every sample, and
the others take their part of it.
"""

import functools
import threading

ERROR = ("vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness "
         "flags on vmap or perform the randomness operation out of vmap")


class _State(threading.local):
    lanes = None


state = _State()


class Lanes:
    """The draws of one mapped call over `size` samples. `mode`: "error", "same" or "different"; `sample`: the one that runs."""

    def __init__(self, mode, size):
        self.mode, self.size = mode, size
        self.sample, self.number = 0, 0
        self.kept = []
        self.outer = None

    def start(self, sample):
        """From now on sample `sample` draws."""
        self.sample, self.number = sample, 0

    def __enter__(self):
        self.outer, state.lanes = state.lanes, self
        return self

    def __exit__(self, *exc):
        state.lanes = self.outer

    def _outside(self, draw):
        """Draw for the mapped call around this one, if there is one."""
        state.lanes = self.outer
        try:
            return draw()
        finally:
            state.lanes = self

    def _place(self):
        if self.mode == "error":
            raise RuntimeError(ERROR)
        place, self.number = self.number, self.number + 1
        return place

    def split(self, function, g, n, args, kwargs):
        """`n` draws of an elementwise stream."""
        place = self._place()
        if self.mode == "same":
            if place == len(self.kept):
                self.kept.append(self._outside(lambda: function(g, n, *args, **kwargs)))
            return self.kept[place].copy()
        if place == len(self.kept):
            self.kept.append(self._outside(lambda: function(g, n * self.size, *args, **kwargs)))
        whole = self.kept[place]
        if type(whole) is not tuple and whole.size == n * self.size:
            return whole.reshape(self.size, n)[self.sample].copy()
        return self._outside(lambda: function(g, n, *args, **kwargs))

    def together(self, function, g, args, kwargs):
        """Draws that depend on values: sample after sample; for "same", each from the state that the first one found."""
        place = self._place()
        if self.mode == "different":
            if place == len(self.kept):
                self.kept.append(())
            return self._outside(lambda: function(g, *args, **kwargs))
        if place == len(self.kept):
            self.kept.append(g.clone_state() if hasattr(g, "clone_state") else g.get_state())
            return self._outside(lambda: function(g, *args, **kwargs))
        now = g.get_state()
        g.set_state(self.kept[place].get_state())
        try:
            return self._outside(lambda: function(g, *args, **kwargs))
        finally:
            g.set_state(now)


def split(function):
    """A stream `function(g, n, …)` of independent elements that respects lanes."""

    @functools.wraps(function)
    def drawn(g, n, *args, **kwargs):
        if state.lanes is None:
            return function(g, n, *args, **kwargs)
        return state.lanes.split(function, g, n, args, kwargs)

    return drawn


def together(function):
    """A stream `function(g, …)` whose draws belong together that respects lanes."""

    @functools.wraps(function)
    def drawn(g, *args, **kwargs):
        if state.lanes is None:
            return function(g, *args, **kwargs)
        return state.lanes.together(function, g, args, kwargs)

    return drawn
