"""Collectives, messages, objects and groups of torch.distributed on two and on three workers; each number is started once."""

import json

import collective_checks
import pytest
import three_checks

PROGRAMS = {2: collective_checks, 3: three_checks}


@pytest.fixture(scope="module")
def results(checkout, tmp_path_factory):
    """A function from a number of workers to {check: failure or None} of each of them."""
    known = {}

    def of(size):
        if size not in known:
            folder = tmp_path_factory.mktemp("collectives")
            done = checkout("-m", "msadapter_hook", "--nproc", size, PROGRAMS[size].__file__, folder, timeout=600)
            assert done.returncode == 0, done.stderr[-4000:]
            known[size] = [json.loads((folder / f"results_{rank}.json").read_text()) for rank in range(size)]
        return known[size]

    return of


@pytest.mark.parametrize("size,name", [(size, name) for size, module in PROGRAMS.items() for name in module.CHECKS])
def test_workers(results, size, name):
    failures = [f"worker {rank}:\n{result[name]}" for rank, result in enumerate(results(size)) if result[name] is not None]
    assert not failures, "\n".join(failures)


