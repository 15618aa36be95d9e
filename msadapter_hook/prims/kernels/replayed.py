"""Primitives that are replayed by their host kernels, plain and compiled: MindSpore has none, or they take several times as long.

Layer norm of 1024 rows of 384 numbers takes 7.7 ms with its gradient, its host kernel 0.6; GELU of half a million 5.4 and 1.0. LSTM hands
every time step to MindSpore's threads; GRU and plain recurrent layers have no kernel.
"""

from functools import partial

import numpy as np

from msadapter_hook import backend
from msadapter_hook.tape import Value, no_grad
from msadapter_hook.tape.kernel import quiet

from .. import activation
from .. import normalization as norms
from .. import recurrent as layers
from . import convolution, normalization, recurrent

#: primitive, fewest elements of its first input, shapes of a trial, and the attributes that its kernel is faster with
_LARGE = [
    (norms.row_norm, 1 << 13, [(2, 4), (4,), (4,)], {}),
    (norms.batch_norm, 1 << 14, [(2, 4, 3, 3), (4,), (4,)], {}),
    (activation.gelu, 1 << 17, [(4,)], {"approximate": "none"}),  # by tanh MindSpore's compiled kernels are the faster
]


def install(kernels):
    """Have the primitives replayed by their kernels, where the memory of tensors is in reach and the library can be used."""
    kernels = {**kernels, **normalization.IN_ORDER}
    for primitive, least, trial, only in _LARGE:
        primitive.replay_by(partial(_chosen, primitive, primitive.mindspore, kernels[primitive], least, trial, only))
    for primitive, kernel in convolution.IN_ORDER.items():
        theirs = primitive.mindspore
        primitive.replay_by(partial(_convolution, primitive, theirs, kernel, (), None))
        primitive.partial = partial(_convolution, primitive, theirs, kernel)
    layers.lstm.replay_by(_lstm)
    layers.lstm.partial = _lstm
    for primitive in layers.gru, layers.rnn:
        primitive.replay_by(partial(_layer, primitive))
        primitive.guard = partial(_reached, primitive.guard)


def _chosen(primitive, mindspore, kernel, least, trial, only, /, **attributes):
    theirs = mindspore(**attributes)
    if any(attributes[name] != value for name, value in only.items()):
        return theirs
    with quiet():
        if kernel.forward(False, *[np.ones(shape, np.float32) for shape in trial], **attributes) is None:
            return theirs
    ours = backend.in_memory(in_place(primitive, kernel, attributes), theirs)
    return lambda first, *rest: (ours if first.size >= least else theirs)(first, *rest)


def _convolution(primitive, mindspore, kernel, used, needs, /, **attributes):
    theirs = mindspore(**attributes)
    return backend.in_memory(in_place(primitive, kernel, attributes, needs), theirs) if convolution.FAMILY.trusted else theirs


def _layer(primitive, /, **attributes):
    return backend.in_memory(in_place(primitive, recurrent.KERNELS[primitive], attributes))


def _lstm(used=(0, 1, 2), needs=None):
    theirs = layers.mindspore_lstm(used)
    return backend.in_memory(in_place(layers.lstm, recurrent.KERNELS[layers.lstm], {}), theirs) if recurrent.FAMILY.trusted else theirs


def _reached(guard, *values, **attributes):
    return backend.in_reach() and guard(*values, **attributes)


def in_place(primitive, kernel, attributes, needs=None):
    """The primitive as a function of MindSpore tensors, with the gradient of its kernel; what the kernel does not take goes by NumPy
    and the primitive's own vjp. `needs`: inputs whose gradients are asked for, all by default; those of the others are zero."""

    def forward(*arrays):
        with quiet():
            found = kernel.forward(True, *arrays, **attributes)
            if found is None:
                results = primitive.host(*arrays, **attributes)
                return results, (None, arrays, results)
        results, kept = found
        if kernel.reads is not None:  # the memory of the others is let go
            arrays = [a if i in kernel.reads else np.broadcast_to(a.dtype.type(0), a.shape) for i, a in enumerate(arrays)]
        return results, (kept, arrays, None)

    def backward(kept, *cotangents):
        kept, arrays, results = kept
        with quiet():
            if kept is not None:
                grads = kernel.backward(kept, cotangents, needs or (True,) * len(arrays), *arrays, **attributes)
                return [np.zeros(a.shape, a.dtype) if g is None else g for g, a in zip(grads, arrays)]
            results = results if type(results) is tuple else (results,)
            grads, outs, inputs = ([Value(a.shape, a.dtype, a) for a in of] for of in (cotangents, results, arrays))
            with no_grad():
                found = (primitive.joint_vjp(grads, outs, (True,) * len(arrays), *inputs, **attributes) if primitive.vjp is None else
                         [vjp(grads[0], outs[0], *inputs, **attributes) for vjp in primitive.vjp])
                return [v.numpy for v in found]

    return backend.InPlace(primitive.name, forward, backward)
