"""A checkpoint that PyTorch 2.13 wrote half-way through a training goes on here with PyTorch's losses (tests/checkpoints.py)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GOLDENS = ROOT / "tests" / "goldens" / "checkpoints"


def second_half(tmp_path, checkpoint, *more):
    out = tmp_path / "losses.json"
    environment = dict(os.environ, ENABLE_BACKWARD="1", PYTHONPATH=os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    subprocess.run([sys.executable, "-m", "msadapter_hook", str(ROOT / "tests/record/half_way.py"), "--losses", str(out),
                    *(["--load", str(checkpoint)] if checkpoint else []), *more], check=True, env=environment)
    return json.loads(out.read_text())["losses"]


def test_training_goes_on_from_pytorchs_file(tmp_path):
    expected = json.loads((GOLDENS / "Adam-second.json").read_text())["losses"]
    assert second_half(tmp_path, GOLDENS / "half_way.pt") == pytest.approx(expected, rel=1e-3)


def test_training_goes_on_from_our_file(tmp_path):
    expected = [json.loads((GOLDENS / f"Adam-{half}.json").read_text())["losses"] for half in ("first", "second")]
    assert second_half(tmp_path, None, "--save", str(tmp_path / "half.pt")) == pytest.approx(expected[0], rel=1e-3)
    assert second_half(tmp_path, tmp_path / "half.pt") == pytest.approx(expected[1], rel=1e-3)
