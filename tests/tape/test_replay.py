# When a program is compiled: how long it must have run, how long it may be, and that the faster way is kept.
from types import SimpleNamespace

import pytest

from msadapter_hook.tape import replay


@pytest.fixture
def clock(monkeypatch):
    """Replays of a made-up program on a made-up clock: seconds a plain and a compiled run take."""
    now = SimpleNamespace(time=0.0, plain=0.01, compiled=0.002, compilations=0, jit="auto")

    def runs(kind):
        def call(inputs, cotangents):
            now.time += getattr(now, kind)
            return kind
        return call

    def compile_gradient(function, inputs, positions):
        now.compilations += 1
        if now.compiled is None:
            raise RuntimeError("no such kernel")
        return runs("compiled")

    monkeypatch.setattr(replay.time, "perf_counter", lambda: now.time)
    monkeypatch.setattr(replay.backend, "Gradient", lambda function, positions: runs("plain"))
    monkeypatch.setattr(replay.backend, "compile_gradient", compile_gradient)
    monkeypatch.setattr(replay.settings, "current", lambda: now)
    monkeypatch.setattr(replay, "policy", SimpleNamespace(compiled=0, wanted=0))
    return now


def spend(made, seconds, clock):
    end, kinds = clock.time + seconds, []
    while clock.time < end:
        kinds.append(made((), ()))
    return kinds


def test_auto_compiles_once_it_costs_a_few_percent(clock):
    made = replay.Replay(None, (), 40)  # compiling 40 lines takes about half a second
    assert set(spend(made, 10, clock)) == {"plain"} and clock.compilations == 0
    kinds = spend(made, 10, clock)
    assert clock.compilations == 1 and kinds[-1] == "compiled" and replay.policy.compiled == 1
    first = kinds.index("compiled")
    assert kinds[first:first + 15] == ["compiled", "plain"] * 7 + ["compiled"] and "plain" not in kinds[first + 15:]


def test_what_is_not_faster_compiled_is_not_kept(clock):
    clock.compiled = 0.011
    made = replay.Replay(None, (), 10)
    kinds = spend(made, 20, clock)
    assert kinds[-1] == "plain" and clock.compilations == 1 and replay.policy.compiled == 0
    assert kinds.count("compiled") == 8


def test_the_comparison_is_with_the_last_runs(clock):
    clock.plain = 0.001  # faster in the beginning than later on
    made = replay.Replay(None, (), 10)
    spend(made, 1, clock)
    clock.plain, clock.compiled = 0.02, 0.01
    assert spend(made, 20, clock)[-1] == "compiled"


def test_a_machine_that_gets_slower_meanwhile_does_not_matter(clock, monkeypatch):
    compile_gradient = replay.backend.compile_gradient

    def slower(*given):
        clock.plain, clock.compiled = 0.04, 0.02  # both; plain runs took 0.01
        return compile_gradient(*given)

    monkeypatch.setattr(replay.backend, "compile_gradient", slower)
    assert spend(replay.Replay(None, (), 10), 20, clock)[-1] == "compiled"


def test_what_cannot_be_compiled_is_tried_once(clock):
    clock.compiled, clock.jit = None, "on"
    made = replay.Replay(None, (), 10)
    assert set(spend(made, 1, clock)) == {"plain"} and clock.compilations == 1 and replay.policy.compiled == 0


def test_asked_for_is_compiled_at_the_third_run_and_kept(clock):
    clock.jit, clock.compiled = "on", 0.5
    made = replay.Replay(None, (), 10)
    assert [made((), ()) for _ in range(12)] == ["plain"] * 2 + ["compiled"] * 10


@pytest.mark.parametrize("jit", ["auto", "on"])
def test_long_programs_are_not_compiled(clock, jit):
    clock.jit = jit
    made = replay.Replay(None, (), 5000)
    assert set(spend(made, 10, clock)) == {"plain"} and clock.compilations == 0


def test_off_never_compiles(clock):
    clock.jit = "off"
    assert set(spend(replay.Replay(None, (), 10), 50, clock)) == {"plain"}


def test_no_more_than_sixteen_programs_are_compiled(clock):
    clock.jit = "on"
    kinds = [[made((), ()) for _ in range(12)][-1] for made in (replay.Replay(None, (), 10) for _ in range(18))]
    assert kinds == ["compiled"] * 16 + ["plain"] * 2
