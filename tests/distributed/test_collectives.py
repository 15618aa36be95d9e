"""Collectives, messages, objects and groups of torch.distributed on two workers that one launch starts."""

import json
from pathlib import Path

import pytest
from collective_checks import CHECKS

PROGRAM = Path(__file__).with_name("collective_checks.py")


@pytest.fixture(scope="module")
def results(checkout, tmp_path_factory):
    """{check: failure or None} of each worker."""
    folder = tmp_path_factory.mktemp("collectives")
    done = checkout("-m", "msadapter_hook", "--nproc", 2, PROGRAM, folder, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads((folder / f"results_{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("name", CHECKS)
def test_two_workers(results, name):
    failures = [f"worker {rank}:\n{result[name]}" for rank, result in enumerate(results) if result[name] is not None]
    assert not failures, "\n".join(failures)
