"""Conformance with PyTorch, measured by the corpora of ../shared (random programs, operator samples) where they exist.

    python tests/conformance.py [--sample]  a sample, checked against tests/conformance_floor.json (as .ci/run does)
    python tests/conformance.py --raise     the same, and raises the floor to what was reached; never lowers it
    python tests/conformance.py --full      everything; writes docs/conformance.md and docs/conformance.json

Exit status 1 where a family falls below its floor, or one with a floor was not measured.
"""
import argparse
import collections
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
FLOOR = ROOT / "tests" / "conformance_floor.json"
DOCUMENT = ROOT / "docs" / "conformance.md"
PRELUDE = "import msadapter_hook; msadapter_hook.install()"
SAMPLE = {"fuzz": ["--every", "8"], "opinfo": ["--dtypes", "float32,int64", "--max-samples", "2", "--no-internal"]}
#: classes of a program that are right in every value and every exception
RIGHT = ("ok", "msg", "meta")
ABSENT = ("missing", "unsupported")
WRONG = ("mismatch", "meta-mismatch", "grad-mismatch")
#: per cent of the checks of operators that are there; a limit of its own, as new operators may move it either way
MISMATCH_LIMIT = 3.0
STATUSES = ("pass", "partial", "fail", "unsupported", "missing", "empty")


# ---------------------------------------------------------------- running
def environment():
    """For the runners and their workers: the tape on, and this checkout importable where nothing is installed."""
    env = {**os.environ, "ENABLE_BACKWARD": "1"}
    if importlib.util.find_spec("msadapter_hook") is None:
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), env.get("PYTHONPATH")]))
    return env


def run(runner, *arguments):
    """Run one of the runners; its output is passed on. A status of 1 only says that something does not conform."""
    command = [sys.executable, str(runner), *map(str, arguments), "--prelude", PRELUDE]
    return subprocess.run(command, env=environment(), check=False).returncode


def run_fuzz(folder, options):
    out = Path(folder) / "fuzz.jsonl"
    status = run(SHARED / "fuzz" / "run_programs.py", SHARED / "fuzz" / "dev.jsonl.gz", "--clusters", "0",
                 "--out", out, *options)
    if not out.exists():
        raise SystemExit(f"the runner of the random programs ended with status {status} and no results")
    with out.open() as lines:
        rows = [json.loads(line) for line in lines]
    return fuzz_summary(rows)


def run_opinfo(folder, options):
    out = Path(folder) / "opinfo.json"
    status = run(SHARED / "opinfo" / "run_opinfo.py", SHARED / "opinfo" / "corpus_dev", "--table", "none",
                 "--out", out, *options)
    if not out.exists():
        raise SystemExit(f"the runner of the operator samples ended with status {status} and no results")
    return opinfo_summary(json.loads(out.read_text())["ops"])


# ---------------------------------------------------------------- what the results say
def percent(part, whole):
    return round(100 * part / whole, 2) if whole else None


def fuzz_summary(rows):
    """By family: how many programs of each class, the share right in values and exceptions, and right in everything."""
    families = collections.defaultdict(lambda: {"classes": collections.Counter(), "bits": [0, 0]})
    for row in rows:
        family = families[row["id"].split("-")[0]]
        family["classes"][row["cat"]] += 1
        for i, count in enumerate(row.get("bit", (0, 0))):
            family["bits"][i] += count
    summary = {}
    for name, family in families.items():
        classes, (equal, tensors) = family["classes"], family["bits"]
        total = classes.total()
        summary[name] = {"programs": total, "classes": dict(classes), "right": percent(classes["ok"], total),
                         "values": percent(sum(classes[c] for c in RIGHT), total), "bit_exact": percent(equal, tensors)}
    return summary


def group_of(path):
    """The family of an operator, from its public path: torch, Tensor, nn.functional, linalg, fft, special …"""
    parts = path.removeprefix("torch.").split(".")[:-1]
    return ".".join(parts[:2]) or "torch"


def opinfo_summary(operators):
    """By family: the operators by status, the share that is there, and how the checks of those that are there went."""
    groups = {}
    for name, op in operators.items():
        group = groups.setdefault(group_of(op["path"]), {
            "operators": 0, "status": collections.Counter(), "there": 0, "all_checks": 0, "checks": 0, "pass": 0,
            "mismatch": 0, "names": {status: [] for status in STATUSES}})
        group["operators"] += 1
        group["status"][op["status"]] += 1
        group["names"][op["status"]].append(name)
        group["all_checks"] += sum(op["counts"].values())
        if op["status"] in ABSENT:
            continue
        group["there"] += 1
        counts = {k: v for k, v in op["counts"].items() if k not in ABSENT}
        group["checks"] += sum(counts.values())
        group["pass"] += counts.get("pass", 0)
        group["mismatch"] += sum(counts.get(k, 0) for k in WRONG)
    total = {"operators": 0, "status": collections.Counter(), "there": 0, "all_checks": 0, "checks": 0, "pass": 0,
             "mismatch": 0}
    for group in groups.values():
        for key in total:
            total[key] += group[key]
    for group in [*groups.values(), total]:
        group["there_percent"] = percent(group["there"], group["operators"])
        group["pass_percent"] = percent(group["pass"], group["checks"])
        group["pass_of_all_percent"] = percent(group["pass"], group["all_checks"])
        group["mismatch_percent"] = percent(group["mismatch"], group["checks"])
    return {"groups": dict(sorted(groups.items())), "all": total}


