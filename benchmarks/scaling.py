"""Does the cost grow with the tape as it should? Time against the number of operations, memory over many steps.

    python -m benchmarks.scaling [--torch PYTHON] [--json FILE] [--steps N]

chain   n operations one after another, then backward
wide    n operations on one tensor, summed up, then backward
memory  resident memory during N steps (default 1,000) of a small network, with the batch size changing now and then

Exit status 1 where the cost per operation at the longest tape is more than twice that at 1,000, or memory grows.
"""
import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.train import HERE, environment

LENGTHS = (100, 300, 1000, 3000, 10000)
GROWTH = 2.0        # largest cost per operation, against the one at 1,000
LEAK_MB = 8.0       # resident memory may differ by this between a fifth of the steps and the end


def chain(torch, n):
    x = torch.linspace(-1, 1, 64).requires_grad_()
    y = x
    for i in range(n):
        y = y * 0.999 if i % 2 else y + 0.001
    y.sum().backward()
    return x.grad


def wide(torch, n):
    x = torch.linspace(-1, 1, 64).requires_grad_()
    total = torch.zeros(64)
    for i in range(n // 2):
        total = total + x * (i / n)
    total.sum().backward()
    return x.grad


def resident_mb():
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * 4096 / 2 ** 20


def memory(torch, steps):
    """(step, MiB) at ten points of a training run."""
    from torch import nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.LayerNorm(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 8))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    points = []
    for step in range(steps):
        size = 64 if step % 10 else 16 + step // 10 % 7
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(torch.randn(size, 32)), torch.randint(0, 8, (size,)))
        loss.backward()
        optimizer.step()
        loss.item()
        if (step + 1) % max(steps // 10, 1) == 0:
            points.append((step + 1, round(resident_mb(), 1)))
    return points


def worker(steps):
    """Measure with whatever `import torch` gives and print one line of JSON."""
    import torch
    result = {}
    for shape in (chain, wide):
        result[shape.__name__] = {}
        for n in LENGTHS:
            times = []
            for _ in range(4 if n <= 1000 else 2):
                start = time.perf_counter()
                shape(torch, n).sum().item()
                times.append(time.perf_counter() - start)
            # the first run of a structure may build or compile something that the later ones find
            result[shape.__name__][n] = {"first_us": times[0] / n * 1e6, "us": min(times[1:]) / n * 1e6}
    result["memory"] = memory(torch, steps)
    print("RESULT " + json.dumps(result), flush=True)


def measure(side, python, steps):
    command = [python, *(["-m", "msadapter_hook"] if side == "hook" else []), str(Path(__file__)),
               "--worker", "--steps", str(steps)]
    env = environment(side, None)
    env["PYTHONPATH"] = str(HERE.parent)
    if side == "torch":
        env["MSADAPTER_HOOK"] = "0"
    run = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    lines = [line for line in run.stdout.splitlines() if line.startswith("RESULT ")]
    if run.returncode or not lines:
        raise SystemExit(f"{side} failed with status {run.returncode}\n{run.stderr[-3000:]}")
    return json.loads(lines[-1].removeprefix("RESULT "))


def verdict(result):
    """What is not as it should be, as lines."""
    lines = []
    for shape in ("chain", "wide"):
        costs = {int(n): c["us"] for n, c in result[shape].items()}
        ratio = costs[max(costs)] / costs[1000]
        if ratio > GROWTH:
            lines.append(f"{shape}: an operation of {max(costs)} costs {ratio:.1f} times one of 1,000: not linear")
    points = result["memory"]
    growth = points[-1][1] - points[len(points) // 5][1]
    if growth > LEAK_MB:
        lines.append(f"memory grew by {growth:.1f} MiB between step {points[len(points) // 5][0]} and {points[-1][0]}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", metavar="PYTHON", help="interpreter with real PyTorch, for comparison")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--steps", type=int, default=1000, help="steps of the memory run")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return worker(args.steps)

    results = {"hook": measure("hook", sys.executable, args.steps)}
    if args.torch:
        results["torch"] = measure("torch", args.torch, args.steps)
    print("| µs per operation, first run/later | " + " | ".join(map(str, LENGTHS)) + " |")
    print("| --- " * (len(LENGTHS) + 1) + "|")
    for side, result in results.items():
        for shape in ("chain", "wide"):
            cells = [f"{c['first_us']:.1f}/{c['us']:.1f}" for c in result[shape].values()]
            print(f"| {side}, {shape} | " + " | ".join(cells) + " |")
    for side, result in results.items():
        print(f"\n{side}, MiB by step: " + ", ".join(f"{step}: {mb}" for step, mb in result["memory"]))
    bad = verdict(results["hook"])
    print("\n" + ("\n".join(bad) or "cost is linear, memory is flat"))
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1) + "\n")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
