"""What a second worker brings: one training step of the same whole batch on 1 and on 2 workers.

    python -m benchmarks.distributed [--torch PYTHON] [--json FILE] [--workloads mlp,lenet,resnet] [--steps N]

Each worker has its share of the batch, and the processors are divided among them. A step is measured twice: as it is, and
within `no_sync()`, without communication; the difference is what communication and waiting for the other worker cost.
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.train import HERE, environment

PROGRAM = Path(__file__).with_name("distributed_steps.py")


def run(python, launcher, workers, names, steps, env):
    cores = len(os.sched_getaffinity(0))
    env = env | {"OMP_NUM_THREADS": str(max(1, cores // workers))}
    done = subprocess.run([python, *launcher, str(workers), str(PROGRAM), ",".join(names), str(steps), str(cores)], cwd=HERE,
                          env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{python} failed with status {done.returncode}\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def _pair(times):
    return "/".join(f"{ms:.3g}" for ms in times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", help="interpreter with PyTorch, to measure beside")
    parser.add_argument("--json", help="file for the figures")
    parser.add_argument("--workloads", default="mlp,lenet,resnet")
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    names = args.workloads.split(",")
    sides = {"hook": (sys.executable, ("-m", "msadapter_hook", "--nproc"))}
    if args.torch:
        sides["torch"] = (args.torch, ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node"))
    figures = {}
    for side, (python, launcher) in sides.items():
        figures[side] = {workers: run(python, launcher, workers, names, args.steps, environment(side, None)) for workers in (1, 2)}
    print("ms, median/minimum\n")
    print("| workload | side | gradients MiB | 1 worker | 2 workers | without communication | speed-up |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in names:
        for side, found in figures.items():
            one, two, alone = found[1][name]["step"], found[2][name]["step"], found[2][name]["alone"]
            print(f"| {name} | {side} | {found[1][name]['MiB']} | {_pair(one)} | {_pair(two)} | {_pair(alone)} | "
                  f"{one[0] / two[0]:.2f}/{one[1] / two[1]:.2f} |")
    print("\n| all_reduce of float32, 2 workers | " + " | ".join(figures) + " |\n| --- |" + " --- |" * len(figures))
    for elements in figures["hook"][2]["all_reduce"]:
        print(f"| {elements} | " + " | ".join(_pair(found[2]["all_reduce"][elements]) for found in figures.values()) + " |")
    if args.json:
        Path(args.json).write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
