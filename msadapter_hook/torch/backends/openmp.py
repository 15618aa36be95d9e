"""torch.backends.openmp: whether operators run on several threads by OpenMP."""


def is_available():
    """True: the kernels used are built with it. Source: PyTorch, torch.backends.openmp.is_available."""
    return True
