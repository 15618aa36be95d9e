"""torch.fx.experimental.symbolic_shapes: sizes are plain numbers here, so every question about them has its answer."""


class GuardOnDataDependentSymNode(RuntimeError):
    """A decision on a size that is not known; sizes are always known here, so nothing raises it."""


def guard_or_false(a):
    """Whether `a` holds. Source: PyTorch, torch.fx.experimental.symbolic_shapes."""
    return bool(a)


guard_or_true = statically_known_true = guard_size_oblivious = definitely_true = guard_or_false


def free_symbols(val):
    """No symbols: an empty set."""
    return set()


free_unbacked_symbols = free_symbols


def has_free_symbols(val):
    """False: there are no symbols."""
    return False


def is_concrete_int(a):
    """Whether `a` is an integer."""
    return isinstance(a, int)


def is_symbolic(val):
    """False: sizes are plain numbers."""
    return False
