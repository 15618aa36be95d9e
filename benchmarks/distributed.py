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
    print("| workload | side | gradients MiB | 1 worker ms | 2 workers ms | of it communication | speed-up |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for side, (python, launcher) in sides.items():
        found = {workers: run(python, launcher, workers, names, args.steps, environment(side, None)) for workers in (1, 2)}
        figures[side] = found
        for name in names:
            (one, _, size), (two, alone, _) = found[1][name], found[2][name]
            print(f"| {name} | {side} | {size} | {one} | {two} | {two - alone:.1f} | {one / two:.2f} |", flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
