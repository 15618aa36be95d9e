"""The table of docs/libraries.md: libraries on top of PyTorch, unmodified, under the hook and under real PyTorch.

    python tests/libraries.py --torch PYTHON --path DIR [--only NAME] [--write docs/libraries.md]

PYTHON is an interpreter with PyTorch, DIR a folder into which the libraries were installed without their dependency on it
(`pip install --no-deps --target DIR …`). Each program of tests/libraries prints lines `label: numbers`; a line agrees where its
numbers do within one part in ten thousand.
"""

import argparse
import importlib.metadata
import math
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "libraries"
NUMBER = re.compile(r"-?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)")

TEXT = """# Libraries

Libraries that are written for PyTorch, installed as they come and run by `python -m msadapter_hook`, beside the same program under PyTorch
2.13. Each line that a program prints is compared (numbers within one part in ten thousand). Written by `tests/libraries.py`; the programs
are in `tests/libraries`.

"""


def run(command, path):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(HERE.parent), path]), HF_HUB_OFFLINE="1")
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    if done.returncode:
        lines["exit"] = (done.stderr.strip().splitlines() or ["without a word"])[-1]
    return lines


def agree(ours, theirs):
    a, b = NUMBER.findall(ours), NUMBER.findall(theirs)
    same = len(a) == len(b) and NUMBER.sub("#", ours) == NUMBER.sub("#", theirs)
    return same and all(x == y or math.isclose(float(x), float(y), rel_tol=1e-4, abs_tol=1e-6) for x, y in zip(a, b))


def version(name, path):
    found = next(iter(importlib.metadata.distributions(name=name, path=[path])), None)
    return found.version if found else "not installed"


def row(program, arguments):
    name = program.stem.removeprefix("with_").replace("_", "-")
    ours = run([sys.executable, "-m", "msadapter_hook", str(program)], arguments.path)
    theirs = run([arguments.torch, str(program)], arguments.path)
    what = program.read_text().split('"""')[1].strip()
    lines = sorted(set(ours) | set(theirs))
    bad = [k for k in lines if k not in ours or k not in theirs or not agree(ours[k], theirs[k])]
    if "exit" in theirs:  # PyTorch's own interpreter lacks what the program needs: no figures to compare with
        return f"| {name} {version(name, arguments.path)} | {what} | {'fails: ' + ours['exit'] if 'exit' in ours else 'runs'} | |"
    detail = "; ".join(f"{k}: {ours.get(k, 'missing')} ({theirs.get(k, 'missing')})" for k in bad)
    return f"| {name} {version(name, arguments.path)} | {what} | {len(lines) - len(bad)} of {len(lines)} | {detail[:300]} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", required=True)
    parser.add_argument("--path", required=True)
    parser.add_argument("--only", help="one library; its row alone is written anew")
    parser.add_argument("--write")
    arguments = parser.parse_args()
    programs = sorted(p for p in PROGRAMS.glob("with_*.py") if arguments.only in (None, p.stem.removeprefix("with_")))
    rows = {}
    if arguments.write and arguments.only:  # the other rows stay
        written = Path(arguments.write).read_text().splitlines()
        rows = {line.split()[1]: line for line in written if line.startswith("| ") and not line.startswith("| library")}
    for program in programs:
        made = row(program, arguments)
        rows[made.split()[1]] = made
        print(made, flush=True)
    if arguments.write:
        head = ["| library | program | lines that agree | others: ours (PyTorch's) |", "|---|---|---|---|"]
        Path(arguments.write).write_text(TEXT + "\n".join(head + [rows[k] for k in sorted(rows)]) + "\n")


if __name__ == "__main__":
    main()
