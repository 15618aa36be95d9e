"""The distributed examples, unmodified on two workers under the launchers, have the losses that PyTorch has with two of its own.
The goldens are recorded by tests/record/distributed.py."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOLDENS = json.loads((ROOT / "tests" / "goldens" / "distributed.json").read_text())
LAUNCHERS = {"ddp_tutorial": ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"), "digits_imagenet": ("--nproc", "2")}

_spec = importlib.util.spec_from_file_location("record_distributed", ROOT / "tests" / "record" / "distributed.py")
recorder = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(recorder)


@pytest.mark.parametrize("name", LAUNCHERS)
def test_two_workers_have_the_losses_of_pytorch(name, checkout, tmp_path):
    program = ROOT / "examples" / "distributed" / f"{name}.py"
    text = checkout.output("-m", "msadapter_hook", *LAUNCHERS[name], program, *recorder.PROGRAMS[name], cwd=tmp_path, timeout=300)
    losses = recorder.losses_of(text)
    assert any(losses == pytest.approx(golden, rel=2e-3) for golden in GOLDENS[name])
    assert losses[0] == pytest.approx(GOLDENS[name][0][0], rel=1e-4)


def test_one_process_alone_trains_and_goes_on_from_its_checkpoint(checkout, tmp_path):
    program = ROOT / "examples" / "distributed" / "digits_imagenet.py"
    checkout.output("-m", "msadapter_hook", program, "--epochs", 1, "--folder", tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint.pth.tar", "model_best.pth.tar"]
    text = checkout.output("-m", "msadapter_hook", program, "--epochs", 3, "--resume", tmp_path / "checkpoint.pth.tar")
    assert "(epoch 1)" in text and "Epoch: [2]" in text and "Epoch: [0]" not in text
    assert float(text.rsplit("best accuracy", 1)[1]) > 60


@pytest.mark.parametrize("name", LAUNCHERS)
def test_examples_say_nothing_of_the_adapter(name):
    source = (ROOT / "examples" / "distributed" / f"{name}.py").read_text().lower()
    assert not [word for word in ("msadapter", "mindspore", "enable_backward", "hook") if word in source]
