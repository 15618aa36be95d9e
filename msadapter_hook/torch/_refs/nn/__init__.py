"""torch._refs.nn."""

from . import functional