def floor_values(results):
    """What the floor is about, higher is better: {"fuzz views values": 93.1, …}. Shares are of everything in a family,
    so that an operator that is added can only raise them."""
    values = {}
    for family, row in results["fuzz"].items():
        values[f"fuzz {family} values"] = row["values"]
    for family, row in [*results["opinfo"]["groups"].items(), ("all", results["opinfo"]["all"])]:
        values[f"opinfo {family} there"] = row["there_percent"]
        values[f"opinfo {family} pass"] = row["pass_of_all_percent"]
    return values


def check_floor(values, floor):
    """Lines on what lies below the floor; none where all is well."""
    below = []
    for name, least in floor.items():
        if name not in values:
            below.append(f"{name}: has a floor of {least} % and was not measured")
        elif values[name] < least:
            below.append(f"{name}: {values[name]} % is below its floor of {least} %")
    return below


def raised(values, floor):
    """The floor with every value at least what was reached (rounded down to a tenth), none lowered."""
    names = sorted({*values, *floor})
    return {n: max(math.floor(values.get(n, 0) * 10) / 10, floor.get(n, 0)) for n in names}


# ---------------------------------------------------------------- the document
def markdown(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join("–" if c is None else str(c) for c in line) + " |" for line in lines)


def fuzz_table(fuzz):
    classes = [c for c in ("ok", "msg", "meta", "value", "exc", "missing", "crash", "timeout", "harness")
               if any(row["classes"].get(c) for row in fuzz.values())]
    head = ["family", "programs", *classes, "right in values and exceptions %", "right in everything %", "equal bits %"]
    return markdown(head, [[name, row["programs"], *(row["classes"].get(c, 0) for c in classes), row["values"],
                            row["right"], row["bit_exact"]] for name, row in fuzz.items()])


def opinfo_table(opinfo):
    statuses = [s for s in STATUSES if opinfo["all"]["status"].get(s)]
    head = ["family", "operators", *statuses, "there %", "checks of those there", "pass %", "mismatch %",
            "pass % of all checks"]
    return markdown(head, [[name, row["operators"], *(row["status"].get(s, 0) for s in statuses), row["there_percent"],
                            row["checks"], row["pass_percent"], row["mismatch_percent"], row["pass_of_all_percent"]]
                           for name, row in [*opinfo["groups"].items(), ("**all**", opinfo["all"])]])


def operator_lists(opinfo):
    parts = []
    for status in STATUSES[1:]:
        names = sorted(n for g in opinfo["groups"].values() for n in g["names"][status])
        if names:
            parts.append(f"**{status}** ({len(names)}): " + ", ".join(f"`{n}`" for n in names))
    return "\n\n".join(parts)


def document(results):
    return f"""# Conformance with PyTorch 2.13

Written by `python tests/conformance.py --full`; not to be edited by hand.

## Random programs

Programs recorded under PyTorch and run again under the hook; every variable is compared after every statement. The
class of a program is the worst thing seen in it: ok; msg (right exception, a number missing in its text); meta
(strides, versions, aliasing, `requires_grad`); value; exc (another exception, or none); missing (a name that is not
there).

{fuzz_table(results["fuzz"])}

## Operators

Samples of PyTorch's operator database with outputs, gradients and error cases. An operator is *there* unless every
sample says that its name or its kernel is missing. Of those there: a mismatch is a wrong value, shape, dtype or
gradient; what neither passes nor mismatches raised an error, or failed to raise one.

{opinfo_table(results["opinfo"])}

### Operators that do not pass every check

{operator_lists(results["opinfo"])}
"""


# ---------------------------------------------------------------- command line
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--sample", action="store_true", help="the sample with a floor (the default)")
    kind.add_argument("--full", action="store_true", help="everything; writes the document")
    parser.add_argument("--raise", dest="raise_floor", action="store_true", help="raise the floor of the sample")
    parser.add_argument("--json", metavar="FILE", help="write the results here")
    args = parser.parse_args()
    if args.full and args.raise_floor:
        parser.error("the floor belongs to the sample: --raise goes without --full")
    if not SHARED.is_dir():
        print(f"no corpora beside the project (../{SHARED.name}): nothing measured")
        return 0

    options = {"fuzz": [], "opinfo": []} if args.full else SAMPLE
    with tempfile.TemporaryDirectory() as folder:
        results = {"fuzz": run_fuzz(folder, options["fuzz"]), "opinfo": run_opinfo(folder, options["opinfo"])}
    print(f"\n{fuzz_table(results['fuzz'])}\n\n{opinfo_table(results['opinfo'])}\n")
    text = json.dumps(results, indent=1) + "\n"
    if args.json:
        Path(args.json).write_text(text)
    if args.full:
        DOCUMENT.write_text(document(results))
        DOCUMENT.with_suffix(".json").write_text(text)
        return 0

    values, floor = floor_values(results), json.loads(FLOOR.read_text())
    below = check_floor(values, floor)
    mismatch = results["opinfo"]["all"]["mismatch_percent"]
    if mismatch is not None and mismatch > MISMATCH_LIMIT:
        below.append(f"{mismatch} % of the checks of operators that are there mismatch, more than {MISMATCH_LIMIT} %")
    print("\n".join(below) or f"conformance: {len(floor)} families at or above their floors")
    if args.raise_floor:
        FLOOR.write_text(json.dumps(raised(values, floor), indent=1) + "\n")
    return int(bool(below))


if __name__ == "__main__":
    sys.exit(main())
