"""Recurrent layers: the LSTM by oneDNN over all time steps; the others, and what oneDNN does not take, by NumPy, step by step,
with what the steps computed kept for the gradient."""

from threading import Lock

import numpy as np

from msadapter_hook.backend import onednn
from msadapter_hook.backend.onednn import (
    BACKWARD,
    BIAS,
    LEFT_TO_RIGHT,
    SOURCE,
    SOURCE_CELL,
    SOURCE_STATE,
    TARGET,
    TARGET_CELL,
    TARGET_STATE,
    TRAINING,
    WEIGHTS,
    WEIGHTS_STATE,
    WORKSPACE,
    Description,
    Operation,
    gradient,
)
from msadapter_hook.tape.kernel import Kernel

from .. import recurrent
from .linear import FLOATS
from .trust import Family


# ------------------------------------------------------------------------------------------------ LSTM
class LSTM:
    """One layer and direction over x (T, B, I), hidden size H, with PyTorch's weights, of which oneDNN has the same order."""

    def __init__(self, steps, batch, inputs, hidden):
        T, B, I, H = steps, batch, inputs, hidden
        x, y, h, bias = onednn.layout((T, B, I)), onednn.layout((T, B, H)), onednn.layout((1, 1, B, H)), onednn.layout((1, 1, 4, H))
        # gates and their units are the rows of PyTorch's matrices
        plain = [onednn.layout((1, 1, n, 4, H), (4 * H * n, 4 * H * n, 1, H * n, n)) for n in (I, H)]
        free = [onednn.layout((1, 1, n, 4, H), "any") for n in (I, H)]
        forward = Description("lstm_forward", TRAINING, LEFT_TO_RIGHT, x, h, h, *free, None, None, bias, y, h, h, 0)
        backward = Description("lstm_backward", BACKWARD, LEFT_TO_RIGHT, x, h, h, *free, None, None, bias, y, h, h,
                               x, h, h, *free, None, None, bias, y, h, h, 0, forward)
        ahead = [forward.layout("weights", i) for i in (0, 1)]
        back = [backward.layout("weights", i) for i in (0, 1)]
        made = [backward.layout("weights_gradient", i) for i in (0, 1)]
        self._pack = [(onednn.reorder(p, m), onednn.room(m)) for p, m in zip(plain, ahead)]
        self._pack_back = [(onednn.reorder(p, m), onednn.room(m)) for p, m in zip(plain, back)]
        self._unpack = [(onednn.reorder(m, p), onednn.room(m)) for p, m in zip(plain, made)]
        self._places = forward.layout("workspace")

        def ends(of, weights):
            return [(of(SOURCE), x), (of(SOURCE_STATE), h), (of(SOURCE_CELL), h), (of(WEIGHTS), weights[0]),
                    (of(WEIGHTS_STATE), weights[1]), (of(BIAS), bias), (of(TARGET), y), (of(TARGET_STATE), h), (of(TARGET_CELL), h)]

        self._forward = Operation(forward, [*ends(int, ahead), (WORKSPACE, self._places)])
        self._backward = Operation(backward, [*ends(int, back), (WORKSPACE, self._places), *ends(gradient, made)])
        self._sizes, self._lock = (T, B, I, H), Lock()

    def forward(self, x, h, c, w_ih, w_hh, b):
        """The outputs, the last states, and what the gradient needs."""
        T, B, _, H = self._sizes
        y, (hn, cn), places = np.empty((T, B, H), np.float32), np.empty((2, B, H), np.float32), onednn.room(self._places)
        with self._lock:
            packed = self._packed(self._pack, w_ih, w_hh)
            self._forward(x, h, c, *packed, b, y, hn, cn, places)
        return y, hn, cn, places

    def backward(self, made, gy, gh, gc, x, h, c, w_ih, w_hh, b):
        """Gradients of the six inputs; `made` is what `forward` gave."""
        T, B, I, H = self._sizes
        dx, (dh, dc), db = np.empty((T, B, I), np.float32), np.empty((2, B, H), np.float32), np.zeros(4 * H, np.float32)
        dw = np.empty((4 * H, I), np.float32), np.empty((4 * H, H), np.float32)
        y, hn, cn, places = made
        with self._lock:
            packed = self._packed(self._pack_back, w_ih, w_hh)
            raw = [room for _, room in self._unpack]
            for room in raw:
                room.fill(0)  # gradients of weights are added to what is there
            self._backward(x, h, c, *packed, b, y, hn, cn, places, dx, dh, dc, *raw, db, gy, gh, gc)
            for (unpack, room), d in zip(self._unpack, dw):
                unpack(room, d)
        return [dx, dh, dc, *dw, db]

    @staticmethod
    def _packed(packing, *weights):
        for (pack, room), w in zip(packing, weights):
            pack(w, room)
        return [room for _, room in packing]


def _check():
    rng = np.random.default_rng(0)

    def numbers(*shape):
        return rng.standard_normal(shape, np.float32)

    inputs = numbers(3, 2, 5), numbers(2, 4), numbers(2, 4), numbers(16, 5), numbers(16, 4), numbers(16)
    grads = numbers(3, 2, 4), numbers(2, 4), numbers(2, 4)
    steps, back = recurrent.STEPS["lstm"]
    expected, made = recurrent.lstm.host(*inputs), LSTM(3, 2, 5, 4)
    results = made.forward(*inputs)
    yield from zip(results, expected)
    found = made.backward(results, *grads, *inputs)
    yield from zip(found, back(recurrent.NUMPY, steps(recurrent.NUMPY, *inputs)[0], *grads, *inputs))


_operation = Family("LSTM", _check).operation(LSTM)


def _lstm(keep, x, h, c, w_ih, w_hh, b):
    made = _operation(*x.shape, h.shape[1]) if 0 not in x.shape and h.size and x.dtype == np.float32 else None
    if made is None:
        return _by_steps("lstm")[0](keep, x, h, c, w_ih, w_hh, b)
    inputs = [np.ascontiguousarray(a) for a in (x, h, c, w_ih, w_hh, b)]
    results = made.forward(*inputs)
    return results[:3], (made, results, inputs)


def _lstm_back(kept, grads, needs, *inputs):
    if len(kept) == 2:
        return _by_steps("lstm")[1](kept, grads, needs, *inputs)
    made, results, inputs = kept
    return made.backward(results, *[np.ascontiguousarray(g) for g in _full(grads, results)], *inputs)


# ------------------------------------------------------------------------------------------------ step by step
def _full(grads, results):
    return [np.zeros_like(r) if g is None else g for g, r in zip(grads, results)]


def _by_steps(name):
    """Forward and backward by NumPy, over the steps that are kept."""
    steps, back = recurrent.STEPS[name]

    def forward(keep, *inputs, **attributes):
        if 0 in inputs[0].shape:
            return None
        made, last = steps(recurrent.NUMPY, *inputs, **attributes)
        results = np.stack([s[-1] for s in made]), *last
        return results, (made, results)

    def backward(kept, grads, needs, *inputs, **attributes):
        made, results = kept
        return back(recurrent.NUMPY, made, *_full(grads, results), *inputs, **attributes)

    return forward, backward


KERNELS = {
    recurrent.lstm: Kernel(_lstm, _lstm_back, dtypes=FLOATS),
    recurrent.gru: Kernel(*_by_steps("gru"), dtypes=FLOATS),
    recurrent.rnn: Kernel(*_by_steps("rnn"), dtypes=FLOATS),
}
