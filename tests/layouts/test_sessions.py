"""Sparse, nested and masked tensors against recorded PyTorch: what they print, what they give, what they refuse."""

import itertools

import pytest
import sessions

from msadapter_hook.ops.nested import jagged

CASES = [(name, line) for name in sessions.names() for line in sessions.lines(name) if not line.startswith("!")]


@pytest.fixture(scope="module")
def shown():
    """What each session shows here, run once."""
    made = {}

    def of(name):
        if name not in made:
            jagged._numbers = itertools.count(1)  # they go on through a process; a session was recorded in one of its own
            made[name] = sessions.run(name)
        return made[name]

    return of


@pytest.mark.parametrize(("name", "line"), CASES, ids=[f"{n}: {line}" for n, line in CASES])
def test_line_shows_what_pytorch_shows(shown, name, line):
    got, want = shown(name)[line], sessions.golden(name)[line]
    if isinstance(want, str):
        assert got == want
        return
    assert isinstance(got, list), f"{want[0]} is raised by PyTorch, but here is {got}"
    assert got[0] == want[0], got
    if want[0] != "NotImplementedError":  # which lists PyTorch's backends; ours says what to do instead
        assert got[1] == want[1]
