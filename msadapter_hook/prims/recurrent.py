"""Recurrent layers over all time steps: one layer, one direction; x (T, B, I), states (B, H), weights as PyTorch lays
them out.

Forward and backward are written once, over a handful of array functions: with NumPy for speed, with primitives where
the gradient itself is to be differentiated.
"""

import math
from types import SimpleNamespace

import numpy as np
import scipy.special as sp

from msadapter_hook.backend import moving, primitive
from msadapter_hook.tape import Primitive
from msadapter_hook.tape.recording import state

from . import linear, movement, pointwise, reduction

__all__ = ["gru", "lstm", "rnn"]


# ------------------------------------------------------------------------------------------------ array functions
def _sigmoid(a):
    return sp.expit(a)


NUMPY = SimpleNamespace(
    sigmoid=_sigmoid, tanh=np.tanh, relu=lambda a: np.maximum(a, 0), positive=lambda a: (a > 0).astype(a.dtype),
    matmul=np.matmul, matmul_t=lambda a, b: np.matmul(a, b.T), t=lambda a: a.T,
    split=lambda a, n: np.split(a, n, -1), cat=lambda parts: np.concatenate(parts, -1), stack=np.stack,
    row=lambda a, t: a[t], reshape=lambda a, *shape: a.reshape(shape), sum0=lambda a: a.sum(0), zeros=np.zeros_like)


def _row(v, t):
    rest = v.shape[1:]
    part = movement.strided_slice(v, start=(t,) + (0,) * len(rest), stop=(t + 1,) + rest, step=(1,) * v.ndim)
    return movement.reshape(part, shape=rest)


def _split(v, n):
    width = v.shape[-1] // n
    return [movement.strided_slice(v, start=(0, i * width), stop=(v.shape[0], (i + 1) * width), step=(1, 1)) for i in range(n)]


PRIMITIVES = SimpleNamespace(
    sigmoid=lambda a: pointwise.sigmoid(a), tanh=lambda a: pointwise.tanh(a), relu=lambda a: pointwise.relu(a),
    positive=lambda a: movement.cast(a > 0, dtype=a.dtype), matmul=lambda a, b: linear.matmul(a, b),
    matmul_t=lambda a, b: linear.matmul(a, b, transpose_b=True), t=lambda a: movement.transpose(a, axes=(1, 0)),
    split=_split, cat=lambda parts: movement.concat(*parts, axis=parts[0].ndim - 1),
    stack=lambda parts: movement.stack(*parts, axis=0), row=_row, reshape=lambda a, *shape: movement.reshape(a, shape=shape),
    sum0=lambda a: reduction.sum(a, axes=(0,), keepdims=False), zeros=lambda a: movement.zeros_like(a))


def _weights_gradient(K, dz, x, before, w_ih, dh_z=None):
    """Gradients of x, w_ih, w_hh and the bias from those of the gates (T, B, G)."""
    steps, batch, inputs = x.shape
    gates, hidden = dz.shape[2], before.shape[2]
    flat = K.reshape(dz, steps * batch, gates)
    flat_h = flat if dh_z is None else K.reshape(dh_z, steps * batch, gates)
    dx = K.reshape(K.matmul(flat, w_ih), steps, batch, inputs)
    dw_ih = K.matmul(K.t(flat), K.reshape(x, steps * batch, inputs))
    dw_hh = K.matmul(K.t(flat_h), K.reshape(before, steps * batch, hidden))
    return dx, dw_ih, dw_hh, K.sum0(flat), K.sum0(flat_h)


def _projected(K, x, w, b):
    steps, batch, inputs = x.shape
    return K.reshape(K.matmul_t(K.reshape(x, steps * batch, inputs), w) + b, steps, batch, w.shape[0])


# ------------------------------------------------------------------------------------------------ LSTM
def _lstm_steps(K, x, h, c, w_ih, w_hh, b):
    """What each step computed, its output last; and the last states."""
    inputs = _projected(K, x, w_ih, b)
    steps = []
    for t in range(x.shape[0]):
        i, f, g, o = K.split(K.row(inputs, t) + K.matmul_t(h, w_hh), 4)
        i, f, g, o = K.sigmoid(i), K.sigmoid(f), K.tanh(g), K.sigmoid(o)
        before = h, c
        c = f * c + i * g
        tc = K.tanh(c)
        h = o * tc
        steps.append((before, i, f, g, o, tc, h))
    return steps, (h, c)


def _lstm_back(K, steps, gy, gh, gc, x, h, c, w_ih, w_hh, b):
    dh, dc, rows = gh, gc, []
    for t in range(len(steps) - 1, -1, -1):
        (_, before_c), i, f, g, o, tc, _ = steps[t]
        dh = dh + K.row(gy, t)
        dc = dc + dh * o * (1 - tc * tc)
        dz = K.cat([dc * g * i * (1 - i), dc * before_c * f * (1 - f), dc * i * (1 - g * g), dh * tc * o * (1 - o)])
        rows.append(dz)
        dc = dc * f
        dh = K.matmul(dz, w_hh)
    before = K.stack([s[0][0] for s in steps])
    dx, dw_ih, dw_hh, db, _ = _weights_gradient(K, K.stack(rows[::-1]), x, before, w_ih)
    return dx, dh, dc, dw_ih, dw_hh, db


