"""Hand-chosen programs over views, in-place writes, autograd, hooks, indexing, types, printing, errors and random numbers: the
values, texts and exceptions of real PyTorch (recorded by tests/record/behaviour.py)."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("record_behaviour", HERE.parent / "record" / "behaviour.py")
record = importlib.util.module_from_spec(spec)
spec.loader.exec_module(record)

GOLDENS = json.loads((HERE.parent / "goldens" / "behaviour.json").read_text())
CASES = {name: (body, expression) for name, body, expression in record.read()}


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    golden = GOLDENS[name]
    got = record.run(*CASES[name])
    if "value" in golden:
        assert got == golden
        return
    kind, text = golden["error"]
    assert "error" in got, got
    assert got["error"][0] == kind, got
    numbers = set(re.findall(r"\d+", got["error"][1]))
    assert set(re.findall(r"\d+", text)) <= numbers or not re.findall(r"\d+", text), (text, got["error"][1])


def test_cases_that_raise_are_named_so():
    assert {n for n in CASES if n.endswith("_raises")} == {n for n in CASES if "error" in GOLDENS[n]}
