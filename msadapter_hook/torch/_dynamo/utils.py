"""torch._dynamo.utils: what libraries ask of the compiler."""

import collections

counters = collections.defaultdict(collections.Counter)


def is_compile_supported(device_type):
    """False: libraries keep to the code that runs as written. Source: PyTorch, torch._dynamo.utils.is_compile_supported."""
    return False


def is_compiling():
    return False
