"""An unmodified loop with autocast, GradScaler and clipped gradients learns the digits."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "mixed_precision" / "digits_amp.py"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_mixed_precision_reaches_97_percent(dtype, tmp_path):
    run = subprocess.run([sys.executable, "-m", "msadapter_hook", str(PROGRAM), "--dtype", dtype], cwd=tmp_path,
                         capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stderr[-4000:]
    lines = run.stdout.strip().splitlines()
    assert f"output torch.{dtype}" in lines[0] and "scale 4096" in lines[0]
    assert lines[-1].startswith("accuracy: ") and float(lines[-1].split()[1]) >= 0.97
