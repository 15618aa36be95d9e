"""Record what real PyTorch gives for the expressions in tests/ops/cases: `python tests/record/ops.py [family …]` under an
interpreter that has it."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ops"))
import ops_expressions as ops
import torch

ops.GOLDENS.mkdir(parents=True, exist_ok=True)
for family in sys.argv[1:] or ops.families():
    lines = [f"{json.dumps(e)}: {json.dumps(ops.observe(torch, e))}" for e in ops.expressions(family)]
    (ops.GOLDENS / f"{family}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(family, len(lines))
