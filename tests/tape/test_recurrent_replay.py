"""Recurrent layers in replay, plain and compiled: by their own kernels, in one program with what is around them."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from msadapter_hook import backend
from msadapter_hook.prims import gru, lstm, recurrent, rnn
from msadapter_hook.tape import replay
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


@pytest.mark.parametrize("name", CASES)
def test_a_compiled_program_gives_the_same_bits(name):
    primitive, gates, states, biases, attributes = CASES[name]
    inputs, results = arrays(gates, states, biases, 5, 9)
    positions, run = tuple(range(len(inputs))), primitive.bound(**attributes)
    tensors = tuple(map(backend.from_numpy, inputs))
    compiled, plain = backend.compile_gradient(run, tensors, positions), backend.Gradient(run, positions)
    for seed in range(3):
        cotangents = tuple([backend.from_numpy(np.random.default_rng(seed).standard_normal(s, np.float32)) for s in results])
        (values, grads), (expected, found) = compiled(tensors, cotangents), plain(tensors, cotangents)
        assert len(values) == len(results) and len(grads) == len(inputs)
        for a, b in zip((*values, *grads), (*expected, *found)):
            np.testing.assert_array_equal(backend.as_numpy(a), backend.as_numpy(b))


def losses(layer):
    torch.manual_seed(0)
    model, head = layer(5, 6, num_layers=2, bidirectional=True), torch.nn.Linear(12, 1)
    optimizer, x = torch.optim.Adam([*model.parameters(), *head.parameters()], 0.01), torch.randn(7, 9, 5)
    found = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = head(model(x)[0]).square().mean()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("layer", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_a_compiled_training_run_prints_the_same_losses(layer, monkeypatch):
    plain, compiled = losses(layer), []
    by_compiled = replay.Replay._by_compiled
    monkeypatch.setattr(replay.Replay, "_by_compiled", lambda self, *given: compiled.append(1) or by_compiled(self, *given))
    monkeypatch.setattr(replay, "policy", SimpleNamespace(compiled=0, wanted=1))
    assert losses(layer) == plain and compiled


def test_an_error_in_what_a_program_calls_back_is_raised():
    def forward(a):
        if a[0] == 0:
            raise ZeroDivisionError("a zero")
        return 1 / a, a

    inverse = backend.in_memory(backend.InPlace("inverse", forward, lambda a, g: -g / (a * a)))
    tensors, ones = [(backend.from_numpy(np.full(3, x, np.float32)),) for x in (2, 0, 4)], (backend.from_numpy(np.ones(3, np.float32)),)
    call = backend.compile_gradient(lambda x: (inverse(x),), tensors[0], (0,))
    for given, value, grad in ((0, 0.5, -0.25), (1, None, None), (2, 0.25, -0.0625)):
        if value is None:
            with pytest.raises(ZeroDivisionError, match="a zero"):
                call(tensors[given], ones)
        else:
            (found,), (slope,) = call(tensors[given], ones)
            assert backend.as_numpy(found).tolist() == [value] * 3 and backend.as_numpy(slope).tolist() == [grad] * 3


def test_errors_of_one_run_are_not_told_by_the_next():
    def forward(a):
        if a[0] == 0:
            raise ZeroDivisionError("a zero")
        return 1 / a, a

    one, two = [backend.in_memory(backend.InPlace(name, forward, lambda a, g: -g / (a * a))) for name in ("one", "two")]
    good, bad = [tuple([backend.from_numpy(np.full(3, x, np.float32)) for _ in range(3)]) for x in (2, 0)]
    ones = (backend.from_numpy(np.ones(3, np.float32)),) * 3
    # what is read first does not depend on what fails
    call = backend.compile_gradient(lambda a, b, c: (backend.primitive("Mul")(a, a), one(b), two(c)), good, (0, 1, 2))
    for _ in range(3):
        with pytest.raises(ZeroDivisionError, match="a zero"):
            call(bad, ones)
        values, _ = call(good, ones)
        assert [backend.as_numpy(v)[0] for v in values] == [4, 0.5, 0.5]


def test_a_layer_that_is_called_twice_keeps_what_each_call_needs():
    cell, tensors = gru.bound(), tuple(map(backend.from_numpy, arrays(3, 1, 2, 4, 2, 8, 8)[0]))
    cotangents = (backend.from_numpy(np.ones((4, 2, 8), np.float32)),)

    def twice(x, *rest):
        return (cell(cell(x, *rest)[0], *rest)[0],)

    (values, grads), (expected, found) = [make(tensors, cotangents) for make in (
        backend.compile_gradient(twice, tensors, (0, 2, 3)), backend.Gradient(twice, (0, 2, 3)))]
    for a, b in zip((*values, *grads), (*expected, *found)):
        np.testing.assert_array_equal(backend.as_numpy(a), backend.as_numpy(b))
