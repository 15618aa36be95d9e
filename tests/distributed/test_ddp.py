"""DistributedDataParallel, SyncBatchNorm and what stands on the collectives, on two workers that one launch starts."""

import json
from pathlib import Path

import ddp_beside  # noqa: F401  (its checks join the table)
import ddp_checks  # noqa: F401
import pytest
from ddp_case import CHECKS

PROGRAM = Path(__file__).with_name("ddp_checks.py")


@pytest.fixture(scope="module")
def results(checkout, tmp_path_factory):
    """{check: failure or None} of each worker."""
    folder = tmp_path_factory.mktemp("ddp")
    done = checkout("-m", "msadapter_hook", "--nproc", 2, PROGRAM, folder, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads((folder / f"results_{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("name", CHECKS)
def test_two_workers(results, name):
    failures = [f"worker {rank}:\n{result[name]}" for rank, result in enumerate(results) if result[name] is not None]
    assert not failures, "\n".join(failures)
