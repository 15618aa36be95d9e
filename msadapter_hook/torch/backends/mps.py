"""torch.backends.mps: Apple's devices are not there."""


def is_available():
    return False


def is_built():
    return False
