"""What all tests share: the project's folder, a clean environment, and Python in a process of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from msadapter_hook.settings import Settings

ROOT = Path(__file__).resolve().parent.parent

#: variables that would change what a child does: ours, and Python's search for modules
_STRIPPED = {item.metadata["variable"] for item in fields(Settings)} | {"PYTHONPATH", "PYTHONSAFEPATH", "PYTHONSTARTUP"}


def clean_environment(**variables):
    """The environment without the hook's variables, plus those given."""
    kept = {name: text for name, text in os.environ.items() if name not in _STRIPPED}
    return kept | {name: str(text) for name, text in variables.items()}


@dataclass(frozen=True)
class Python:
    """An interpreter to start processes with; `variables` are set for each."""

    executable: str
    variables: tuple = ()

    def __call__(self, *arguments, cwd=None, input=None, timeout=900, **variables):
        """Run it to the end; gives the finished process, with its output as text, for the caller to judge."""
        return subprocess.run(
            [self.executable, *map(str, arguments)],
            cwd=cwd,
            input=input,
            env=clean_environment(**dict(self.variables) | variables),
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def start(self, *arguments, **variables):
        """Start it and go on; gives the process, with pipes for its output as text."""
        return subprocess.Popen([self.executable, *map(str, arguments)], env=clean_environment(**dict(self.variables) | variables),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def output(self, *arguments, **options):
        """Run it, insist on status 0, and give what it printed."""
        done = self(*arguments, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="session")
def project_root():
    """The folder of pyproject.toml."""
    return ROOT


@pytest.fixture(scope="session")
def python_type():
    """The class Python, for fixtures that make interpreters."""
    return Python


@pytest.fixture(scope="session")
def checkout():
    """This interpreter, with the package importable from the checkout (nothing installed, no start-up file)."""
    return Python(sys.executable, (("PYTHONPATH", ROOT),))


@pytest.fixture(autouse=True)
def same_random_numbers():
    """Every test starts from the same seed; without one, torch draws other numbers in each process."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(0)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Tests that start processes take long and stand together: a process with nothing left takes some of another's."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getvalue("dist") == "load" else None
