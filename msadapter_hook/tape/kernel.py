"""Kernel: what a host kernel is that keeps what its own gradient needs, and how NumPy is kept quiet while kernels compute."""

import numpy as np

try:
    from numpy.core.umath import geterrobj, seterrobj  # NumPy 1: a tenth of what np.errstate costs
except ImportError:
    geterrobj = seterrobj = None


class Kernel:
    """A host kernel of a primitive with a gradient of its own, over arrays.

    `forward(keep, *arrays, **attributes) -> (result, kept)`: the array (or tuple of arrays), and what `backward` wants to
    find again (anything but None) if `keep` says that a gradient may be asked for; None where the case is not its own: then
    the primitive computes as without a kernel. `backward(kept, grads, needs, *arrays, **attributes)` gives one array (or None)
    per input from those of the outputs. It serves plain backward passes; a gradient that is differentiated again goes by the
    primitive's vjp. Neither writes to what it is given. `dtypes`: of the first input.

    `into(total, grad, shape, dtype, *rest, **attributes)`: alternatively the gradient of the first input, added to `total`
    in place (None: zeros), which is given back; `rest` are the other inputs.

    `reads`: the inputs whose elements `backward` reads again (None: any); of the others it looks at shape and dtype only.
    """

    __slots__ = ("forward", "backward", "into", "dtypes", "reads")

    def __init__(self, forward=None, backward=None, *, into=None, dtypes=frozenset([np.dtype(np.float32)]), reads=None):
        self.forward = forward
        self.backward = backward
        self.into = into
        self.dtypes = dtypes
        self.reads = reads


class _Quiet:
    """Context: floating-point events pass without a warning, as in PyTorch."""

    __slots__ = ("_before",)

    def __enter__(self):
        self._before = geterrobj()
        seterrobj(_IGNORE)

    def __exit__(self, *exc):
        seterrobj(self._before)


if geterrobj is None:
    def quiet():
        return np.errstate(all="ignore")
else:
    _IGNORE = [np.getbufsize(), 0, None]
    quiet = _Quiet
