"""gradcheck and gradgradcheck, by reverse and forward mode, over the differentiable samples of an operator corpus.

    python tests/gradcheck_corpus.py FOLDER [--ops add,linalg.*] [--samples 3] [--json FILE] [--known DOCUMENT] [--plain]
    python tests/gradcheck_corpus.py --table docs/gradcheck.md --merge ours1.json,ours2.json [--excuse plain.json]

FOLDER holds a corpus of recorded operator samples and its runner, `run_opinfo.py`. Samples are taken in float64 (those recorded
in float32 are widened). Prints a line for each operator that fails, and a summary. `--plain`: whatever `import torch` gives,
without the hook; what fails there too is the sample's fault (a kink, a random result), and `--excuse FILE` leaves out what an
earlier run with `--json` found failing. `--known`: the exit status is 1 where something fails that such a document does not name;
`--table`: write what runs with `--json` found as a document, with the reasons below.
"""

import argparse
import collections
import fnmatch
import json
import os
import signal
import sys
import time
import warnings


class Slow(Exception):
    """A sample took too long."""


def _alarm(signum, frame):
    raise Slow


#: operators that look at one half of a matrix: it stays symmetric while its elements are moved
HERMITIAN = frozenset(["cholesky", "linalg.cholesky", "linalg.cholesky_ex", "linalg.eigh", "linalg.eigvalsh"])


def widened(op):
    """The samples with gradients, float64 first, then float32; without exact repetitions of their inputs' shapes."""
    chosen = [s for dt in ("float64", "float32") for s in op["samples"] if s["dt"] == dt and s.get("g") and "function" in s["v"]]
    seen, kept = set(), []
    for s in chosen:
        key = json.dumps([s["a"], s["k"], [r[3] for r in s["in"]]])
        if key not in seen:
            seen.add(key)
            kept.append(s)
    return kept


def inputs_of(torch, runner, blobs, sample):
    """The tensors of a sample, floating ones in float64, those that had gradients require grad."""
    wanted = {i for i, _ in sample["g"]["gi"]}
    made = []
    for i, ref in enumerate(sample["in"]):
        t = runner.make_tensor(torch, blobs, ref)
        if t.dtype == torch.float32:
            t = t.double()
        if i in wanted and any(n > 1 and not s for n, s in zip(t.shape, t.stride())):
            t = t.clone(memory_format=torch.contiguous_format)  # an element that stands for several cannot be moved alone
        made.append(t.requires_grad_() if i in wanted else t)
    return made, sorted(wanted)


def function_of(torch, runner, op, sample, tensors, wanted):
    """The operator as a function of the tensors that require grad; its random draws are always the same."""

    def function(*given):
        every = list(tensors)
        for i, t in zip(wanted, given):
            every[i] = (t + t.mH) / 2 if op["name"] in HERMITIAN else t
        torch.manual_seed(0)
        result, _ = runner.call(torch, op, sample, "function", every)
        flat = []

        def collect(x):
            if isinstance(x, torch.Tensor):
                flat.append(x)
            elif isinstance(x, (tuple, list)):
                for y in x:
                    collect(y)

        collect(result)
        return tuple([t for t in flat if t.is_floating_point() or t.is_complex()])

    return function


def checks(torch):
    """The checks by name: functions of (function, inputs)."""
    from torch.autograd import gradcheck, gradgradcheck

    common = {"fast_mode": True, "nondet_tol": 1e-10, "atol": 1e-5, "rtol": 1e-3}
    return {
        "grad": lambda f, x: gradcheck(f, x, **common),
        "forward": lambda f, x: gradcheck(f, x, check_forward_ad=True, check_backward_ad=False, **common),
        "gradgrad": lambda f, x: gradgradcheck(f, x, **common),
        "forward-over-reverse": lambda f, x: gradgradcheck(f, x, check_fwd_over_rev=True, check_rev_over_rev=False,
                                                             check_undefined_grad=False, **common),
    }


def run(torch, runner, corpus, a):
    """{operator: {check: {status: [messages]}}}."""
    found = {}
    chosen = checks(torch)
    if a.checks:
        chosen = {k: v for k, v in chosen.items() if k in a.checks.split(",")}
    for op in corpus.ops:
        if a.ops and not any(fnmatch.fnmatch(op["name"], p) for p in a.ops.split(",")):
            continue
        if a.shard:
            k, n = map(int, a.shard.split("/"))
            if sum(map(ord, op["id"])) % n != k - 1:
                continue
        samples = widened(op)
        if not samples:
            continue
        try:
            runner.resolve(torch, op["path"])
        except Exception:
            found[op["id"]] = {"missing": {}}
            continue
        blobs, table = corpus.blobs(op), found.setdefault(op["id"], {})
        done = 0
        for sample in samples:
            if done >= a.samples:
                break
            size = sum(runner.ref_array(blobs, r).size for r in sample["in"])
            if size > a.elements:
                continue
            done += 1
            for name, check in chosen.items():
                status, text = one(torch, runner, op, sample, blobs, check, a.timeout)
                text = f"sample {sample['i']}/{sample['dt']}: {text}" if text else ""
                table.setdefault(name, {}).setdefault(status, []).append(text)
        for name, statuses in table.items():
            for status in statuses:
                if status != "pass":
                    found_here = statuses[status]
                    print(f"{op['name']:40} {name:22} {status:12} {len(found_here)}  {found_here[0][:a.width]}", flush=True)
    return found


