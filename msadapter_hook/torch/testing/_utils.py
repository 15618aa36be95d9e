"""Random numbers in tests: drawn from a fixed seed, or without moving the generator on."""

import contextlib

from .. import get_rng_state, manual_seed, set_rng_state


@contextlib.contextmanager
def freeze_rng_state():
    """Within, numbers are drawn as usual; afterwards the generator is where it was."""
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


def wrapper_set_seed(op, *args, **kwargs):
    """The result of `op` with the generator at seed 42; the generator stays where it was."""
    with freeze_rng_state():
        manual_seed(42)
        return op(*args, **kwargs)
