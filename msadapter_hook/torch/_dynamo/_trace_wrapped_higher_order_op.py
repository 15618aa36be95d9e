"""Indexing by mapped numbers: PyTorch needs a mode for it; here `vmap` maps it as it is."""

import contextlib


class TransformGetItemToIndex(contextlib.AbstractContextManager):
    """Within, `x[i]` with a mapped number `i` picks an element. Source: PyTorch, torch.vmap."""

    def __exit__(self, *exc):
        return None
