"""Programs over function transforms, forward mode, inference mode, hooks, checkpoints and gradcheck: what PyTorch gives and raises
(recorded by tests/record/autograd.py)."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

from msadapter_hook import settings

HERE = Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("programs_case", HERE / "programs_case.py")
programs = sys.modules["programs_case"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(programs)

GOLDENS = json.loads((HERE.parent / "goldens" / "autograd.json").read_text())
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
_results = {}

#: Cases in which the adapter differs from PyTorch, by reason; the test says so when one of them is right after all.
DIFFERENT = {
    "a checkpointed region runs to its end again: no early stop, no look at what does not matter": [
        "checkpoint-False nondet nocheck", "checkpoint-early", "checkpoint-ctx"],
    "a gradient here does not depend on what PyTorch's formula mentions, or the other way round": [
        *[f"functional-{f} {{'strict': True, 'create_graph': True}} sq {b}"
          for f in ("hessian", "hvp", "vhp") for b in (False, True)],
        "functional-hess fwd two", "nesting-AF hess", "nesting-module"],
    "the numbers depend on random directions, or on in-place writes within a difference": [
        "gradcheck-bad fast", "gradcheck-fwd bad fast", "gradcheck-modifies", "gradcheck-gg bad"],
    "numerical Jacobians are float64": ["gradcheck-f32"],
    "names of files, classes and functions": ["graph-allow mutation", "graph-all", "graph-anomaly", "graph-anomaly4"],
    "out= of an inference tensor: refused before anything is written": [
        "inference-copy to", "inference-mul nograd", "inference-add_ a", "inference-view of normal made in inf, add_ out"],
    "a view from inference mode whose base was written to counts as a leaf": ["inference-backward i"],
    "vmap runs sample by sample: what PyTorch has no batching rule for works": [
        "mapping-bn", "mapping-bernoulli_ captured diff", "mapping-bernoulli_ batched same"],
    "vmap: the error names the dimensions of a sample": ["mapping-inplace captured", "mapping-kwargs2"],
    "tangents are not printed": ["nesting-repr"],
    "the power rule uses the result, and a convolution packs less": ["saved_hooks-scale pow", "saved_hooks-conv"],
    "texts of Python's own errors": ["saved_hooks-pack args"],
    "a tangent has the dtype of its primal": ["transforms-jvp dtype"],
}
REASONS = {case: reason for reason, cases in DIFFERENT.items() for case in cases}
if settings.current().kernels == "host":
    del REASONS["saved_hooks-scale pow"]  # a cube is one operation there, as PyTorch's


def results(program):
    if program not in _results:
        _results[program] = programs.run(str(HERE / "programs" / f"{program}.py"))
    return _results[program]


@pytest.mark.parametrize("program,name", [(p, n) for p, cases in GOLDENS.items() for n in cases])
def test_case(program, name, request):
    if f"{program}-{name}" in REASONS:
        request.applymarker(pytest.mark.xfail(reason=REASONS[f"{program}-{name}"], strict=True))
    want, got = GOLDENS[program][name], results(program)[name]
    assert NUMBER.sub("#", got) == NUMBER.sub("#", want)
    for a, b in zip(NUMBER.findall(got), NUMBER.findall(want)):
        assert float(a) == pytest.approx(float(b), rel=1e-4, abs=2e-4)


@pytest.mark.parametrize("program", sorted(GOLDENS))
def test_every_case_is_recorded(program):
    assert set(results(program)) == set(GOLDENS[program])
