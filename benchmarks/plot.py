"""Draws the table of benchmarks.train: time per step of each side, relative to hand-written MindSpore (tuned).

    python -m benchmarks.plot train.json docs/performance.png
"""

import json
import sys
from pathlib import Path

SIDES = (("hook", "hook"), ("hook_compiled", "hook, compiled"), ("mindspore_tuned", "MindSpore, tuned by hand"),
         ("mindspore_default", "MindSpore, as it comes"), ("torch", "PyTorch, 2 threads"))


def bars(file):
    """[(label, {workload: ms})] of every side that was measured."""
    rows = json.loads(Path(file).read_text())["workloads"]
    made = [(label, {w: row[f"{side}_ms"] for w, row in rows.items() if row.get(f"{side}_ms")}) for side, label in SIDES]
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
    draw(bars(sys.argv[1]), sys.argv[2])
