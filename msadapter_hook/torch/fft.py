"""torch.fft: the operators of that namespace."""

from msadapter_hook.ops import functions as _functions

globals().update(_functions("fft"))
__all__ = sorted(_functions("fft"))
