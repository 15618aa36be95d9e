"""How a call is timed, in the interpreter of the adapter and in that of PyTorch alike: nothing of either is imported."""

import time


def best(function, seconds=0.15):
    """Least microseconds of a call."""
    function(), function()
    least, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        function()
        least = min(least, time.perf_counter() - start)
    return least * 1e6
