"""Records what real PyTorch prints for examples/distributed on two workers: python tests/record/distributed.py PYTHON_WITH_TORCH"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "goldens" / "distributed.json"
#: ATEN_CPU_CAPABILITY: a network with BatchNorm on small batches carries last bits on to the second digit, in PyTorch too
CAPABILITIES = ("", "default")
#: example -> arguments
PROGRAMS = {"ddp_tutorial": (), "digits_imagenet": ("--epochs", "2")}


def losses_of(text):
    """The losses that an example prints, in order."""
    return [float(found) for found in re.findall(r"\b(?:mean loss|Loss) +(\d\S*)", text)]


if __name__ == "__main__":
    recorded = {}
    for name, arguments in PROGRAMS.items():
        command = [sys.argv[1], "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                   str(ROOT / "examples" / "distributed" / f"{name}.py"), *arguments]
        recorded[name] = []
        for capability in CAPABILITIES:
            environment = {**os.environ, "ATEN_CPU_CAPABILITY": capability} if capability else None
            text = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
            recorded[name].append(losses_of(text))
    GOLDEN.write_text(json.dumps(recorded, indent=1) + "\n")
