"""One workload on one side in a process of its own: answers a line of JSON to each line of JSON.

    worker.py torch WORKLOAD      the PyTorch program; under the adapter's runner it runs on the adapter
    worker.py inference WORKLOAD  the same, forward only, over a batch of one
    worker.py tuned WORKLOAD      MindSpore by hand, best primitives, the adapter's settings
    worker.py default WORKLOAD    MindSpore by hand, Cells, MindSpore's settings

First it says {"imported": true}. {"steps": n, "seconds": s} does up to n steps within about s seconds, at least two,
and answers with the milliseconds of each, the first and last loss and the peak memory in MiB.
"""
import json
import os
import sys
import time

# the channel is the first stdout; whatever a library prints goes to stderr
_channel = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)


def say(**message):
    _channel.write(json.dumps(message) + "\n")


def peak_mb():
    """Peak resident memory of this process since it started its program, in MiB."""
    with open("/proc/self/status", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    raise OSError("no VmHWM in /proc/self/status")


def make_step(side, workload):
    if side in ("torch", "inference"):
        import torch

        say(imported=True, version=torch.__version__)
        import workloads

        return workloads.make(workload) if side == "torch" else workloads.infer(workload)
    if side == "tuned":
        from msadapter_hook.backend import mindspore  # with the adapter's settings, made before NumPy loads
    else:
        import mindspore
    say(imported=True, version=mindspore.__version__)
    import mindspore_steps

    return mindspore_steps.make(side, workload)


def run(step, steps, seconds):
    times, losses, start = [], [], time.perf_counter()
    while len(times) < steps and (len(times) < 2 or time.perf_counter() - start < seconds):
        before = time.perf_counter()
        losses.append(step())
        times.append((time.perf_counter() - before) * 1e3)
    return {"ms": times, "first_loss": losses[0], "last_loss": losses[-1], "peak_mb": peak_mb()}


def main():
    step = make_step(*sys.argv[1:3])
    for line in sys.stdin:
        say(**run(step, **json.loads(line)))


main()
