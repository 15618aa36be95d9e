"""The MindSpore kernels of the five training steps, at their shapes, beside the same operators of real PyTorch.

    python -m benchmarks.kernels --torch PYTHON [--json FILE] [--only NAME] [--rounds N] [--above RATIO]

The kernels are those that the recorded programs contain. Each is timed alone, forward and with its gradient, best of many calls,
and so is PyTorch's operator (2 threads); the two sides take turns. What a call of next to nothing costs on a side is taken off:
compiled replay does not pay it. The table shows what is more than RATIO (3) times slower then.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.timing import best
from benchmarks.train import HERE, WORKLOADS, environment

#: no work in PyTorch: views, and what only holds a gradient back
VIEWS = {"Reshape", "ExpandDims", "Squeeze", "StopGradient", "Split"}
NOTHING = {"name": "Neg", "attributes": {}, "arguments": [["float32", [8]]], "uses": {}}


class Listener:
    """Counts the kernels called while it listens, by name, attributes and arguments."""

    def __init__(self):
        self.counts = {}

    def note(self, kernel, args, result):
        attributes = {k: v for k, v in kernel.instance.init_attrs.items() if v is not None}
        key = json.dumps([kernel.name, attributes, [self.describe(a) for a in args]])
        self.counts[key] = self.counts.get(key, 0) + 1

    def describe(self, arg):
        if isinstance(arg, (tuple, list)):
            return {"tuple": [self.describe(a) for a in arg]}
        if hasattr(arg, "shape"):
            return [str(arg.dtype).lower(), list(arg.shape)]
        return {"value": arg}


def recorded(names):
    """The kernels of the workloads' programs: dictionaries of name, attributes, arguments and uses by workload."""
    from benchmarks import workloads
    from msadapter_hook.backend.primitives import Kernel
    from msadapter_hook.tape.replay import Replay

    seen, cases, run = [], {}, Replay._run

    def watched(replay, inputs, cotangents):
        seen.append((replay._function, inputs))
        return run(replay, inputs, cotangents)

    Replay._run = watched
    try:
        for name in names:
            step = workloads.make(name)
            step(), step()
            function, inputs = seen[-1]
            Kernel.listening = listener = Listener()
            try:
                function(*inputs)
            finally:
                Kernel.listening = None
            for key, count in listener.counts.items():
                kernel, attributes, arguments = json.loads(key)
                if kernel not in VIEWS:
                    case = cases.setdefault(key, {"name": kernel, "attributes": attributes, "arguments": arguments, "uses": {}})
                    case["uses"][name] = count
    finally:
        Replay._run = run
    return list(cases.values())


def array(described, below):
    """Data of a described tensor; integers are smaller than `below`."""
    dtype, shape = described
    random = np.random.RandomState(0)
    if dtype == "bool":
        return random.rand(*shape) > 0.5
    if dtype.startswith("int"):
        return random.randint(0, below, shape).astype(dtype)
    return np.asarray(random.randn(*shape) / 4, dtype)


def build(described, below):
    from msadapter_hook.backend import from_numpy

    if isinstance(described, dict):
        return tuple([build(d, below) for d in described["tuple"]]) if "tuple" in described else described["value"]
    return from_numpy(array(described, below))


def time_mindspore(case):
    """Microseconds of the kernel forward, and with its gradient (None where it has none)."""
    from mindspore import float32, from_numpy, ops

    from msadapter_hook.backend.gradient import Gradient

    kernel = made(ops.operations, case)
    first = case["arguments"][0]
    below = first[1][{"Gather": 0}.get(case["name"], -1)] if isinstance(first, list) and first[1] else 2
    args = [tuple(a) if isinstance(a, list) else a for a in (build(a, below) for a in case["arguments"])]
    places = [i for i, a in enumerate(args) if getattr(a, "dtype", None) == float32 and a.shape]
    if isinstance(args[0], tuple):  # a kernel of several tensors in a tuple
        call, tensors = (lambda *t: kernel(t)), list(args[0])
        places = list(range(len(tensors)))
    else:
        def call(*floats):
            filled = list(args)
            for place, value in zip(places, floats):
                filled[place] = value
            return kernel(*filled)
        tensors = [args[i] for i in places]

    def first_output(*floats):
        out = call(*floats)
        return (out[0] if isinstance(out, tuple) else out,)

    forward = best(lambda: call(*tensors))
    out = first_output(*tensors)[0]
    if not places or out.dtype != float32:
        return forward, None
    wanted = [i for i, p in enumerate(places) if not (case["name"] == "BatchNorm" and p > 2)]  # the others are moving statistics
    gradient = Gradient(first_output, tuple(wanted))
    cotangent = (from_numpy(np.ones(out.shape, np.float32)),)
    return forward, best(lambda: gradient(tuple(tensors), cotangent))


