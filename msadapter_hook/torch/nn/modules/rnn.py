# Recurrent layers and cells. One call of `ops.recurrent` runs one layer in one direction over all its time steps.
import math
import numbers
import warnings

from msadapter_hook.ops import recurrent

from ... import cat, empty, stack, zeros
from .. import functional as F
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]

# Gates a mode computes from input and hidden state.
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _apply_permutation(tensor, permutation, dim=1):
    return tensor.index_select(dim, permutation)


def apply_permutation(tensor, permutation, dim=1):
    """Deprecated: `tensor.index_select(dim, permutation)`."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead",
        FutureWarning,
        stacklevel=2,
    )
    return _apply_permutation(tensor, permutation, dim)


def _projected_lstm_layer(x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr):
    """An LSTM layer whose hidden state is w_hr times the usual one."""
    outputs = []
    for from_input in F.linear(x, w_ih, b_ih).unbind(0):
        i, f, g, o = (from_input + F.linear(h, w_hh, b_hh)).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = F.linear(o.sigmoid() * c.tanh(), w_hr)
        outputs.append(h)
    return stack(outputs), h, c


def _layer(mode, x, states, weights):
    """One layer over x (T, B, I) from `states`, each (B, ·): (output (T, B, ·), last states)."""
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    if w_hr is not None:
        out, h, c = _projected_lstm_layer(x, *states, w_ih, w_hh, b_ih, b_hh, w_hr)
        return out, (h, c)
    if mode == "LSTM":
        out, h, c = recurrent.lstm_layer(x, *states, w_ih, w_hh, b_ih, b_hh)
        return out, (h, c)
    if mode == "GRU":
        out, h = recurrent.gru_layer(x, states[0], w_ih, w_hh, b_ih, b_hh)
    else:
        nonlinearity = "tanh" if mode == "RNN_TANH" else "relu"
        out, h = recurrent.rnn_layer(x, states[0], w_ih, w_hh, b_ih, b_hh, nonlinearity)
    return out, (h,)


def _spans(batch_sizes):
    """Stretches of time in which the batch keeps its size: (steps, size, first row of the packed data)."""
    spans = []
    row = 0
    for size in batch_sizes:
        if spans and spans[-1][1] == size:
            spans[-1][0] += 1
        else:
            spans.append([1, size, row])
        row += size
    return spans


def _packed_layer(mode, data, spans, states, weights, reverse):
    """`_layer` over packed rows: the batch shrinks as sequences end, or grows when time runs backwards."""
    outputs = []
    finished = []
    current = states
    if reverse:
        current = tuple(s[:0] for s in states)
    for steps, size, row in reversed(spans) if reverse else spans:
        have = current[0].size(0)
        if have > size:
            finished.append(tuple(s[size:] for s in current))
            current = tuple(s[:size] for s in current)
        elif have < size:
            current = tuple(cat([s, whole[have:size]]) for s, whole in zip(current, states))
        x = data[row : row + steps * size].reshape(steps, size, data.size(1))
        if reverse:
            x = x.flip(0)
        out, current = _layer(mode, x, current, weights)
        outputs.append((out.flip(0) if reverse else out).reshape(steps * size, out.size(2)))
    if reverse:
        outputs.reverse()
    finished.append(current)
    # Those that ended first stand last in the batch.
    last = tuple(cat(list(parts)) if len(finished) > 1 else parts[0] for parts in zip(*reversed(finished)))
    return (cat(outputs) if len(outputs) > 1 else outputs[0]), last


class RNNBase(Module):
    """What RNN, LSTM and GRU share. Source: PyTorch, torch.nn.RNNBase.

    forward: input (T, B, I), batch first (B, T, I), without batch (T, I), or a PackedSequence; optional initial
    states (layers·directions, B, H) → (output, last states). Parameters are named weight_ih_l0, weight_hh_l0,
    bias_ih_l0, bias_hh_l0 (weight_hr_l0 with projections), with `_reverse` for the other direction.
    """

    __constants__ = [
        "mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional",
        "proj_size",
    ]  # fmt: skip
    __jit_unused_properties__ = ["all_weights"]

    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        directions = 2 if bidirectional else 1

        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=2,
            )
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        if input_size <= 0:
            raise ValueError("input_size must be greater than zero")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)

        gates = _GATES[mode] * hidden_size
        state_size = proj_size if proj_size > 0 else hidden_size
        kind = {"device": device, "dtype": dtype}
        self._flat_weights_names = []
        self._all_weights = []
        for layer in range(num_layers):
            for direction in range(directions):
                width = input_size if layer == 0 else state_size * directions
                shapes = {"weight_ih": (gates, width), "weight_hh": (gates, state_size)}
                if bias:
                    shapes.update(bias_ih=(gates,), bias_hh=(gates,))
                if proj_size > 0:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                suffix = f"_l{layer}" + ("_reverse" if direction == 1 else "")
                names = [name + suffix for name in shapes]
                for name, shape in zip(names, shapes.values()):
                    setattr(self, name, Parameter(empty(shape, **kind)))
                self._flat_weights_names.extend(names)
                self._all_weights.append(names)
        self._init_flat_weights()
        self.reset_parameters()

    def _init_flat_weights(self):
        self._flat_weights = [getattr(self, name, None) for name in self._flat_weights_names]

    def __setattr__(self, attr, value):
        # Whoever replaces a weight (weight norm, parametrizations, pruning) replaces it in the flat list too.
        names = self.__dict__.get("_flat_weights_names")
        if names is not None and attr in names and "_flat_weights" in self.__dict__:
            self._flat_weights[names.index(attr)] = value
        super().__setattr__(attr, value)

    def flatten_parameters(self):
        """Nothing to do: no kernel here wants the weights in one piece of memory."""

    def _apply(self, fn, recurse=True):
        result = super()._apply(fn, recurse)
        self._init_flat_weights()
        return result

    def reset_parameters(self):
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def __getstate__(self):
        state = super().__getstate__()
        # The list is made anew from the names; copies of it would not follow the parameters.
        state.pop("_flat_weight_refs", None)
        state["_flat_weights"] = list(self._flat_weights)
        return state

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.pop("_flat_weight_refs", None)
        if "all_weights" in state:
            self.__dict__["_all_weights"] = state["all_weights"]
        self.__dict__.setdefault("proj_size", 0)
        if self._all_weights and not isinstance(self._all_weights[0][0], str):
            raise NotImplementedError("RNN modules pickled before their weights had names cannot be read.")
        if "_flat_weights_names" not in self.__dict__:
            self._flat_weights_names = [name for names in self._all_weights for name in names]
        self._init_flat_weights()

    def _replicate_for_data_parallel(self):
        replica = super()._replicate_for_data_parallel()
        replica._flat_weights = replica._flat_weights[:]
        return replica

    @property
    def all_weights(self):
        """Parameters, one list a layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text

    # --- checks

    def check_input(self, input, batch_sizes):
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )
        weight = self._flat_weights[0]
        if input.dtype != weight.dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )

    def _state_shape(self, input, batch_sizes, size):
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        return (self.num_layers * (2 if self.bidirectional else 1), batch, size)

    def get_expected_hidden_size(self, input, batch_sizes):
        return self._state_shape(input, batch_sizes, self.proj_size if self.proj_size > 0 else self.hidden_size)

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        return hx if permutation is None else _apply_permutation(hx, permutation)

    # --- computation; the states are a tuple here, one tensor for RNN and GRU, two for LSTM

    def _initial_sizes(self):
        return (self.proj_size if self.proj_size > 0 else self.hidden_size,)

    def _pack_states(self, states):
        return states[0]

    def _unpack_states(self, hx):
        return (hx,)

    def _weights_of(self, index):
        names = self._all_weights[index]
        start = index * len(names)
        weights = self._flat_weights[start : start + len(names)]
        w_ih, w_hh = weights[:2]
        b_ih, b_hh = weights[2:4] if self.bias else (None, None)
        return w_ih, w_hh, b_ih, b_hh, weights[-1] if self.proj_size > 0 else None

    def _check_unbatched_states(self, hx):
        if hx.dim() != 2:
            raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor")

    def _check_batched_states(self, hx):
        if hx.dim() != 3:
            raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor")

    def forward(self, input, hx=None):
        packed = input if isinstance(input, PackedSequence) else None
        batched = True
        batch_sizes = sorted_indices = unsorted_indices = None
        if packed is not None:
            input, batch_sizes, sorted_indices, unsorted_indices = packed
        else:
            if input.dim() not in (2, 3):
                raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D instead")
            batched = input.dim() == 3
            if not batched:
                input = input.unsqueeze(0 if self.batch_first else 1)
                if hx is not None:
                    self._check_unbatched_states(hx)
                    hx = self._pack_states(tuple(s.unsqueeze(1) for s in self._unpack_states(hx)))
            elif hx is not None:
                self._check_batched_states(hx)
        if hx is None:
            hx = self._pack_states(
                tuple(
                    zeros(self._state_shape(input, batch_sizes, size), dtype=input.dtype, device=input.device)
                    for size in self._initial_sizes()
                )
            )
            self.check_forward_args(input, hx, batch_sizes)
        else:
            self.check_forward_args(input, hx, batch_sizes)
            hx = self.permute_hidden(hx, sorted_indices)

        output, last = self._run(input, self._unpack_states(hx), batch_sizes)
        hidden = self._pack_states(last)
        if packed is not None:
            output = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
            return output, self.permute_hidden(hidden, unsorted_indices)
        if not batched:
            output = output.squeeze(0 if self.batch_first else 1)
            hidden = self._pack_states(tuple(s.squeeze(1) for s in self._unpack_states(hidden)))
        return output, hidden

    def _run(self, input, states, batch_sizes):
        directions = 2 if self.bidirectional else 1
        spans = None if batch_sizes is None else _spans(batch_sizes.tolist())
        x = input.transpose(0, 1) if self.batch_first and spans is None else input
        if x.size(0) == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        by_layer = list(zip(*(s.unbind(0) for s in states)))
        last = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                index = layer * directions + direction
                weights = self._weights_of(index)
                reverse = direction == 1
                if spans is not None:
                    out, final = _packed_layer(self.mode, x, spans, by_layer[index], weights, reverse)
                elif reverse:
                    out, final = _layer(self.mode, x.flip(0), by_layer[index], weights)
                    out = out.flip(0)
                else:
                    out, final = _layer(self.mode, x, by_layer[index], weights)
                outputs.append(out)
                last.append(final)
            x = outputs[0] if directions == 1 else cat(outputs, -1)
            if self.dropout > 0 and self.training and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, True)
        if self.batch_first and spans is None:
            x = x.transpose(0, 1)
        return x, tuple(stack(list(parts)) for parts in zip(*last))


