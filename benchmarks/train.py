"""Milliseconds per training step of five workloads: under the hook, as hand-written MindSpore, and under PyTorch.

    python -m benchmarks.train [--torch PYTHON] [--json FILE] [--only NAME] [--steps N] [--rounds N] [--kernels KIND] [--inference]

The hook runs twice: as it comes, and with its replay compiled from the third step on (MSADAPTER_JIT=on), as it is by itself
in longer runs. With --inference the hook and PyTorch only compute forward, over a batch of one and without gradients.
Every pair of workload and side is a process of its own. The sides of a workload take turns, round by round, and are
stopped while another runs, because idle threads of all libraries spin for a while.
"""
import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORKLOADS = ("mlp", "lenet", "resnet", "gpt", "lstm")
#: side -> (heading, what worker.py is asked for)
SIDES = {
    "hook": ("hook", "torch"),
    "hook_compiled": ("compiled", "torch"),
    "mindspore_tuned": ("tuned", "tuned"),
    "mindspore_default": ("default", "default"),
    "torch": ("torch", "torch"),
}
#: the hook's sides, and how they replay: a run of some seconds is not compiled by itself
HOOK = {"hook": "auto", "hook_compiled": "on"}
WARM_STEPS = 5


class Failed(RuntimeError):
    """A side that could not do its steps; the text is the end of what it wrote to stderr."""


class Side:
    """One worker process, stopped unless it is being asked."""

    def __init__(self, side, workload, torch_python, kernels, inference=False):
        command = [torch_python if side == "torch" else sys.executable]
        if side in HOOK:
            command += ["-m", "msadapter_hook"]
        command += [str(HERE / "worker.py"), "inference" if inference else SIDES[side][1], workload]
        self.errors = tempfile.TemporaryFile("w+")
        start = time.perf_counter()
        self.process = subprocess.Popen(command, cwd=HERE.parent, env=environment(side, kernels, workload), text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
        try:
            self.version = self._answer()["version"]
            self.import_s = time.perf_counter() - start
            self.ms, self.first_loss = [], None
            self.run(WARM_STEPS, 20)
        except Failed:
            self.close()
            raise
        self.ms = []

    def run(self, steps, seconds):
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.write(json.dumps({"steps": steps, "seconds": seconds}) + "\n")
        except BrokenPipeError:
            raise Failed(self._last_words()) from None
        answer = self._answer()
        self.process.send_signal(signal.SIGSTOP)
        self.ms += answer["ms"]
        self.first_loss = answer["first_loss"] if self.first_loss is None else self.first_loss
        self.last_loss, self.peak_mb = answer["last_loss"], answer["peak_mb"]

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failed(self._last_words())
        return json.loads(line)

    def _last_words(self):
        self.process.wait()
        self.errors.seek(0)
        return self.errors.read().strip()[-2000:] or f"ended with status {self.process.returncode}"

    def result(self):
        return {"ms": round(statistics.median(self.ms), 3), "min_ms": round(min(self.ms), 3), "steps": len(self.ms),
                "peak_mb": round(self.peak_mb, 1), "import_s": round(self.import_s, 2),
                "first_loss": self.first_loss, "last_loss": self.last_loss}

    def close(self):
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            try:
                stream.close()
            except BrokenPipeError:
                pass    # what was still to be written has no reader any more


def environment(side, kernels, workload=None):
    """This process's environment without what would carry one side's settings into another."""
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith("MSADAPTER_")
             and k not in ("ENABLE_BACKWARD", "ONEDNN_MAX_CPU_ISA", "OPENBLAS_CORETYPE", "PYTHONPATH")}
    if side == "torch":
        return {**clean, "OMP_NUM_THREADS": "2"}
    clean["PYTHONPATH"] = str(HERE.parent)
    if side in HOOK:
        clean["MSADAPTER_JIT"] = HOOK[side]
        if kernels:
            clean["MSADAPTER_KERNELS"] = kernels
    if side == "mindspore_tuned" and workload in ("lenet", "resnet"):
        clean["ONEDNN_MAX_CPU_ISA"] = "AVX2"  # what MindSpore's convolutions are fastest with; products are not
    if side == "mindspore_default":
        clean.setdefault("GLOG_v", "3")
    return clean


def sides_of(args):
    """The sides that take part."""
    return [s for s in (("hook", "torch") if args.inference else SIDES) if s != "torch" or args.torch]


