"""Where host kernels are preferred nothing is late, replayed or compiled: the tests of that have no subject."""

import pytest

from msadapter_hook import settings

REPLAY = {
    "test_compiled.py": None,
    "test_simplify.py": None,
    "test_replay.py": None,
    "test_late.py": ["test_reading_computes_once", "test_what_depends_on_a_pending_value_waits_and_comes_with_backward",
                     "test_a_parameter_update_cannot_change_what_is_pending", "test_an_error_of_a_late_execution_names_the_line",
                     "test_compiled_replay_gives_the_same"],
}


def pytest_collection_modifyitems(items):
    if settings.current().kernels != "host":
        return
    for item in items:
        names = REPLAY.get(item.path.name, [])
        if item.path.parent.name == "tape" and (names is None or item.originalname in names):
            item.add_marker(pytest.mark.skip(reason="about replay through MindSpore, which host kernels do without"))
