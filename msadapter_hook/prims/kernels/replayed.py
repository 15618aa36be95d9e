"""Primitives that are replayed by their host kernels, plain and compiled: MindSpore's kernels take several times as long.

Layer norm of 1024 rows of 384 numbers takes 7.7 ms with its gradient, its host kernel 0.6; GELU of half a million 5.4 and 1.0.
"""

from functools import partial

import numpy as np

from msadapter_hook import backend
from msadapter_hook.tape import Value, no_grad
from msadapter_hook.tape.kernel import quiet

from .. import activation, normalization

#: primitive, fewest elements of its first input, shapes of a trial, and the attributes that its kernel is faster with
_REPLAYED = [
    (normalization.row_norm, 1 << 13, [(2, 4), (4,), (4,)], {}),
    (activation.gelu, 1 << 17, [(4,)], {"approximate": "none"}),  # by tanh MindSpore's compiled kernels are the faster
]


def install(kernels):
    """Have the primitives replayed by their kernels, where the memory of tensors is in reach and the library can be used."""
    for primitive, least, trial, only in _REPLAYED:
        primitive.replay_by(partial(_chosen, primitive, primitive.mindspore, kernels[primitive], least, trial, only))


def _chosen(primitive, mindspore, kernel, least, trial, only, /, **attributes):
    theirs = mindspore(**attributes)
    if any(attributes[name] != value for name, value in only.items()):
        return theirs
    with quiet():
        if kernel.forward(False, *[np.ones(shape, np.float32) for shape in trial], **attributes) is None:
            return theirs
    ours = backend.in_memory(_in_place(primitive, kernel, attributes), theirs)
    return lambda first, *rest: (ours if first.size >= least else theirs)(first, *rest)


def _in_place(primitive, kernel, attributes):
    """The primitive as a function of MindSpore tensors, with the gradient of its kernel; what the kernel does not take goes by NumPy
    and the primitive's own vjp."""

    def forward(*arrays):
        with quiet():
            found = kernel.forward(True, *arrays, **attributes)
            result, kept = (primitive.host(*arrays, **attributes), None) if found is None else found
        return result, (kept, arrays, result)

    def backward(kept, cotangent):
        kept, arrays, result = kept
        needs = (True,) * len(arrays)
        with quiet():
            if kept is not None:
                return kernel.backward(kept, [cotangent], needs, *arrays, **attributes)
            grad, out, *inputs = [Value(a.shape, a.dtype, a) for a in (cotangent, result, *arrays)]
            with no_grad():
                found = (primitive.joint_vjp([grad], [out], needs, *inputs, **attributes) if primitive.vjp is None else
                         [vjp(grad, out, *inputs, **attributes) for vjp in primitive.vjp])
                return [v.numpy for v in found]

    return backend.InPlace(primitive.name, forward, backward)
