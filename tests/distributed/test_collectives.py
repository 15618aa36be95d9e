"""Collectives, messages, objects and groups of torch.distributed on two and on three workers; each number is started once."""

import collective_checks
import pytest
import three_checks

PROGRAMS = {2: collective_checks, 3: three_checks}


@pytest.mark.parametrize("size,name", [(size, name) for size, module in PROGRAMS.items() for name in module.CHECKS])
def test_workers(reported, size, name):
    results = reported(PROGRAMS[size].__file__, size)
    failures = [f"worker {rank}:\n{result[name]}" for rank, result in enumerate(results) if result[name] is not None]
    assert not failures, "\n".join(failures)
