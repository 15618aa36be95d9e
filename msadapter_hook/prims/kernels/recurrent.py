"""Recurrent layers by oneDNN over all time steps, the batch halved between two processors; what it does not take by NumPy, step by
step, with what the steps computed kept for the gradient.
"""

from functools import partial
from threading import Lock

import numpy as np

from msadapter_hook.backend import onednn, threads
from msadapter_hook.backend.onednn import (
    BACKWARD,
    BIAS,
    LEFT_TO_RIGHT,
    RELU,
    SOURCE,
    SOURCE_CELL,
    SOURCE_STATE,
    TANH,
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

_HALVES = 1 << 22  # multiplications from which on a second processor pays
_FEWEST = 4  # sequences of a half: fewer do not fill the products of a step


# ------------------------------------------------------------------------------------------------ cells
class _Cell:
    """What the library calls a cell, how many gates, states and rows of the bias it has."""

    def __init__(self, name, gates, states, offsets):
        self.name, self.gates, self.states, self.offsets = name, gates, states, offsets

    def given(self, w_ih, w_hh, b):
        """PyTorch's weights as the library wants them."""
        return w_ih, w_hh, b

    def found(self, dw_ih, dw_hh, db):
        """Their gradients, from those of the library."""
        return [dw_ih, dw_hh, db]


class _Gated(_Cell):
    """PyTorch's GRU: gates r, z, n, each with two biases; the library's order is z, r, n, and it tells the biases of n apart."""

    def given(self, w_ih, w_hh, b_ih, b_hh):
        (ir, iz, i_n), (hr, hz, hn) = np.split(b_ih, 3), np.split(b_hh, 3)
        return _turned(w_ih), _turned(w_hh), np.concatenate([iz + hz, ir + hr, i_n, hn])

    def found(self, dw_ih, dw_hh, db):
        z, r, n, hn = np.split(db, 4)
        return [_turned(dw_ih), _turned(dw_hh), np.concatenate([r, z, n]), np.concatenate([r, z, hn])]


def _turned(w):
    """The rows of gates r, z, n as z, r, n, and back."""
    r, z, n = np.split(w, 3)
    return np.concatenate([z, r, n])


_CELLS = {"lstm": _Cell("lstm", 4, 2, 4), "gru": _Gated("lbr_gru", 3, 1, 4), "rnn": _Cell("vanilla_rnn", 1, 1, 1)}


class Layer:
    """One layer and direction of a cell over x (T, B, I), hidden size H; `relu` instead of tanh in a plain cell."""

    def __init__(self, kind, relu, steps, batch, inputs, hidden):
        T, B, I, H = steps, batch, inputs, hidden
        self._cell = cell = _CELLS[kind]
        halves = B >= 2 * _FEWEST and T * B * (I + H) * H * cell.gates >= _HALVES
        sizes = [B - B // 2, B // 2] if halves else [B]
        self._cuts = [slice(sum(sizes[:i]), sum(sizes[:i + 1])) for i in range(len(sizes))]
        # gates and their units are the rows of PyTorch's matrices
        plain = [onednn.layout((1, 1, n, cell.gates, H), (cell.gates * H * n, cell.gates * H * n, 1, H * n, n)) for n in (I, H)]
        free = [onednn.layout((1, 1, n, cell.gates, H), "any") for n in (I, H)]
        bias = onednn.layout((1, 1, cell.offsets, H))
        activation, slopes = ((RELU if relu else TANH,), [onednn.number(0)] * 2) if kind == "rnn" else ((), [])
        none = (None, None) if kind == "lstm" else ()  # neither peepholes nor a projection
        roles = [(SOURCE_STATE, SOURCE_CELL)[:cell.states], (TARGET_STATE, TARGET_CELL)[:cell.states]]
        self._forward, self._backward = [], []
        for n in sizes:
            # a half of the batch, where it lies between the others
            x, y = onednn.layout((T, n, I), (B * I, I, 1)), onednn.layout((T, n, H), (B * H, H, 1))
            h = [onednn.layout((1, 1, n, H))] * cell.states
            ends = (x, *h, *free, *none, bias, y, *h)
            forward = Description(f"{cell.name}_forward", TRAINING, *activation, LEFT_TO_RIGHT, *ends, 0, *slopes)
            backward = Description(f"{cell.name}_backward", BACKWARD, *activation, LEFT_TO_RIGHT, *ends, *ends, 0, *slopes, forward)
            ahead, back, made = ([d.layout(what, i) for i in (0, 1)] for d, what in (
                (forward, "weights"), (backward, "weights"), (backward, "weights_gradient")))
            places = forward.layout("workspace")

            def members(of, weights, x=x, y=y, h=h):
                return [(of(SOURCE), x), *[(of(r), s) for r, s in zip(roles[0], h)], (of(WEIGHTS), weights[0]),
                        (of(WEIGHTS_STATE), weights[1]), (of(BIAS), bias), (of(TARGET), y), *[(of(r), s) for r, s in zip(roles[1], h)]]

            self._forward.append((Operation(forward, [*members(int, ahead), (WORKSPACE, places)]), places))
            unpack = [(onednn.reorder(m, p), onednn.room(m)) for p, m in zip(plain, made)]
            self._backward.append((Operation(backward, [*members(int, back), (WORKSPACE, places), *members(gradient, made)]), unpack))
            if n == sizes[0]:
                self._pack = [(onednn.reorder(p, m), onednn.room(m)) for p, m in zip(plain, ahead)]
                self._pack_back = [(onednn.reorder(p, m), onednn.room(m)) for p, m in zip(plain, back)]
        self._sizes, self._lock = (T, B, I, H), Lock()

    def _each(self, job):
        """Call `job` for every half, side by side."""
        threads.each([partial(job, i, cut) for i, cut in enumerate(self._cuts)])

    @staticmethod
    def _packed(packing, weights):
        for (pack, room), w in zip(packing, weights):
            pack(w, room)
        return [room for _, room in packing]

    def forward(self, x, states, *weights):
        """The outputs, the last states, and what the gradient needs."""
        T, B, _, H = self._sizes
        y, last = np.empty((T, B, H), np.float32), [np.empty((B, H), np.float32) for _ in states]
        places = [onednn.room(needed) for _, needed in self._forward]
        *weights, b = self._cell.given(*weights)

        def half(i, cut):
            self._forward[i][0](x[:, cut], *[s[cut] for s in states], *packed, b, y[:, cut], *[s[cut] for s in last], places[i])

        with self._lock:
            packed = self._packed(self._pack, weights)
            self._each(half)
        return y, last, places

    def backward(self, made, grads, x, states, *weights):
        """Gradients of all inputs; `made` is what `forward` gave, `grads` those of outputs and last states."""
        T, B, I, H = self._sizes
        y, last, places = made
        dx, before = np.empty((T, B, I), np.float32), [np.empty((B, H), np.float32) for _ in states]
        *weights, b = self._cell.given(*weights)
        found = [[np.empty_like(w) for w in weights] + [np.zeros_like(b)] for _ in self._cuts]

        def half(i, cut):
            backward, unpack = self._backward[i]
            raw = [room for _, room in unpack]
            for room in raw:
                room.fill(0)  # gradients of weights are added to what is there
            backward(x[:, cut], *[s[cut] for s in states], *packed, b, y[:, cut], *[s[cut] for s in last], places[i],
                     dx[:, cut], *[s[cut] for s in before], *raw, found[i][-1], *[g[:, cut] if g.ndim == 3 else g[cut] for g in grads])
            for (away, room), d in zip(unpack, found[i]):
                away(room, d)

        with self._lock:
            packed = self._packed(self._pack_back, weights)
            self._each(half)
        for total, more in zip(found[0], *found[1:]) if len(found) > 1 else ():
            total += more
        return [dx, *before, *self._cell.found(*found[0])]


def _check():
    rng = np.random.default_rng(0)

    def numbers(*shape):
        return rng.standard_normal(shape, np.float32)

    for kind, relu in (("lstm", False), ("gru", False), ("rnn", False), ("rnn", True)):
        cell, (steps, back) = _CELLS[kind], recurrent.STEPS[kind]
        rows = 4 * cell.gates
        states = [numbers(2, 4) for _ in range(cell.states)]
        inputs = [numbers(3, 2, 5), *states, numbers(rows, 5), numbers(rows, 4), *[numbers(rows) for _ in range(1 + (kind == "gru"))]]
        grads = [numbers(3, 2, 4), *[numbers(2, 4) for _ in states]]
        attributes = {"relu": relu} if kind == "rnn" else {}
        expected, made = getattr(recurrent, kind).host(*inputs, **attributes), Layer(kind, relu, 3, 2, 5, 4)
        results = made.forward(inputs[0], states, *inputs[1 + cell.states:])
        yield from zip((results[0], *results[1]), expected)
        found = made.backward(results, grads, inputs[0], states, *inputs[1 + cell.states:])
        yield from zip(found, back(recurrent.NUMPY, steps(recurrent.NUMPY, *inputs, **attributes)[0], *grads, *inputs, **attributes))


FAMILY = Family("recurrent layers", _check)
_operation = FAMILY.operation(Layer)


# ------------------------------------------------------------------------------------------------ kernels
def _full(grads, results):
    return [np.zeros_like(r) if g is None else np.ascontiguousarray(g) for g, r in zip(grads, results)]


def _kernel(kind):
    """Forward and backward by the library, or by NumPy over the steps that are kept."""
    count = 1 + _CELLS[kind].states
    steps, back = recurrent.STEPS[kind]

    def forward(keep, *inputs, **attributes):
        x, state = inputs[:2]
        if 0 in x.shape or not state.size:
            return None
        made = _operation(kind, attributes.get("relu", False), *x.shape, state.shape[1]) if x.dtype == np.float32 else None
        if made is None:
            computed, last = steps(recurrent.NUMPY, *inputs, **attributes)
            results = np.stack([s[-1] for s in computed]), *last
            return results, (None, computed, results)
        x, *rest = [np.ascontiguousarray(a) for a in inputs]
        given = x, rest[:count - 1], *rest[count - 1:]
        results = made.forward(*given)
        return (results[0], *results[1]), (made, results, given)

    def backward(kept, grads, needs, *inputs, **attributes):
        made, computed, given = kept
        if made is None:
            return back(recurrent.NUMPY, computed, *_full(grads, given), *inputs, **attributes)
        return made.backward(computed, _full(grads, (computed[0], *computed[1])), *given)

    return Kernel(forward, backward, dtypes=FLOATS)


KERNELS = {getattr(recurrent, kind): _kernel(kind) for kind in _CELLS}
