"""Recurrent layers (one layer, one direction, all time steps) and cells (one time step)."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import value_of

from ._contract import shaped
from .promotion import dtype_of
from .registry import composite, operator
from .tables import call

_STATES = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"


def _zeros_bias(w):
    return value_of(np.zeros(w.shape[0], w.dtype))


def _one_bias(w, b_ih, b_hh):
    """The sum of both biases: all that matters where they are only added."""
    if b_ih is None or b_hh is None:
        return b_ih or b_hh or _zeros_bias(w)
    return b_ih + b_hh


# ------------------------------------------------------------------------------------------------ layers
@operator(f"_lstm_layer(Tensor x, Tensor h0, Tensor c0, {_STATES}) -> (Tensor, Tensor, Tensor)", forms="function",
          saves="x h0 c0 w_ih w_hh", grad_name="MkldnnRnnLayerBackward0")
def _lstm_layer(x, h0, c0, w_ih, w_hh, b_ih=None, b_hh=None):
    return prims.lstm(x, h0, c0, w_ih, w_hh, _one_bias(w_ih, b_ih, b_hh))


@operator(f"_gru_layer(Tensor x, Tensor h0, {_STATES}) -> (Tensor, Tensor)", forms="function", saves="x h0 w_ih w_hh",
          grad_name="StackBackward0")
def _gru_layer(x, h0, w_ih, w_hh, b_ih=None, b_hh=None):
    return prims.gru(x, h0, w_ih, w_hh, b_ih or _zeros_bias(w_ih), b_hh or _zeros_bias(w_hh))


@operator(f"_rnn_layer(Tensor x, Tensor h0, {_STATES}, str nonlinearity='tanh') -> (Tensor, Tensor)", forms="function",
          saves="x h0 w_ih w_hh", grad_name="StackBackward0")
def _rnn_layer(x, h0, w_ih, w_hh, b_ih=None, b_hh=None, nonlinearity="tanh"):
    return prims.rnn(x, h0, w_ih, w_hh, _one_bias(w_ih, b_ih, b_hh), relu=nonlinearity == "relu")


def lstm_layer(x, h0, c0, w_ih, w_hh, b_ih, b_hh):
    """LSTM over x (T, B, I) from states (B, H): outputs (T, B, H) and the last states.

    Source: PyTorch, torch.nn.LSTM.
    """
    return call("_lstm_layer", x, h0, c0, w_ih, w_hh, b_ih, b_hh)


def gru_layer(x, h0, w_ih, w_hh, b_ih, b_hh):
    """GRU over x (T, B, I) from a state (B, H): outputs (T, B, H) and the last state. Source: PyTorch, torch.nn.GRU."""
    return call("_gru_layer", x, h0, w_ih, w_hh, b_ih, b_hh)


def rnn_layer(x, h0, w_ih, w_hh, b_ih, b_hh, nonlinearity):
    """Elman RNN over x (T, B, I) with tanh or relu: outputs (T, B, H) and the last state.

    Source: PyTorch, torch.nn.RNN.
    """
    return call("_rnn_layer", x, h0, w_ih, w_hh, b_ih, b_hh, nonlinearity)


# ------------------------------------------------------------------------------------------------ cells
def _check_cell(x, h, w_ih, gates):
    if x.ndim not in (1, 2):
        raise RuntimeError(f"Expected input to be 1D or 2D, got {x.ndim}D instead")
    if x.shape[-1] != w_ih.shape[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {x.shape[-1]} expected {w_ih.shape[1]}")
    if h.shape[-1] * gates != w_ih.shape[0]:
        raise RuntimeError(f"hidden0 has inconsistent hidden_size: got {h.shape[-1]}, expected "
                           f"{w_ih.shape[0] // gates}")
    if x.dtype != h.dtype:
        raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {dtype_of(x).scalar_name} and "
                           f"{dtype_of(h).scalar_name}")


def _as_sequence(x):
    """One time step as a sequence of it; an input without batch gets one of size 1."""
    return shaped(x, (1, 1, x.shape[0]) if x.ndim == 1 else (1,) + x.shape)


def _state(h):
    return shaped(h, (1, h.shape[0])) if h.ndim == 1 else h


@operator(f"_lstm_cell(Tensor input, Tensor h, Tensor c, {_STATES}) -> (Tensor, Tensor)", forms="function",
          grad_name="ThnnFusedLstmCellBackward0")
def _lstm_cell(input, h, c, w_ih, w_hh, b_ih=None, b_hh=None):
    _check_cell(input, h, w_ih, 4)
    _, hn, cn = prims.lstm(_as_sequence(input), _state(h), _state(c), w_ih, w_hh, _one_bias(w_ih, b_ih, b_hh))
    return shaped(hn, h.shape), shaped(cn, c.shape)


@composite(f"lstm_cell(Tensor input, Tensor[] hx, {_STATES}) -> (Tensor, Tensor)", forms="function")
def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of an LSTM: (h, c) from (h, c). Source: PyTorch, torch.lstm_cell."""
    return call("_lstm_cell", input, hx[0], hx[1], w_ih, w_hh, b_ih, b_hh)


@operator(f"gru_cell(Tensor input, Tensor hx, {_STATES}) -> Tensor", forms="function", grad_name="AddBackward0")
def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of a GRU. Source: PyTorch, torch.gru_cell."""
    _check_cell(input, hx, w_ih, 3)
    made = prims.gru(_as_sequence(input), _state(hx), w_ih, w_hh, b_ih or _zeros_bias(w_ih), b_hh or _zeros_bias(w_hh))
    return shaped(made[1], hx.shape)


def _plain_cell(input, hx, w_ih, w_hh, b_ih, b_hh, relu):
    _check_cell(input, hx, w_ih, 1)
    made = prims.rnn(_as_sequence(input), _state(hx), w_ih, w_hh, _one_bias(w_ih, b_ih, b_hh), relu=relu)
    return shaped(made[1], hx.shape)


@operator(f"rnn_tanh_cell(Tensor input, Tensor hx, {_STATES}) -> Tensor", forms="function", grad_name="TanhBackward0")
def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of an Elman RNN with tanh. Source: PyTorch, torch.rnn_tanh_cell."""
    return _plain_cell(input, hx, w_ih, w_hh, b_ih, b_hh, False)


@operator(f"rnn_relu_cell(Tensor input, Tensor hx, {_STATES}) -> Tensor", forms="function", grad_name="ReluBackward0")
def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step of an Elman RNN with relu. Source: PyTorch, torch.rnn_relu_cell."""
    return _plain_cell(input, hx, w_ih, w_hh, b_ih, b_hh, True)
