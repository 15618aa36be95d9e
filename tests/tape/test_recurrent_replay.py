"""Recurrent layers in plain replay: by their own kernels, in one program with what is around them."""

import numpy as np
import pytest
import torch

from msadapter_hook import backend
from msadapter_hook.backend.compiled import NotListed, compile_gradient
from msadapter_hook.prims import gru, lstm, recurrent, rnn
from msadapter_hook.tape.primitive import PREFER_HOST
from msadapter_hook.tape.program import Program

pytestmark = pytest.mark.skipif(PREFER_HOST or not backend.in_reach(), reason="replay of MindSpore's kernels, in this process's memory")
CASES = {  # primitive, gates, states, biases, attributes
    "lstm": (lstm, 4, 2, 1, {}), "gru": (gru, 3, 1, 2, {}),
    "tanh": (rnn, 1, 1, 1, {"relu": False}), "relu": (rnn, 1, 1, 1, {"relu": True})}


def arrays(gates, states, biases, steps, batch, inputs=6, hidden=8):
    rng = np.random.default_rng(0)
    rows = gates * hidden
    sizes = [(steps, batch, inputs), *[(batch, hidden)] * states, (rows, inputs), (rows, hidden), *[(rows,)] * biases]
    return [rng.standard_normal(s, np.float32) / 2 for s in sizes], [(steps, batch, hidden), *[(batch, hidden)] * states]


@pytest.mark.parametrize("steps, batch", [(1, 1), (5, 3), (7, 20)])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_the_steps(name, steps, batch):
    primitive, gates, states, biases, attributes = CASES[name]
    inputs, results = arrays(gates, states, biases, steps, batch)
    cotangents = [np.random.default_rng(1).standard_normal(s, np.float32) for s in results]
    ahead, back = recurrent.STEPS[primitive.name]
    made, last = ahead(recurrent.NUMPY, *inputs, **attributes)
    run = primitive.bound(**attributes)
    values, grads = backend.Gradient(lambda *given: run(*given), tuple(range(len(inputs))))(
        tuple(map(backend.from_numpy, inputs)), tuple(map(backend.from_numpy, cotangents)))
    for value, wanted in zip(values, [np.stack([s[-1] for s in made]), *last]):
        np.testing.assert_allclose(backend.as_numpy(value), wanted, rtol=1e-5, atol=1e-6)
    for grad, wanted in zip(grads, back(recurrent.NUMPY, made, *cotangents, *inputs, **attributes)):
        np.testing.assert_allclose(backend.as_numpy(grad), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layer", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_one_program_holds_the_layer_and_what_is_around_it(layer, monkeypatch):
    runs = []
    run = Program.run
    monkeypatch.setattr(Program, "run", lambda self, *given: runs.append(self.source) or run(self, *given))
    torch.manual_seed(0)
    embedding, layer, head = torch.nn.Embedding(7, 5), layer(5, 6), torch.nn.Linear(6, 7)
    x = torch.randint(0, 7, (4, 3))
    for _ in range(3):
        runs.clear()
        torch.nn.functional.cross_entropy(head(layer(embedding(x))[0]).view(-1, 7), x.view(-1)).backward()
        assert len(runs) == 1 and f"# {layer.mode.split('_')[0].lower()}" in runs[0]
        assert embedding.weight.grad.abs().sum() > 0


def test_a_program_that_would_round_otherwise_is_compiled_only_where_that_is_asked_for():
    inputs, _ = arrays(4, 2, 1, 4, 2)
    tensors, run = tuple(map(backend.from_numpy, inputs)), lstm.bound()
    with pytest.raises(NotListed, match="round otherwise"):
        compile_gradient(run, tensors, (0,), rounding=False)
    cotangents = tuple([backend.from_numpy(np.ones(s, np.float32)) for s in ((4, 2, 8), (2, 8), (2, 8))])
    (values, grads), (expected, found) = [call(tensors, cotangents) for call in (
        compile_gradient(run, tensors, (0,)), backend.Gradient(run, (0,)))]
    for a, b in zip((*values, *grads), (*expected, *found)):
        np.testing.assert_allclose(backend.as_numpy(a), backend.as_numpy(b), rtol=1e-5, atol=1e-6)


def test_what_mindspore_has_no_kernel_for_is_not_compiled():
    inputs, _ = arrays(3, 1, 2, 4, 2)
    with pytest.raises(NotImplementedError, match="no kernel"):
        compile_gradient(gru.bound(), tuple(map(backend.from_numpy, inputs)), (0,))