def measure(workload, args):
    sides, result = {}, {}
    names = sides_of(args)
    try:
        for name in names:
            try:
                sides[name] = Side(name, workload, args.torch, args.kernels, args.inference)
            except Failed as e:
                result[f"{name}_error"] = str(e)
        for turn in range(args.rounds):
            order = [n for n in names[turn % len(names):] + names[:turn % len(names)] if n in sides]
            for name in order:
                try:
                    sides[name].run(args.steps, args.seconds)
                except Failed as e:
                    result[f"{name}_error"] = str(e)
                    sides.pop(name).close()
        for name, side in sides.items():
            result.update({f"{name}_{k}": v for k, v in side.result().items()})
    finally:
        for side in sides.values():
            side.close()
    if "torch_first_loss" in result and "hook_first_loss" in result:
        a, b = result["hook_first_loss"], result["torch_first_loss"]
        result["hook_loss_error"] = abs(a - b) / abs(b)
    for ours in HOOK:
        for name in names:
            if name not in HOOK and f"{ours}_ms" in result and f"{name}_ms" in result:
                result[f"{ours}_per_{name}"] = round(result[f"{ours}_ms"] / result[f"{name}_ms"], 3)
                result[f"{ours}_min_per_{name}"] = round(result[f"{ours}_min_ms"] / result[f"{name}_min_ms"], 3)
    return result


def table(workloads, names):
    """The results as a Markdown table: median/minimum in ms, their ratios, peak memory and import time."""
    heads = [SIDES[n][0] for n in names]
    pairs = [(ours, name) for ours in HOOK if ours in names for name in names if name not in HOOK]
    rows = [["workload", *(f"{h} ms" for h in heads), *(f"{SIDES[a][0]}/{SIDES[b][0]}" for a, b in pairs),
             *(f"{h} MiB" for h in heads), *(f"{h} import s" for h in heads)]]

    def cell(result, key, form):
        return form.format(result[key]) if key in result else "–"

    for workload, r in workloads.items():
        times = [f"{r[n + '_ms']:.1f}/{r[n + '_min_ms']:.1f}" if n + "_ms" in r else "failed" for n in names]
        ratios = [f"{r[f'{a}_per_{b}']:.2f}/{r[f'{a}_min_per_{b}']:.2f}" if f"{a}_per_{b}" in r else "–" for a, b in pairs]
        rows.append([workload, *times, *ratios,
                     *(cell(r, f"{n}_peak_mb", "{:.0f}") for n in names),
                     *(cell(r, f"{n}_import_s", "{:.1f}") for n in names)])
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", metavar="PYTHON", help="interpreter with real PyTorch, measured with 2 threads")
    parser.add_argument("--json", metavar="FILE", help="write the results here too")
    parser.add_argument("--only", metavar="NAME", action="append", choices=WORKLOADS, help="one workload (repeatable)")
    parser.add_argument("--steps", type=int, default=20, help="steps per side and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8, help="a side's turn ends after this, two steps at least")
    parser.add_argument("--kernels", choices=("host", "mindspore"), help="kernels of the hook (MSADAPTER_KERNELS)")
    parser.add_argument("--inference", action="store_true", help="forward passes over a batch of one instead of training steps")
    args = parser.parse_args()

    names = sides_of(args)
    load, workloads = os.getloadavg()[0], {}
    if load > 0.5:
        print(f"load average {load:.1f}: other programs are running and will be measured too", file=sys.stderr)
    for workload in args.only or WORKLOADS:
        workloads[workload] = measure(workload, args)
        print(table({workload: workloads[workload]}, names).splitlines()[-1], flush=True)
    print("\nMedian/minimum per step and of the ratios, peak resident memory, time from start to imported.\n")
    print(table(workloads, names))
    failed = False
    for workload, result in workloads.items():
        if result.get("hook_loss_error", 0) > 1e-3:
            failed = True
            print(f"\n{workload}: the hook's first loss is {result['hook_first_loss']}, "
                  f"PyTorch's {result['torch_first_loss']}", file=sys.stderr)
    for workload, result in workloads.items():
        for name in names:
            if f"{name}_error" in result:
                failed = True
                print(f"\n{workload}, {SIDES[name][0]}: {result[f'{name}_error']}", file=sys.stderr)
    if args.json:
        report = {"machine": {"processors": os.cpu_count(), "platform": platform.platform(),
                              "load_before": round(load, 2)},
                  "kernels": args.kernels or "default", "inference": args.inference, "workloads": workloads}
        Path(args.json).write_text(json.dumps(report, indent=1) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
