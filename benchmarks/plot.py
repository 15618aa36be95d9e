"""Draws the table of benchmarks.train: time per step of each side, relative to hand-written MindSpore (tuned).

    python -m benchmarks.plot train.json [compiled.json] docs/performance.png

The second file is the same run with MSADAPTER_JIT=on; its hook column is drawn beside the first one's.
"""

import json
import sys
from pathlib import Path

SIDES = (("hook", "hook"), ("mindspore_tuned", "MindSpore, tuned by hand"), ("mindspore_default", "MindSpore, as it comes"),
         ("torch", "PyTorch, 2 threads"))


def bars(files):
    """[(label, {workload: ms})] of every side that was measured."""
    first = json.loads(Path(files[0]).read_text())["workloads"]
    made = [(label, {w: row[f"{side}_ms"] for w, row in first.items() if row.get(f"{side}_ms")}) for side, label in SIDES]
    if len(files) > 1:
        second = json.loads(Path(files[1]).read_text())["workloads"]
        made.insert(1, ("hook, compiled", {w: row["hook_ms"] for w, row in second.items() if row.get("hook_ms")}))
    return [(label, values) for label, values in made if values]


def draw(series, target):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    workloads = list(series[0][1])
    figure, axes = pyplot.subplots(figsize=(9, 4.2), layout="constrained")
    width = 0.8 / len(series)
    for i, (label, values) in enumerate(series):
        at = [k + (i - (len(series) - 1) / 2) * width for k in range(len(workloads))]
        drawn = axes.bar(at, [values.get(w, float("nan")) for w in workloads], width, label=label)
        axes.bar_label(drawn, fmt="%.3g", fontsize=7)
    axes.set_yscale("log")
    axes.set_ylabel("ms per training step (log)")
    axes.set_xticks(range(len(workloads)), workloads)
    axes.legend(fontsize=8, ncols=2, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, dpi=130)


if __name__ == "__main__":
    *files, target = sys.argv[1:]
    draw(bars(files), target)
