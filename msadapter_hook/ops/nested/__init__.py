"""Nested tensors: batches of tensors whose sizes differ, as one buffer (strided layout) or as rows with offsets (jagged layout)."""

from . import jagged, strided  # noqa: F401  (importing them registers their operators)
