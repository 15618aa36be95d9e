"""Every example, run unmodified under the hook, has the losses that PyTorch has with the same seed.
The goldens are recorded by tests/record/examples.py."""
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "tests" / "goldens" / "examples"
NAMES = sorted(p.stem for p in (ROOT / "examples").glob("*.py"))
RELATIVE = 1e-3

_spec = importlib.util.spec_from_file_location("record_examples", ROOT / "tests" / "record" / "examples.py")
recorder = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(recorder)


def run_under_hook(name, steps, folder, *args):
    run = subprocess.run([sys.executable, "-m", "msadapter_hook", str(ROOT / "examples" / f"{name}.py"),
                          "--steps", str(steps), *args], cwd=folder, capture_output=True, text=True, timeout=600,
                         check=False)
    assert run.returncode == 0, f"{name} failed with status {run.returncode}\n{run.stderr[-4000:]}"
    return run.stdout


def test_every_example_has_a_golden():
    assert NAMES == sorted(p.stem for p in GOLDENS.glob("*.json"))
    assert len(NAMES) >= 7


@pytest.mark.parametrize("name", NAMES)
def test_examples_say_nothing_of_the_adapter(name):
    source = (ROOT / "examples" / f"{name}.py").read_text().lower()
    assert not [word for word in ("msadapter", "mindspore", "enable_backward", "hook") if word in source]


@pytest.mark.parametrize("name", NAMES)
def test_losses_equal_pytorch(name, tmp_path):
    golden = json.loads((GOLDENS / f"{name}.json").read_text())
    rows = recorder.losses_of(run_under_hook(name, golden["steps"], tmp_path))
    assert len(rows) == golden["steps"]
    for key, expected in golden["losses"].items():
        got = [row[key] for row in rows]
        far = [(i, g, e) for i, (g, e) in enumerate(zip(got, expected, strict=True))
               if not abs(g - e) <= RELATIVE * abs(e)]
        assert not far, f"{key} differs from step {far[0][0]} on: {far[0][1]} instead of {far[0][2]} ({len(far)} steps)"


def test_digits_reach_the_promised_accuracy(tmp_path):
    last = run_under_hook("digits_cnn", 345, tmp_path).strip().splitlines()[-1]
    assert last.startswith("accuracy: ")
    assert float(last.split()[1]) >= 0.97