def one(torch, runner, op, sample, blobs, check, timeout):
    signal.signal(signal.SIGALRM, _alarm)
    signal.setitimer(signal.ITIMER_REAL, timeout)
    try:
        tensors, wanted = inputs_of(torch, runner, blobs, sample)
        function = function_of(torch, runner, op, sample, tensors, wanted)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(function, tuple([tensors[i] for i in wanted]))
        return "pass", ""
    except Slow:
        return "slow", f"more than {timeout} s"
    except NotImplementedError as e:
        return "unsupported", " ".join(str(e).split())
    except Exception as e:
        kind = "wrong" if type(e).__name__ == "GradcheckError" else "error"
        return kind, f"{type(e).__name__}: {' '.join(str(e).split())}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


ORDER = ("wrong", "error", "unsupported", "slow")

#: why an operator does not pass, by the start of its name
REASONS = {
    "as_strided_scatter": "PyTorch gives a gradient to what the window overwrites; that is followed",
    "cholesky": "one triangle of the matrix is read, finite differences move both",
    "linalg.norm.subgradients_at_zero": "a norm at zero",
    "masked.log": "what is masked out is infinite or NaN in the result",
    "nn.functional.max_unpool": "several elements have one place: the last of them stays",
    "nn.functional.multi_head": "takes more time than is given to one check",
    "nn.functional.ctc_loss": "takes more time than is given to one check",
    **dict.fromkeys(["atanh", "erfinv", "rad2deg", "sqrt"], "the sample lies outside of the domain: NaN"),
}


def document(runs, plain):
    """The table of what was found, as Markdown. `plain`: what a run of PyTorch itself found."""
    found = {}
    for run in runs:
        found.update(run)
    checks = [name for name in ("grad", "gradgrad", "forward", "forward-over-reverse") if any(name in t for t in found.values())]
    counts = {name: collections.Counter() for name in checks}
    rows = []
    for op, table in sorted(found.items()):
        for name in checks:
            statuses = table.get(name, {})
            if not statuses:
                continue
            status = next((s for s in ORDER if s in statuses), "pass")
            theirs = next((s for s in ORDER if s in plain.get(op, {}).get(name, {})), "pass")
            if status == "pass":
                counts[name]["pass"] += 1
                continue
            counts[name][status if theirs == "pass" else "as PyTorch"] += 1
            rows.append((op, name, status, theirs, next((r for start, r in REASONS.items() if op.startswith(start)), "not explained")))
    columns = ["pass", "as PyTorch", *ORDER]
    lines = ["# gradcheck and gradgradcheck over the operators", "",
             "Written by `python tests/gradcheck_corpus.py --table`; not to be edited by hand.", "",
             "Every differentiable operator of a corpus of recorded samples, in float64, by PyTorch's own checks: gradients against",
             "finite differences along random directions (`grad`), and gradients of gradients (`gradgrad`). *as PyTorch*: the sample does",
             "not pass with PyTorch either (a kink, a pole, factors that are not unique, a second derivative that PyTorch lacks).", "",
             "| check | operators | " + " | ".join(columns) + " |", "| --- " * (len(columns) + 2) + "|"]
    for name in checks:
        lines.append(f"| {name} | {sum(counts[name].values())} | " + " | ".join(str(counts[name][c]) for c in columns) + " |")
    lines += ["", "## What does not pass", "", "| operator | check | here | with PyTorch | why |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| `{op}` | {name} | {status} | {theirs} | {why} |" for op, name, status, theirs, why in rows]
    return "\n".join(lines) + "\n"


def unknown(found, text):
    """What fails though the table of a document does not name it."""
    cells = [row.split("|") for row in text.splitlines() if row.startswith("| `")]
    known = {(row[1].strip(" `"), row[2].strip()) for row in cells}
    return [f"{op}: {name}" for op, table in found.items() for name, statuses in table.items()
            if any(s in statuses for s in ORDER) and (op, name) not in known]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--table")
    parser.add_argument("--merge")
    parser.add_argument("--ops")
    parser.add_argument("--checks")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--elements", type=int, default=600)
    parser.add_argument("--timeout", type=float, default=20)
    parser.add_argument("--shard")
    parser.add_argument("--width", type=int, default=200)
    parser.add_argument("--json")
    parser.add_argument("--excuse")
    parser.add_argument("--known")
    parser.add_argument("--plain", action="store_true")
    a = parser.parse_args()
    if a.table:
        with open(a.table, "w") as f:
            f.write(document([json.load(open(name)) for name in a.merge.split(",")], json.load(open(a.excuse)) if a.excuse else {}))
        return 0
    if not a.plain:
        import msadapter_hook

        msadapter_hook.install()
    sys.path.insert(0, a.folder)
    import run_opinfo as runner
    import torch

    start = time.time()
    corpus = runner.Corpus(os.path.join(a.folder, "corpus_dev"))
    found = run(torch, runner, corpus, a)
    excused = json.load(open(a.excuse)) if a.excuse else {}
    counts = collections.defaultdict(collections.Counter)
    for op, table in found.items():
        for name, statuses in table.items():
            status = next((s for s in ("wrong", "error", "unsupported", "slow") if s in statuses), "pass")
            if status != "pass" and any(s in excused.get(op, {}).get(name, {}) for s in ("wrong", "error", "unsupported", "slow")):
                status = "excused"
            counts[name][status] += 1
    for name, row in counts.items():
        print(f"{name:22} " + "  ".join(f"{k} {v}" for k, v in sorted(row.items())))
    print(f"{len(found)} operators in {time.time() - start:.0f} s")
    if a.json:
        with open(a.json, "w") as f:
            json.dump(found, f)
    if a.known:
        with open(a.known) as f:
            failing = unknown(found, f.read())
        print("\n".join(failing) or "nothing fails but what is known to")
        return int(bool(failing))
    return 0


if __name__ == "__main__":
    sys.exit(main())
