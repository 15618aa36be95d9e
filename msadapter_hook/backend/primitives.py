"""MindSpore's primitives, one instance per set of attributes (making one costs 20 µs)."""

from functools import lru_cache

from mindspore.ops import operations as _operations

from . import runtime  # noqa: F401  (MindSpore is configured before a primitive exists)


@lru_cache(maxsize=4096)
def primitive(name: str, *attributes, **named):
    """The instance of the MindSpore primitive `name` with these attributes; callable on MindSpore tensors."""
    return getattr(_operations, name)(*attributes, **named)
