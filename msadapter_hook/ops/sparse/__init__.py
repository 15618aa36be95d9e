"""Operators on sparse tensors, by composition over their elements; importing this package registers them."""

from . import (  # noqa: F401
    construction,
    conversion,
    elementwise,
    legacy,
    methods,
    products,
    reductions,
    shape,
)