class RNN(RNNBase):
    """Elman recurrence h' = tanh(W x + b + U h + c), or with relu. Source: PyTorch, torch.nn.RNN."""

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_TANH" if nonlinearity == "tanh" else "RNN_RELU", *args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory; states are a pair (h, c). Source: PyTorch, torch.nn.LSTM."""

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input, batch_sizes):
        return self._state_shape(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes):
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}"
        )
        self.check_hidden_size(
            hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}"
        )

    def permute_hidden(self, hx, permutation):
        if permutation is None:
            return hx
        return _apply_permutation(hx[0], permutation), _apply_permutation(hx[1], permutation)

    def _initial_sizes(self):
        return (self.proj_size if self.proj_size > 0 else self.hidden_size, self.hidden_size)

    def _pack_states(self, states):
        return states

    def _unpack_states(self, hx):
        return tuple(hx)

    def _check_unbatched_states(self, hx):
        if hx[0].dim() != 2 or hx[1].dim() != 2:
            raise RuntimeError(
                f"For unbatched 2-D input, hx and cx should also be 2-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) "
                "tensors"
            )

    def _check_batched_states(self, hx):
        if hx[0].dim() != 3 or hx[1].dim() != 3:
            raise RuntimeError(
                f"For batched 3-D input, hx and cx should also be 3-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) "
                "tensors"
            )