# ------------------------------------------------------------------------------------------------ GRU
def _gru_steps(K, x, h, w_ih, w_hh, b_ih, b_hh):
    inputs = _projected(K, x, w_ih, b_ih)
    steps = []
    for t in range(x.shape[0]):
        xr, xz, xn = K.split(K.row(inputs, t), 3)
        hr, hz, hn = K.split(K.matmul_t(h, w_hh) + b_hh, 3)
        r, z = K.sigmoid(xr + hr), K.sigmoid(xz + hz)
        n = K.tanh(xn + r * hn)
        before = h
        h = n + z * (h - n)
        steps.append((before, r, z, n, hn, h))
    return steps, (h,)


def _gru_back(K, steps, gy, gh, x, h, w_ih, w_hh, b_ih, b_hh):
    dh, rows, hidden_rows = gh, [], []
    for t in range(len(steps) - 1, -1, -1):
        before, r, z, n, hn, _ = steps[t]
        dh = dh + K.row(gy, t)
        dn = dh * (1 - z) * (1 - n * n)
        dz = dh * (before - n) * z * (1 - z)
        dr = dn * hn * r * (1 - r)
        rows.append(K.cat([dr, dz, dn]))
        hidden_rows.append(K.cat([dr, dz, dn * r]))
        dh = dh * z + K.matmul(hidden_rows[-1], w_hh)
    before = K.stack([s[0] for s in steps])
    dx, dw_ih, dw_hh, db_ih, db_hh = _weights_gradient(
        K, K.stack(rows[::-1]), x, before, w_ih, K.stack(hidden_rows[::-1]))
    return dx, dh, dw_ih, dw_hh, db_ih, db_hh


# ------------------------------------------------------------------------------------------------ plain
def _rnn_steps(K, x, h, w_ih, w_hh, b, *, relu):
    inputs = _projected(K, x, w_ih, b)
    act = K.relu if relu else K.tanh
    steps = []
    for t in range(x.shape[0]):
        before = h
        h = act(K.row(inputs, t) + K.matmul_t(h, w_hh))
        steps.append((before, h))
    return steps, (h,)


def _rnn_back(K, steps, gy, gh, x, h, w_ih, w_hh, b, *, relu):
    dh, rows = gh, []
    for t in range(len(steps) - 1, -1, -1):
        _, out = steps[t]
        dh = dh + K.row(gy, t)
        rows.append(dh * K.positive(out) if relu else dh * (1 - out * out))
        dh = K.matmul(rows[-1], w_hh)
    dx, dw_ih, dw_hh, db, _ = _weights_gradient(K, K.stack(rows[::-1]), x, K.stack([s[0] for s in steps]), w_ih)
    return dx, dh, dw_ih, dw_hh, db


# ------------------------------------------------------------------------------------------------ primitives
def _single(kernel):
    """The kernel over NumPy; half precision computes in float32."""

    def run(*arrays, **attributes):
        dtype = arrays[0].dtype
        if dtype.itemsize < 4:
            made = kernel(NUMPY, *[a.astype(np.float32) for a in arrays], **attributes)
            return [m.astype(dtype) for m in made]
        return kernel(NUMPY, *arrays, **attributes)

    return run


def _define(name, steps, back, outputs, mindspore=None):
    def forward(K, *inputs, **attributes):
        made, last = steps(K, *inputs, **attributes)
        return K.stack([s[-1] for s in made]), *last

    def backward(K, *given, **attributes):
        grads, inputs = given[:outputs], given[outputs:]
        return back(K, steps(K, *inputs, **attributes)[0], *grads, *inputs, **attributes)

    gradient = Primitive(name + "_gradient", host=_single(backward), outputs=None, differentiable=False)

    def vjp(grads, outs, needs, *inputs, **attributes):
        full = [g if g is not None else movement.zeros_like(o) for g, o in zip(grads, outs)]
        if state.enabled and any(v.requires_grad for v in (*full, *inputs)):
            return list(backward(PRIMITIVES, *full, *inputs, **attributes))
        return list(gradient(*full, *inputs, **attributes))

    STEPS[name] = steps, back
    return Primitive(name, host=_single(forward), mindspore=mindspore, joint_vjp=vjp, outputs=outputs,
                     guard=lambda x, h, *rest, **attributes: 0 not in x.shape and h.size > 0)


STEPS = {}  # name of a primitive -> its steps over array functions, and the gradients from what the steps computed


def _apart(shapes, flat):
    parts, at = [], 0
    for shape in shapes:
        parts.append(flat[at:at + math.prod(shape)].reshape(shape))
        at += math.prod(shape)
    return parts


def mindspore_lstm(used=(0, 1, 2)):
    """MindSpore's kernel, with those of the outputs that are asked for."""
    concat, reshape = primitive("Concat", 0), primitive("Reshape")
    expand, squeeze = primitive("ExpandDims"), primitive("Squeeze", 0)
    joined = moving(lambda *parts: concat([reshape(p, (-1,)) for p in parts]),
                    lambda *parts: np.concatenate([p.reshape(-1) for p in parts]), _apart)

    def run(x, h, c, w_ih, w_hh, b):
        kernel = primitive("LSTM", x.shape[2], h.shape[1], 1, True, False, 0.0)
        made = kernel(x, expand(h, 0), expand(c, 0), reshape(joined(w_ih, w_hh, b), (-1, 1, 1)))
        return made[0], *[squeeze(made[i]) if i in used else None for i in (1, 2)]

    return run


lstm = _define("lstm", _lstm_steps, _lstm_back, 3, mindspore_lstm)
lstm.partial = lambda used, needs: mindspore_lstm(used)
gru = _define("gru", _gru_steps, _gru_back, 2)
rnn = _define("rnn", _rnn_steps, _rnn_back, 2)
