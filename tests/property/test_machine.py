"""Random programs against the NumPy model, late and at once; each is run three times, so that late values are used."""

import io
import sys
from pathlib import Path

import pytest
import torch

from msadapter_hook.tape import late

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.property import machine
from tests.property.programs import Drawing, Program, Statement


@pytest.mark.parametrize("lateness", [True, False], ids=["late", "eager"])
def test_random_programs(lateness, monkeypatch):
    monkeypatch.setattr(late.state, "enabled", lateness)
    told = io.StringIO()
    done, failures = machine.explore(torch, seed=20, programs=300, runs=3, stream=told)
    assert done == 300 and not failures, told.getvalue()


def test_programs_are_the_same_for_a_seed():
    assert Drawing("0:7").draw() == Drawing("0:7").draw() != Drawing("0:8").draw()


def program(*statements):
    return Program(statements, "float64", False, True)


MADE = Statement("create", (), "t1", ((1.0, -2.0, 3.0), True))


def test_a_wrong_value_is_seen(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "sin", torch.Tensor.cos)
    assert "t2" in machine.Runner(torch).check(program(MADE, Statement("sin", ("t1",), "t2")), 1)


def test_a_wrong_gradient_is_seen_and_made_small(monkeypatch):
    wrong = torch.Tensor.tanh
    monkeypatch.setattr(torch.Tensor, "tanh", lambda t: wrong(t).detach() + t - t.detach())
    runner = machine.Runner(torch)
    long = program(MADE, Statement("sin", ("t1",), "t2"), Statement("tanh", ("t1",), "t3"), Statement("detach", ("t3",), "t4"),
                   Statement("backward", ("t3", "t2"), "", (False,)))
    small, what = runner.minimise(long, 1)
    assert "t1.grad" in what
    assert [s.kind for s in small.statements] == ["create", "sin", "tanh", "backward"]


def test_a_lost_write_is_seen(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "zero_", lambda t: t)
    made = program(Statement("create", (), "t1", ((1.0, 2.0), False)), Statement("slice", ("t1",), "t2", (((0, 1, 1),),)),
                   Statement("zero_", ("t2",)))
    assert "t1" in machine.Runner(torch).check(made, 1)
