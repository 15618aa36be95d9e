"""docs/pytorch_tests.md from the results of PyTorch's own test files under the hook.

    python tests/pt_table.py RESULT.json [RESULT.json ...]

Each file is what the harness that runs PyTorch's unmodified tests writes: {"files": {name: {"tests": {id: {"o": outcome, "m":
message}}}}}. A later file's results of a test file replace an earlier one's.
"""

import collections
import json
import pathlib
import re
import sys

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent / "docs" / "pytorch_tests.md"
GROUPS = {
    "nn, optim, data, checkpoints, distributions": (
        "nn/", "test_nn.py", "test_modules.py", "test_module_init.py", "test_optim.py", "test_dataloader.py",
        "test_serialization.py", "distributions/", "test_native_mha.py"),
    "autograd, views, indexing, promotion": (
        "test_autograd.py", "autograd/", "test_view_ops.py", "test_indexing.py", "test_type_promotion.py", "test_stateless.py",
        "test_complex.py"),
    "the rest": ("",),
}
COLUMNS = ("passed", "failed", "error", "skipped", "missing", "other")
# What is refused on purpose, by what the message says; everything else is a difference.
REFUSED = (
    ("tensors that dispatch in Python (`__torch_dispatch__`)", r"_make_wrapper_subclass|torch_dispatch|LoggingTensor"),
    ("PyTorch's decompositions and fake tensors", r"_prims|_refs|FakeTensor|fake_tensor|CompositeCompliant|TestTagsMode|_subclasses"),
    ("sparse layouts", r"[Ss]parse|_indices|coalesce"),
    ("nested tensors", r"nested"),
    ("quantization", r"quantiz|qat|quint|qint"),
    ("names of PyTorch's kernels and libraries", r"_mkldnn|_ConvBackend|_select_conv_backend|kineto|lobpcg_symmetric"),
    ("compiled programs (TorchScript)", r"Script|torch\\.jit"),
    ("tensors without data (device meta)", r"meta"),
)


def outcome(test):
    found = test["o"]
    return found if found in COLUMNS else "other"


def reason(test):
    message = " ".join((test.get("m") or "").split())
    for name, pattern in REFUSED:
        if re.search(pattern, message):
            return name, True
    return message.replace("|", "/")[:110] or test["o"], False


def share(counts):
    total = sum(counts.values())
    return f"{100 * counts['passed'] / total:.1f} %" if total else "–"


def table(files):
    yield "| file | " + " | ".join(COLUMNS) + " | passed | main reasons |"
    yield "|---" * (len(COLUMNS) + 3) + "|"
    for name, tests in sorted(files.items()):
        counts = collections.Counter(map(outcome, tests.values()))
        bad = collections.Counter(reason(t)[0] for t in tests.values() if t["o"] not in ("passed", "skipped"))
        reasons = "; ".join(f"{n} × {r}" if n > 1 else r for r, n in bad.most_common(3))
        yield f"| {name} | " + " | ".join(str(counts[c] or "") for c in COLUMNS) + f" | {share(counts)} | {reasons} |"


def document(files):
    groups = {name: {} for name in GROUPS}
    for file, tests in files.items():
        groups[next(g for g, starts in GROUPS.items() if file.startswith(starts))][file] = tests
    yield "# PyTorch's own tests"
    yield ""
    yield ("PyTorch's unmodified test files, run under the hook; the tests are a fixed list of those that pass on PyTorch 2.13. Written by "
           "`python tests/pt_table.py` from the harness's results.")
    yield ""
    yield "| group | " + " | ".join(COLUMNS) + " | passed |"
    yield "|---" * (len(COLUMNS) + 2) + "|"
    every = [t for tests in files.values() for t in tests.values()]
    for name, tests in [*((n, [t for f in g.values() for t in f.values()]) for n, g in groups.items()), ("all", every)]:
        counts = collections.Counter(map(outcome, tests))
        yield f"| {name} | " + " | ".join(str(counts[c] or "") for c in COLUMNS) + f" | {share(counts)} |"
    refused = collections.Counter(reason(t)[0] for t in every if t["o"] not in ("passed", "skipped") and reason(t)[1])
    yield ""
    yield "What is not provided, and refuses where it is used, accounts for these:"
    yield ""
    for name, n in refused.most_common():
        yield f"- {name}: {n}"
    for name, chosen in groups.items():
        if chosen:
            yield ""
            yield f"## {name}"
            yield ""
            yield from table(chosen)


def main(paths):
    if not paths:
        sys.exit(__doc__)
    files = {}
    for path in paths:
        for name, found in json.loads(pathlib.Path(path).read_text())["files"].items():
            files[name] = found["tests"]
    DOCUMENT.write_text("\n".join(document(files)) + "\n")
    print(DOCUMENT)


if __name__ == "__main__":
    main(sys.argv[1:])
