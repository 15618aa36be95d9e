"""The examples of migrated code: they run by the command and learn."""

import re

import pytest


@pytest.mark.parametrize("name", ["functional_lenet", "functional_amp", "train_one_step_cell"])
def test_it_learns(checkout, project_root, name):
    text = checkout.output("-m", "msadapter_hook", project_root / "examples" / "migrated" / f"{name}.py", timeout=900)
    assert len(re.findall(r"^epoch \d loss \d+\.\d+$", text, re.MULTILINE)) == 4
    assert float(re.search(r"^accuracy: (\d\.\d+)$", text, re.MULTILINE)[1]) > 0.9
