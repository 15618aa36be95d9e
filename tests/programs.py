"""The table of real programs in docs/programs.md, from what their driver recorded.

    python tests/programs.py RESULTS.json BASELINE.json [--entries 'tut-*,px-*'] [--reasons FILE] [--write docs/programs.md]

RESULTS is what the driver of the collection of programs wrote under the hook, BASELINE what it wrote under PyTorch. Programs that
PyTorch itself does not pass are left out of the share. `--reasons`: {program: why it is not ok}, for what an error alone does not
tell.
"""

import argparse
import fnmatch
import json
import re
import sys
from pathlib import Path

REASONS = Path(__file__).with_name("programs_reasons.json")
ENTRIES = "tut-*,px-*,nlp-*,mv-*,yj-*,jc-*,kp-*,d2l-*,eat-*"

TEXT = """# Real programs

Unmodified programs of tutorials and example collections, run by `python -m msadapter_hook` with the seed, the data and the command that
PyTorch 2.13 was run with. `ok`: the program ends as it does under PyTorch, and every figure that it prints at the end lies within the
tolerance of its entry. Written by `tests/programs.py`.

"""


def verdict(result):
    """"ok", "runs" (no figures of PyTorch to compare with) or "fails"."""
    if "ok" in result:
        return "ok" if result["ok"] else "fails"
    return "runs" if result.get("pass") else "fails"


def figures(result):
    """What the program printed against PyTorch's: "loss 0.31 (0.30)"."""
    shown = []
    for name, figure in (result.get("vs_torch") or {}).items():
        if isinstance(figure, list) and figure[0] is not None:
            shown.append(f"{name.replace('|', '/')} {figure[0]:.5g} ({figure[1]:.5g})")
        elif name in ("passed", "torch_passed"):
            shown.append(f"{name} {figure}")
    return ", ".join(shown)


def clean(text):
    """An error as one short cell, without paths of a machine."""
    text = re.sub(r"/[\w./+-]*/", "", text).replace("|", "/").replace("\n", " ")
    return text if len(text) <= 160 else text[:157] + "..."


def reason(result, known):
    if verdict(result) != "fails":
        return ""
    if result["id"] in known:
        return known[result["id"]]
    if not result.get("pass"):
        return clean(result.get("last_error", "it fails"))
    return "figures differ"


def table(results, baseline, known):
    rows = ["| program | result | figures (PyTorch's) | seconds | why not |", "|---|---|---|---|---|"]
    for result in results:
        rows.append(f"| {result['id']} | {verdict(result)} | {figures(result)} | {result['time_s']:.0f} | {reason(result, known)} |")
    counted = [r for r in results if baseline.get(r["id"], {}).get("pass")]
    good = sum(verdict(r) == "ok" for r in counted)
    share = f"{good} of {len(counted)} that PyTorch passes are ok: {100 * good / max(1, len(counted)):.0f} %."
    others = [r["id"] for r in results if r["id"] not in {c["id"] for c in counted}]
    if others:
        share += f" Without figures of PyTorch: {', '.join(others)}."
    return share + "\n\n" + "\n".join(rows) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("baseline")
    parser.add_argument("--entries", default=ENTRIES, help="names or patterns, with commas")
    parser.add_argument("--reasons", default=str(REASONS))
    parser.add_argument("--write")
    args = parser.parse_args()
    patterns = args.entries.split(",")
    results = [r for r in json.loads(Path(args.results).read_text()) if any(fnmatch.fnmatch(r["id"], p) for p in patterns)]
    baseline = {r["id"]: r for r in json.loads(Path(args.baseline).read_text())}
    known = json.loads(Path(args.reasons).read_text()) if Path(args.reasons).exists() else {}
    text = table(sorted(results, key=lambda r: r["id"]), baseline, known)
    print(text)
    if args.write:
        Path(args.write).write_text(TEXT + text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
