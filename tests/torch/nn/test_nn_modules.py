# Every module of torch.nn: print, state dictionary, seeded initial values, outputs and gradients as PyTorch's.
import base64
import json
import pathlib
import pickle
import sys

import pytest
import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import nn_golden
import nn_programs
from nn_cases import CASES

GOLDENS = pathlib.Path(__file__).parents[2] / "goldens"
RECORDED = json.loads((GOLDENS / "nn.json").read_text())
PROGRAMS = json.loads((GOLDENS / "nn_programs.json").read_text())


@pytest.mark.parametrize("index", range(len(CASES)), ids=[case[0].replace(" ", "_") for case in CASES])
def test_module_is_as_recorded(index):
    name, module, args = CASES[index]
    expected = RECORDED["cases"][f"{index:03d} {name}"]
    difference = nn_golden.different(expected, nn_golden.record(name, module, args, torch, nn), tolerance=1e-4)
    assert difference is None


# Programs whose subject is not there yet: strict, so that the day it is, the mark must go.
NOT_YET = {}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(reason=NOT_YET[name], strict=True) if name in NOT_YET else ())
        for name in nn_programs.NAMES
    ],
)
def test_program_prints_as_recorded(name):
    assert nn_programs.difference(PROGRAMS[name], nn_programs.run(name, torch, nn)) is None


def test_all_public_modules_are_there():
    assert sorted(nn.modules.__all__) == RECORDED["names"]
    assert [name for name in RECORDED["names"] if not hasattr(nn, name)] == []


@pytest.mark.parametrize("name", ["Linear", "MultiheadAttention", "LSTM", "Sequential", "CrossEntropyLoss", "LSTMCell"])
def test_class_is_pickled_under_pytorchs_name(name):
    cls = getattr(nn, name)
    files = {"Linear": "linear", "MultiheadAttention": "activation", "Sequential": "container"}
    files["CrossEntropyLoss"] = "loss"
    assert cls.__module__ == "torch.nn.modules." + files.get(name, "rnn")
    assert pickle.loads(pickle.dumps(cls)) is cls


def test_module_pickled_by_pytorch_is_read():
    model = pickle.loads(base64.b64decode(RECORDED["pickle"]))
    assert repr(model) == RECORDED["pickle_repr"]
    x = torch.arange(50.0).view(2, 1, 5, 5) / 50
    assert model.eval()(x)[0].flatten().tolist() == pytest.approx(RECORDED["pickle_output"], abs=1e-5)


def test_module_survives_pickle():
    model = nn.Sequential(nn.Linear(2, 3), nn.LSTM(3, 2), nn.Identity())
    again = pickle.loads(pickle.dumps(model))
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), again.state_dict().values()))
    assert again[1]._flat_weights[0] is again[1].weight_ih_l0


def test_functional_is_looked_up_at_the_call(monkeypatch):
    monkeypatch.setattr(nn.functional, "dropout", lambda *args, **kwargs: "replaced")
    assert nn.Dropout()(torch.ones(2)) == "replaced"


def test_quantized_modules_are_refused_by_name():
    with pytest.raises(NotImplementedError, match=r"nn\.quantized\.Linear.*quantized operators are not provided"):
        nn.quantized.Linear(2, 3)


def test_skip_init_draws_nothing():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    module = nn.utils.skip_init(nn.Conv2d, 3, 4, 2)
    assert torch.equal(torch.rand(3), expected)
    assert module.weight.shape == (4, 3, 2, 2)


def test_several_devices_in_one_process_are_refused():
    with pytest.raises(NotImplementedError, match="DataParallel"):
        nn.DataParallel(nn.Linear(1, 1), device_ids=[0, 1])


def test_lengths_of_packed_sequences_are_one_for_each():
    pack = torch.nn.utils.rnn.pack_padded_sequence
    with pytest.raises(RuntimeError, match="should be a 1D CPU int64 tensor, but got 2D cpu Long tensor"):
        pack(torch.randn(3, 2, 2), torch.tensor([[3, 2]]))
    with pytest.raises(RuntimeError, match="Cannot pack empty tensors"):
        pack(torch.randn(0, 1, 10), torch.zeros(1, 1, dtype=torch.int64))
