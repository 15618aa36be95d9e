"""Devices against PyTorch's (tests/record/dtypes.py), and the block form."""

import copy
import importlib
import json
import pathlib
import pickle
import sys
import threading
import types

import pytest

from msadapter_hook.tensor.device import device

dv = importlib.import_module("msadapter_hook.tensor.device")  # the module: the package gives its name to the class
GOLDENS = json.loads((pathlib.Path(__file__).parents[1] / "goldens" / "dtypes.json").read_text())


@pytest.fixture(autouse=True)
def no_accelerator(monkeypatch):
    monkeypatch.setattr(dv, "accelerator_type", None)
    monkeypatch.setattr(dv, "_default", None)


def outcome(call):
    try:
        return ["ok", str(call())]
    except Exception as e:
        return [type(e).__name__, str(e)]


@pytest.mark.parametrize(("args", "shown", "text"), GOLDENS["devices"], ids=lambda v: "" if v else "none")
def test_device_of_arguments(args, shown, text):
    assert outcome(lambda: repr(device(*args))) == shown
    assert outcome(lambda: device(*args)) == text


def test_keywords():
    assert device(type="cuda", index=1) == device("cuda", index=1) == device("cuda:1")
    assert device(device="cuda:1") == device(device("cuda:1")) == device("cuda:1")
    assert device(type="cpu") == device("cpu")
    with pytest.raises(RuntimeError, match="must not include an index because index was passed explicitly: cuda:1"):
        device(type="cuda:1")
    with pytest.raises(TypeError, match=r"argument 'type' \(position 1\) must be str, not torch.device"):
        device(device("cuda"), 1)
    with pytest.raises(TypeError, match=r"got \(index=int, \)"):
        device(index=1)


def test_ascend_is_a_device():
    assert (device("npu:1").type, device("npu:1").index, str(device("npu"))) == ("npu", 1, "npu")


def test_a_bare_index_means_the_accelerator():
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
        device(1)
    dv.set_accelerator("npu")
    assert device(1) == device("npu:1")


def test_equality_and_hash():
    assert device("cuda:0") == device("cuda", 0) and hash(device("cuda:0")) == hash(device("cuda", 0))
    assert device("cuda") != device("cuda:0")
    assert device("cpu") != "cpu"
    assert len({device("cpu"), device("cpu"), device("meta")}) == 2
    with pytest.raises(TypeError, match="comparison not implemented"):
        assert device("cpu") < device("cuda")


def test_fixed_and_closed():
    with pytest.raises(AttributeError, match="attribute 'index' of 'torch.device' objects is not writable"):
        device("cpu").index = 1
    with pytest.raises(AttributeError, match="'torch.device' object has no attribute 'speed'"):
        device("cpu").speed = 1
    with pytest.raises(TypeError, match="is not an acceptable base type"):
        type("Mine", (device,), {})


def test_pickled_as_pytorch_does(monkeypatch):
    root = types.ModuleType("torch")
    root.device = device
    monkeypatch.setitem(sys.modules, "torch", root)
    for d in (device("cpu"), device("cuda:1")):
        text = GOLDENS["pickles"][repr(d)].encode("latin1")
        assert pickle.dumps(d, 2) == text
        assert pickle.loads(text) == d
        assert copy.deepcopy(d) is d


def test_blocks_nest_and_belong_to_their_thread():
    seen = []
    assert dv.current_device() == device("cpu")
    with device("meta") as d:
        assert d == device("meta") == dv.current_device()
        with device("cuda:1"):
            assert dv.current_device() == device("cuda:1")
            thread = threading.Thread(target=lambda: seen.append(dv.current_device()))
            thread.start()
            thread.join()
        assert dv.current_device() == device("meta")
    assert dv.current_device() == device("cpu") == seen[0]


def test_a_block_ends_on_an_error():
    with pytest.raises(ZeroDivisionError), device("meta"):
        1 / 0  # noqa: B018
    assert dv.current_device() == device("cpu")


def test_default_device():
    dv.set_default_device("meta")
    assert dv.current_device() == device("meta")
    with device("cpu"):
        assert dv.current_device() == device("cpu")
    dv.set_default_device(None)
    assert dv.current_device() == device("cpu")
