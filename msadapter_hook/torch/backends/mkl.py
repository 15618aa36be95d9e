"""torch.backends.mkl: Intel's MKL, which is not in use."""

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available():
    """False. Source: PyTorch, torch.backends.mkl.is_available."""
    return False


class verbose:
    """Kept for programs that ask for MKL's messages: there are none. Source: PyTorch, torch.backends.mkl.verbose."""

    def __init__(self, enable):
        self.enable = enable

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False