def made(operations, case):
    """The primitive with the attributes that were noted, as far as its constructor takes them."""
    import inspect

    kind = getattr(operations, case["name"])
    taken = inspect.signature(kind.__init__).parameters
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in case["attributes"].items()}
    if case["name"] == "Conv2D":
        given["stride"], given["dilation"] = given["stride"][-2:], given["dilation"][-2:]
    return kind(**{k: v for k, v in given.items() if k in taken and k != "self"})


def time_torch(cases, python):
    """The same numbers of PyTorch's operators, by its own interpreter."""
    done = subprocess.run([python, str(HERE / "kernels_torch.py")], input=json.dumps(cases), capture_output=True, text=True,
                          env=environment("torch", None), check=False)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    return json.loads(done.stdout)


def measured(cases, python, rounds):
    """Best of the rounds: per case [forward, with gradient] of both sides."""
    ours = theirs = None
    for _ in range(rounds):
        ours = least(ours, [time_mindspore(case) for case in cases])
        theirs = least(theirs, time_torch(cases, python))
    return ours, theirs


def least(before, now):
    if before is None:
        return now
    return [[a if b is None else b if a is None else min(a, b) for a, b in zip(x, y)] for x, y in zip(before, now)]


def shapes(case):
    def text(a):
        if isinstance(a, dict):
            return ", ".join(filter(None, map(text, a["tuple"]))) if "tuple" in a else None
        return "×".join(map(str, a[1])) or "number"

    return "; ".join(filter(None, map(text, case["arguments"])))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", metavar="PYTHON", required=True, help="interpreter with real PyTorch")
    parser.add_argument("--json", metavar="FILE", help="write all results here")
    parser.add_argument("--only", metavar="NAME", action="append", choices=WORKLOADS, help="one workload (repeatable)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--above", type=float, default=3, help="ratio from which a kernel is shown")
    args = parser.parse_args()

    from msadapter_hook import install, settings
    settings.export(origin="benchmark", ENABLE_BACKWARD="1", MSADAPTER_JIT="off")
    install()
    cases = [NOTHING, *recorded(args.only or WORKLOADS)]
    ours, theirs = measured(cases, args.torch, args.rounds)
    rows, slow = [], 0
    for case, mine, yours in list(zip(cases, ours, theirs))[1:]:
        row = {**case, "us": mine, "torch_us": yours, "ratio": []}
        for at in range(2):
            if mine[at] is not None and yours[at] is not None:
                row["ratio"].append(max(mine[at] - ours[0][at], 0) / max(yours[at] - theirs[0][at], 1))
        rows.append(row)
        slow += max(row["ratio"]) > args.above
    rows.sort(key=lambda r: -max(r["ratio"]))
    print(f"a call of next to nothing: {ours[0][0]:.0f} µs, with its gradient {ours[0][1]:.0f}; "
          f"PyTorch {theirs[0][0]:.0f} and {theirs[0][1]:.0f}\n")
    print("| kernel | shapes | in a step | µs | PyTorch µs | with gradient µs | PyTorch µs | ratios |\n" + "| --- " * 8 + "|")
    for r in rows:
        if max(r["ratio"]) > args.above:
            uses = ", ".join(f"{w} {n}" for w, n in r["uses"].items())
            cells = [f"{t:.0f}" if t is not None else "–" for pair in zip(r["us"], r["torch_us"]) for t in pair]
            print(f"| {r['name']} | {shapes(r)} | {uses} | {' | '.join(cells)} | {' / '.join(f'{x:.1f}' for x in r['ratio'])} |")
    print(f"\n{slow} of {len(rows)} kernels are more than {args.above:g} times slower than PyTorch's, forward or with the gradient")
    if args.json:
        Path(args.json).write_text(json.dumps({"nothing": [ours[0], theirs[0]], "kernels": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
