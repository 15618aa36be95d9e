"""torch.profiler and torch.autograd.profiler: what they record and how they print it."""

import json

import torch
from torch.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule

from msadapter_hook import report


def step(model, x):
    with record_function("my step"):
        return model(x).relu()


def test_sums_by_name_and_nesting():
    model, x = torch.nn.Linear(8, 4), torch.ones(2, 8)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        step(model, x)
        step(model, x)
    rows = {event.key: event for event in prof.key_averages()}
    assert rows["my step"].count == 2 and rows["aten::linear"].count == 2
    assert rows["my step"].cpu_time_total >= rows["aten::linear"].cpu_time_total > 0
    assert abs(rows["my step"].cpu_time - rows["my step"].cpu_time_total / 2) < 1e-6
    top = [event for event in prof.events() if event.cpu_parent is None]
    assert [event.name for event in top] == ["my step", "my step"]
    assert abs(sum(event.self_cpu_time_total for event in prof.events()) - sum(event.cpu_time_total for event in top)) < 1e-3
    shapes = {event.key: event.input_shapes for event in prof.key_averages(group_by_input_shape=True)}
    assert shapes["aten::linear"] == [[2, 8], [4, 8], [4]]


def test_table_has_pytorchs_columns():
    with torch.autograd.profiler.profile() as prof:
        torch.ones(3).exp().sum()
    lines = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=1).splitlines()
    assert lines[1].split("  ")[0].strip() == "" and lines[1].split()[0] == "Name"
    for column in ("Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls"):
        assert column in lines[1]
    assert len(lines) == 6 and lines[0] == lines[2] == lines[4] and lines[5].startswith("Self CPU time total: ")


def test_nothing_is_recorded_outside_and_the_report_is_left_alone():
    was, before = report.enabled, report.calls()
    with profile() as prof:
        torch.ones(2).neg()
    assert report.enabled == was and report.calls() == before
    torch.ones(2).exp()
    assert "aten::neg" in [e.key for e in prof.events()] and "aten::exp" not in [e.key for e in prof.events()]


def test_an_error_closes_its_event():
    with profile() as prof:
        with record_function("outer"):
            try:
                torch.ones(2) @ torch.ones(3)
            except RuntimeError:
                pass
            torch.ones(2).neg()
    assert [e.name for e in prof.events() if e.cpu_parent is None] == ["outer"]
    neg = next(e for e in prof.events() if e.name == "aten::neg")
    assert neg.cpu_parent.name == "outer"


def test_schedule_and_traces(tmp_path):
    plan = schedule(wait=1, warmup=1, active=2, repeat=1)
    kinds = ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE, ProfilerAction.NONE
    assert tuple(plan(i) for i in range(5)) == kinds
    written = []

    def ready(prof):
        prof.export_chrome_trace(tmp_path / f"{len(written)}.json")
        written.append(prof.step_num)

    with profile(schedule=plan, on_trace_ready=ready) as prof:
        for _ in range(6):
            torch.ones(2).neg()
            prof.step()
    assert written == [4]
    events = json.loads((tmp_path / "0.json").read_text())["traceEvents"]
    assert [e["name"] for e in events if e["name"] == "aten::neg"] == ["aten::neg"] * 2
    assert all(e["ph"] == "X" and e["dur"] >= 0 for e in events)


def test_record_function_decorates():
    @record_function("decorated")
    def f(x):
        return x.neg()

    with profile() as prof:
        f(torch.ones(2))
    assert [e.name for e in prof.events()] == ["aten::ones", "decorated", "aten::neg"]


def test_regions_as_operators():
    with profile() as prof:
        handle = torch.ops.profiler._record_function_enter("region")
        torch.ones(2).neg()
        torch.ops.profiler._record_function_exit(handle)
        torch.ones(2).exp()
    parents = {e.name: e.cpu_parent.name if e.cpu_parent else None for e in prof.events()}
    assert parents["aten::neg"] == "region" and parents["aten::exp"] is None
