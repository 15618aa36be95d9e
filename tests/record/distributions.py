"""Records tests/goldens/distributions.json. Run with an interpreter that has real PyTorch."""

import json
import pathlib
import sys

import torch

TESTS = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(TESTS / "torch" / "distributions"))
import dist_cases as cases  # noqa: E402

dists = cases.make(torch)
goldens = {
    "torch": torch.__version__,
    "distributions": {name: cases.describe(torch, d()) for name, d in dists.items()},
    "kl": cases.divergences(torch, dists),
    "transforms": {name: cases.run_transform(*case) for name, case in cases.transforms(torch).items()},
}


def rounded(x):
    if isinstance(x, float):
        return float(f"{x:.7g}")
    if isinstance(x, list):
        return [rounded(i) for i in x]
    return {k: rounded(v) for k, v in x.items()} if isinstance(x, dict) else x


(TESTS / "goldens" / "distributions.json").write_text(json.dumps(rounded(goldens), separators=(",", ":")) + "\n")
