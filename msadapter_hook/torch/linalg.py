"""torch.linalg: the operators of that namespace."""

from msadapter_hook.ops import functions as _functions
from msadapter_hook.ops.linalg_checks import LinAlgError  # noqa: F401

globals().update(_functions("linalg"))
__all__ = sorted([*_functions("linalg"), "LinAlgError"])
