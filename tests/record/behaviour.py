"""Records what real PyTorch does in tests/behaviour/cases.txt: python tests/record/behaviour.py PYTHON_WITH_TORCH"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
CASES = HERE / "behaviour" / "cases.txt"


def read():
    """(name, statements, expression) of each case."""
    for line in CASES.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, rest = line.partition(":")
            body, _, expression = rest.rpartition("=>")
            yield name.strip(), body.strip(" ").replace("\\n", "\n").rstrip("; "), expression.strip()


def run(body, expression):
    """What the case gives: the repr of its value, or the class and text of its exception."""
    import warnings

    import torch

    space = {"torch": torch}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(body, space)
            value = eval(expression, space)
        except Exception as error:
            return {"error": [type(error).__name__, str(error)]}
        finally:
            torch.set_default_dtype(torch.float32)
    return {"value": repr(value)}


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        print(json.dumps({name: run(body, expression) for name, body, expression in read()}, indent=1))
    else:
        made = subprocess.run([sys.argv[1], __file__, "--inside"], check=True, capture_output=True, text=True).stdout
        (HERE / "goldens" / "behaviour.json").write_text(made)