class GRU(RNNBase):
    """Gated recurrent unit. Source: PyTorch, torch.nn.GRU."""

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """What the cells share: two weights and two biases. Source: PyTorch, torch.nn.RNNCellBase."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        kind = {"device": device, "dtype": dtype}
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        self.weight_ih = Parameter(empty((num_chunks * hidden_size, input_size), **kind))
        self.weight_hh = Parameter(empty((num_chunks * hidden_size, hidden_size), **kind))
        if bias:
            self.bias_ih = Parameter(empty(num_chunks * hidden_size, **kind))
            self.bias_hh = Parameter(empty(num_chunks * hidden_size, **kind))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def reset_parameters(self):
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check(self, value, name):
        if value.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected {name} to be 1D or 2D, got {value.dim()}D instead")

    def _batch(self, input, states):
        """(input (B, I), states (B, H) each, whether there was a batch); missing states are zeros."""
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        size = input.size(-1)
        if size != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {size} expected {self.input_size}")
        made = []
        for index, state in enumerate(states):
            if state is None:
                state = zeros((input.size(0), self.hidden_size), dtype=input.dtype, device=input.device)
            elif not batched:
                state = state.unsqueeze(0)
            if input.size(0) != state.size(0):
                raise RuntimeError(
                    f"Input batch size {input.size(0)} doesn't match hidden{index} batch size {state.size(0)}"
                )
            if state.size(1) != self.hidden_size:
                raise RuntimeError(
                    f"hidden{index} has inconsistent hidden_size: got {state.size(1)}, expected {self.hidden_size}"
                )
            made.append(state)
        return input, made, batched

    def _projections(self, input, h):
        return F.linear(input, self.weight_ih, self.bias_ih), F.linear(h, self.weight_hh, self.bias_hh)


class RNNCell(RNNCellBase):
    """One step of an Elman recurrence. Source: PyTorch, torch.nn.RNNCell."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        self._check(input, "input")
        if hx is not None:
            self._check(hx, "hidden")
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        input, (h,), batched = self._batch(input, [hx])
        from_input, from_hidden = self._projections(input, h)
        result = from_input + from_hidden
        result = result.tanh() if self.nonlinearity == "tanh" else result.relu()
        return result if batched else result.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of an LSTM: (input, (h, c)) → (h, c). Source: PyTorch, torch.nn.LSTMCell."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input, hx=None):
        self._check(input, "input")
        if hx is not None:
            for index, state in enumerate(hx):
                if state.dim() not in (1, 2):
                    raise ValueError(f"LSTMCell: Expected hx[{index}] to be 1D or 2D, got {state.dim()}D instead")
        input, (h, c), batched = self._batch(input, [None, None] if hx is None else list(hx))
        from_input, from_hidden = self._projections(input, h)
        i, f, g, o = (from_input + from_hidden).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of a GRU. Source: PyTorch, torch.nn.GRUCell."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input, hx=None):
        self._check(input, "input")
        if hx is not None:
            self._check(hx, "hidden")
        input, (h,), batched = self._batch(input, [hx])
        from_input, from_hidden = self._projections(input, h)
        r_i, z_i, n_i = from_input.chunk(3, 1)
        r_h, z_h, n_h = from_hidden.chunk(3, 1)
        reset = (r_i + r_h).sigmoid()
        update = (z_i + z_h).sigmoid()
        new = (n_i + reset * n_h).tanh()
        result = (h - new) * update + new
        return result if batched else result.squeeze(0)
