"""torch._refs.nn."""

from . import functional  # noqa: F401
