"""Operators against recorded PyTorch: values, dtypes, named fields, gradients, errors and warnings of single expressions."""

import ops_expressions as ops
import pytest
import torch

CASES = [(family, expression) for family in ops.families() for expression in ops.expressions(family)]


@pytest.fixture(scope="module")
def recorded():
    return {family: ops.goldens(family) for family in ops.families()}


@pytest.mark.parametrize(("family", "expression"), CASES, ids=[f"{f}: {e}" for f, e in CASES])
def test_expression_gives_what_pytorch_gives(recorded, family, expression):
    got, want = ops.observe(torch, expression), recorded[family][expression]
    if "error" in want:  # the words of PyTorch's signature listings are not ours
        assert got.get("error") == want["error"], got
        if "invalid combination" not in want["text"] and "argument" not in want["text"]:
            assert got["text"] == want["text"]
        return
    assert not ops.differences(got, want)
