"""Records the losses of the first steps of every example under real PyTorch: `python tests/record/examples.py PYTHON`,
PYTHON being an interpreter with PyTorch 2.13 and scikit-learn. Writes tests/goldens/examples/NAME.json."""
import argparse
import json
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
GOLDENS = ROOT / "tests" / "goldens" / "examples"
STEPS = 50
STEP_LINE = re.compile(r"step (\d+) loss")
LOSS = re.compile(r"\b(loss\w*) (\S+)")


def losses_of(output):
    """The losses a run printed: a list over the steps of {name: value}. Raises ValueError where a step is missing."""
    rows = []
    for line in output.splitlines():
        match = STEP_LINE.match(line)
        if match:
            if int(match[1]) != len(rows):
                raise ValueError(f"step {match[1]} printed after {len(rows)} steps")
            rows.append({name: float(value) for name, value in LOSS.findall(line)})
    return rows


def record(python, name):
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([python, EXAMPLES / f"{name}.py", "--steps", str(STEPS)], cwd=folder,
                             capture_output=True, text=True, check=True)
    rows = losses_of(run.stdout)
    if len(rows) != STEPS:
        raise ValueError(f"{name} printed {len(rows)} steps of {STEPS}")
    return {key: [row[key] for row in rows] for key in rows[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", help="interpreter with real PyTorch")
    parser.add_argument("names", nargs="*", help="examples (default: all)")
    args = parser.parse_args()
    version = subprocess.run([args.python, "-c", "import torch; print(torch.__version__)"],
                             capture_output=True, text=True, check=True).stdout.strip()
    if not version.startswith("2.13") or "mindspore" in version:
        parser.error(f"{args.python} has torch {version}; the goldens are PyTorch 2.13's")
    GOLDENS.mkdir(parents=True, exist_ok=True)
    for name in args.names or sorted(p.stem for p in EXAMPLES.glob("*.py")):
        data = {"torch": version, "steps": STEPS, "losses": record(args.python, name)}
        text = json.dumps(data, indent=1)
        text = re.sub(r"\[[^\[\]]*\]", lambda m: re.sub(r"\s+", " ", m[0]), text)    # a list of losses on one line
        (GOLDENS / f"{name}.json").write_text(text + "\n")
        print(name, {k: (v[0], v[-1]) for k, v in data["losses"].items()})


if __name__ == "__main__":
    main()
