"""Which of PyTorch's public names are there, and by which path: python tests/coverage_table.py writes docs/coverage.md.

The names are recorded from real PyTorch by tests/record/names.py.
"""

import importlib
import json
import os
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
OBJECT_NAMES = set(dir(object))


def path_of(found):
    """How a name is implemented: host, kernel, composition, view, or python for what is no operator."""
    from msadapter_hook.ops.tables import PATH

    operator = getattr(found, "__operator__", None)
    if operator is None or not getattr(operator, "overloads", None):
        return "python"
    if operator.name in PATH:
        return PATH[operator.name]
    kind = operator.overloads[0].kind
    return {"composite": "composition", "kernel": "primitives"}.get(kind, kind)


def survey(names):
    """{namespace: ({name: path}, [missing])}"""
    result = {}
    for namespace, listed in names.items():
        if namespace == "torch.Tensor":
            import torch

            holder = torch.Tensor
            listed = [n for n in listed if n not in OBJECT_NAMES]
        else:
            try:
                holder = importlib.import_module(namespace)
            except ImportError:
                result[namespace] = ({}, listed)
                continue
        there = {n: path_of(getattr(holder, n)) for n in listed if hasattr(holder, n)}
        result[namespace] = (there, [n for n in listed if n not in there])
    return result


def document(found):
    lines = ["# Coverage", "", "PyTorch 2.13's public names, by namespace. Written by `python tests/coverage_table.py`.", "",
             "| namespace | names | there | by primitives | composition | view | host | Python |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    total = Counter()
    for namespace, (there, missing) in found.items():
        paths = Counter(there.values())
        n = len(there) + len(missing)
        share = 100 * len(there) / n if n else 100
        lines.append(f"| `{namespace}` | {n} | {share:.1f} % | {paths['primitives'] + paths['primitive']} | {paths['composition']} | "
                     f"{paths['view']} | {paths['host']} | {paths['python']} |")
        total.update(names=n, there=len(there))
    share = 100 * total["there"] / total["names"]
    lines += ["", f"All: {total['there']} of {total['names']} names ({share:.1f} %). A name that is there may "
              "still refuse some of its arguments, with a NotImplementedError that says which.", "", "## Missing", ""]
    for namespace, (_, missing) in found.items():
        if missing:
            lines.append(f"- `{namespace}`: " + ", ".join(f"`{n}`" for n in missing))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    os.environ.setdefault("ENABLE_BACKWARD", "1")
    sys.path.insert(0, str(HERE.parent))
    import msadapter_hook

    msadapter_hook.install()
    made = survey(json.loads((HERE / "goldens" / "names.json").read_text()))
    (HERE.parent / "docs" / "coverage.md").write_text(document(made))
    print(document(made).split("## Missing")[0])
