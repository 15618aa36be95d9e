"""torch.backends.opt_einsum: the contraction path is NumPy's."""

enabled = False
strategy = None


def is_available():
    return False
