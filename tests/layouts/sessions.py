"""Sessions over sparse, nested and masked tensors, and what they show: the same code records real PyTorch and runs here.

`sessions/*.txt`: one line after another in one namespace; `!` starts a statement, everything else is an expression.
"""

import json
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
GOLDENS = HERE.parent / "goldens" / "layouts"


def names():
    return sorted(path.stem for path in (HERE / "sessions").glob("*.txt"))


def lines(name):
    text = (HERE / "sessions" / f"{name}.txt").read_text()
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def run(name):
    """{line: repr of what it gives, or the class and the text of its exception} of a session's expressions."""
    import torch

    space = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    seen = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        for line in lines(name):
            if line.startswith("!"):
                exec(line[1:].strip(), space)
                continue
            try:
                seen[line] = repr(eval(line, space))
            except Exception as error:
                seen[line] = [type(error).__name__, str(error)]
    return seen


def golden(name):
    return json.loads((GOLDENS / f"{name}.json").read_text())
