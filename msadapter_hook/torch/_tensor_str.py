"""Printing options of tensors; the formatting itself is in `msadapter_hook.tensor.printing`."""

from msadapter_hook.tensor.printing import set_printoptions  # noqa: F401
