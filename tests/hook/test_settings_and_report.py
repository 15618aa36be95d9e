"""The settings, read once and again; the report's counts and table; the errors that both name."""

import os
from dataclasses import fields

import pytest

from msadapter_hook import errors, report, settings


@pytest.fixture
def environment(monkeypatch):
    """A clean environment: a function that sets variables and gives the settings read from it."""
    for item in fields(settings.Settings):
        monkeypatch.delenv(item.metadata["variable"], raising=False)
    monkeypatch.setattr(settings, "_origins", {})

    def read(**variables):
        for name, text in variables.items():
            monkeypatch.setenv(name, text)
        return settings.reload()

    yield read
    monkeypatch.undo()
    settings.reload()


@pytest.fixture
def counting():
    """The report, empty and enabled."""
    was = report.enabled
    report.clear()
    report.enable()
    yield report
    report.enable(was)
    report.clear()


def test_every_variable_has_name_default_and_meaning():
    for item in fields(settings.Settings):
        assert set(item.metadata) == {"variable", "parse", "meaning"} and item.metadata["meaning"]


def test_defaults(environment):
    now = environment()
    assert (now.hook, now.enable_backward, now.eager, now.jit, now.threads) == (None, False, False, "auto", None)
    assert (now.kernels, now.device, now.log, now.hook_wanted) == ("mindspore", "auto", "error", False)


def test_values_are_read_and_cached(environment):
    now = environment(ENABLE_BACKWARD="1", MSADAPTER_THREADS="3", MSADAPTER_DEVICE="ascend", MSADAPTER_HOOK=" ")
    assert (now.enable_backward, now.threads, now.device, now.hook) == (True, 3, "Ascend", None)
    assert settings.current() is now
    assert environment(ENABLE_BACKWARD="off") is settings.current() and not settings.current().enable_backward


@pytest.mark.parametrize(
    "name, text",
    [("ENABLE_BACKWARD", "2"), ("MSADAPTER_THREADS", "0"), ("MSADAPTER_THREADS", "many"), ("MSADAPTER_LOG", "loud")],
)
def test_a_wrong_value_is_named(environment, name, text):
    with pytest.raises(errors.SettingsError, match=f"^{name}='{text}': expected "):
        environment(**{name: text})


def test_export_and_restore(environment):
    environment(MSADAPTER_LOG="info")
    before = dict(os.environ)
    undo = settings.export("somebody", MSADAPTER_LOG="debug", MSADAPTER_EAGER="1")
    assert settings.current().log == "debug" and settings.current().eager
    rows = {row[0]: row[1:3] for row in settings.table()}
    assert rows["MSADAPTER_LOG"] == ("debug", "somebody") and rows["MSADAPTER_JIT"] == ("auto", "default")
    os.environ["MSADAPTER_EAGER"] = "0"  # changed by somebody else since: stays
    settings.restore(undo)
    assert dict(os.environ) == before | {"MSADAPTER_EAGER": "0"}
    assert {row[0]: row[2] for row in settings.table()}["MSADAPTER_LOG"] == "environment"
    del os.environ["MSADAPTER_EAGER"]


def test_prepare_process_respects_what_is_set(environment, monkeypatch):
    monkeypatch.setattr(settings, "_processor_flags", lambda: frozenset({"avx2", "avx512f", "avx512bw"}))
    environment(OPENBLAS_CORETYPE="Zen", MSADAPTER_LOG="info")
    undo = settings.prepare_process()
    now = settings.current()
    assert (now.openblas_coretype, now.onednn_max_cpu_isa, now.glog_v) == ("Zen", None, "1")
    assert settings.prepare_process() == []
    settings.restore(undo)
    assert (settings.current().openblas_coretype, settings.current().onednn_max_cpu_isa) == ("Zen", None)
    monkeypatch.setattr(settings, "_processor_flags", lambda: frozenset({"avx2"}))
    monkeypatch.delenv("OPENBLAS_CORETYPE")
    undo = settings.prepare_process()
    assert (settings.current().openblas_coretype, settings.current().onednn_max_cpu_isa) == ("Haswell", None)
    settings.restore(undo)


def test_prepend_path_once(environment, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/a", "/b"]))
    undo = settings.prepend_path("PYTHONPATH", "/new")
    assert os.environ["PYTHONPATH"].split(os.pathsep) == ["/new", "/a", "/b"]
    assert settings.prepend_path("PYTHONPATH", "/new") == []
    settings.restore(undo)
    assert os.environ["PYTHONPATH"].split(os.pathsep) == ["/a", "/b"]


def test_report_counts_by_name_and_path(counting):
    counting.count("torch.add", "primitive", 0.5)
    counting.count("torch.add", "primitive", 0.25)
    counting.count("torch.add", "host", 1.0)
    counting.missing("torch.nothing")
    assert counting.calls() == {("torch.add", "primitive"): (2, 0.75), ("torch.add", "host"): (1, 1.0)}
    assert counting.missing_names() == {"torch.nothing": 1}
    lines = [line.split() for line in counting.table().splitlines()]
    assert lines[2:4] == [["torch.add", "host", "1", "1000.00"], ["torch.add", "primitive", "2", "750.00"]]
    with pytest.raises(ValueError, match="unknown path 'magic'"):
        counting.count("torch.add", "magic", 0.0)


def test_report_tells_the_path_by_what_ran(counting):
    def work(native, host):
        for _ in range(native):
            counting.primitive(True)
        for _ in range(host):
            counting.primitive(False)
        return native + host

    assert counting.measure("torch.relu", work, 1, 0) == 1
    counting.measure("torch.linear", work, 2, 1)
    counting.measure("torch.sort", work, 0, host=1)
    counting.note("programs compiled")
    assert {key: calls for key, (calls, _) in counting.calls().items()} == {
        ("torch.relu", "primitive"): 1, ("torch.linear", "composition"): 1, ("torch.sort", "host"): 1}
    assert "programs compiled: 1" in counting.table()


def test_report_is_empty_while_it_is_off(counting):
    counting.enable(False)
    counting.count("torch.add", "primitive", 0.5)
    counting.missing("torch.nothing")
    assert counting.calls() == counting.missing_names() == {}
    assert counting.table().splitlines()[1:] == ["  no operator was called", "  nothing was missing"]


def test_errors_name_the_thing_and_the_way_out(counting):
    unsupported = errors.unsupported("torch.linalg.eig", "use torch.linalg.eigh for symmetric matrices")
    assert isinstance(unsupported, NotImplementedError) and "torch.linalg.eig is not supported" in str(unsupported)
    assert counting.missing_names() == {"torch.linalg.eig": 1}
