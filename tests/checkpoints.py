"""Checkpoints trained half-way, exchanged with real PyTorch: does training go on as if nothing had happened?

    python tests/checkpoints.py PYTHON_WITH_TORCH [--write docs/checkpoints.md] [--record] [--optimizers SGD,Adam]

PYTHON_WITH_TORCH is an interpreter that has PyTorch and scikit-learn. `--record` writes the golden files of
tests/torch/serialization/test_half_way.py.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "record" / "half_way.py"
GOLDENS = HERE / "goldens" / "checkpoints"
LIMIT = 1e-3


def run(command, optimizer, folder, name, load=None, save=None):
    """The losses and accuracy of one half."""
    out = Path(folder) / f"{optimizer}-{name}.json"
    words = [*command, str(PROGRAM), "--optimizer", optimizer, "--losses", str(out)]
    words += ["--load", str(load)] if load else []
    words += ["--save", str(save)] if save else []
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")]))
    subprocess.run(words, check=True, env=environment, stdout=subprocess.DEVNULL)
    return json.loads(out.read_text())


def difference(a, b):
    """The largest relative difference of two series of losses."""
    return max(abs(x - y) / max(abs(y), 1e-3) for x, y in zip(a["losses"], b["losses"]))


def exchange(torch, hook, optimizer, folder):
    """One row of the table, and whether it is within the limit."""
    theirs, ours = Path(folder) / f"{optimizer}-torch.pt", Path(folder) / f"{optimizer}-hook.pt"
    first_torch = run(torch, optimizer, folder, "first-torch", save=theirs)
    first_hook = run(hook, optimizer, folder, "first-hook", save=ours)
    reference = run(torch, optimizer, folder, "torch-torch", load=theirs)
    taken_over = run(hook, optimizer, folder, "torch-hook", load=theirs)
    own = run(hook, optimizer, folder, "hook-hook", load=ours)
    handed_over = run(torch, optimizer, folder, "hook-torch", load=ours)
    figures = {"first half": difference(first_hook, first_torch), "PyTorch's file, under the hook": difference(taken_over, reference),
               "the hook's file, under PyTorch": difference(handed_over, own), "the hook's file, against PyTorch's": difference(
                   handed_over, reference)}
    return {"optimizer": optimizer, "figures": figures, "accuracy": taken_over["accuracy"], "loss": taken_over["losses"][-1],
            "ok": all(value <= LIMIT for value in figures.values())}


def table(rows):
    names = list(rows[0]["figures"])
    lines = ["| optimizer | " + " | ".join(names) + " | last loss | accuracy | within 1e-3 |", "|" + "---|" * (len(names) + 4)]
    for row in rows:
        cells = [f"{row['figures'][name]:.1e}" for name in names]
        lines.append(f"| {row['optimizer']} | " + " | ".join(cells) + f" | {row['loss']:.4f} | {row['accuracy']:.3f} | "
                     f"{'yes' if row['ok'] else 'NO'} |")
    return "\n".join(lines)


TEXT = """# Checkpoints exchanged with PyTorch

Written by `python tests/checkpoints.py PYTHON_WITH_TORCH --write docs/checkpoints.md`. A small convolutional network with batch
normalisation and dropout (`tests/record/half_way.py`) trains 30 steps on the digits, saves model, optimizer, schedule and the state of
the random numbers, and goes on for 30 steps from the file: under the program that wrote it and under the other one. The figures are the
largest relative differences of the losses.

"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="an interpreter with PyTorch and scikit-learn")
    parser.add_argument("--write", help="put the table into this file")
    parser.add_argument("--record", action="store_true", help="write the golden files of the test")
    parser.add_argument("--optimizers", default="SGD,Adam,AdamW,RMSprop,Adagrad")
    args = parser.parse_args()
    torch, hook = [args.python], [sys.executable, "-m", "msadapter_hook"]
    if args.record:
        GOLDENS.mkdir(parents=True, exist_ok=True)
        run(torch, "Adam", GOLDENS, "first", save=GOLDENS / "half_way.pt")
        run(torch, "Adam", GOLDENS, "second", load=GOLDENS / "half_way.pt")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        rows = [exchange(torch, hook, optimizer, folder) for optimizer in args.optimizers.split(",")]
    print(table(rows))
    if args.write:
        Path(args.write).write_text(TEXT + table(rows) + "\n")
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
