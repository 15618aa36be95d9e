"""One launch of several workers for many checks: a program calls its checks on all workers and writes what failed, by rank."""

import json
import os
import time
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def reported(checkout, tmp_path_factory):
    """A function from (program, number of workers) to [{check: failure or None} of each worker].

    The program is started once, whichever of pytest's processes asks for it, as `--nproc N program folder`; it writes
    folder/results_<rank>.json.
    """
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # the folder above belongs to all processes of this run
        base = base.parent

    def of(program, size):
        folder = base / f"{Path(program).stem}_{size}"
        end = folder / "end.json"
        try:
            folder.mkdir()
        except FileExistsError:
            limit = time.monotonic() + 900
            while not end.exists():
                assert time.monotonic() < limit, f"{program} has not ended"
                time.sleep(0.1)
        else:
            done = checkout("-m", "msadapter_hook", "--nproc", size, program, folder, timeout=800)
            part = end.with_suffix(".part")
            part.write_text(json.dumps([done.returncode, done.stderr[-8000:]]))
            part.rename(end)
        status, errors = json.loads(end.read_text())
        assert status == 0, errors
        return [json.loads((folder / f"results_{rank}.json").read_text()) for rank in range(size)]

    return of
