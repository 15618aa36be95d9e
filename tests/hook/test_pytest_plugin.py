"""`pytest --msadapter`: the hook is on before a conftest or a test module is imported."""

import pytest

CONFTEST = "import msadapter_hook as m, sys\nWHEN = m.is_installed()\nassert 'torch' not in sys.modules\n"
TEST = """
import subprocess, sys
import msadapter_hook, conftest
from msadapter_hook import settings
NOW = msadapter_hook.is_installed()
def test_state():
    print("STATE", conftest.WHEN, NOW, settings.current().enable_backward)
def test_child():
    code = "import msadapter_hook as m, msadapter_hook.settings as s\\n"
    code += "print('CHILD', m.is_installed(), s.current().enable_backward)"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
"""


@pytest.fixture
def suite(write):
    """A small suite in a folder of its own, with an ini file of the given lines."""

    def make(ini=""):
        return write(
            {
                "pytest.ini": "[pytest]\naddopts = -s -p no:cacheprovider\n" + ini,
                "conftest.py": CONFTEST,
                "test_it.py": TEST,
            }
        )

    return make


@pytest.mark.parametrize("how", ["option", "ini", "-p", "off"])
def test_installed_before_conftest(installed, suite, how):
    folder = suite("msadapter = true\n" if how == "ini" else "")
    arguments = {"option": ["--msadapter"], "-p": ["-p", "msadapter_hook.pytest_plugin", "--msadapter"]}.get(how, [])
    out = installed.output("-m", "pytest", *arguments, cwd=folder)
    on = how != "off"
    assert f"STATE {on} {on} {on}" in out and f"CHILD {on} {on}" in out and "2 passed" in out
    assert ("msadapter: torch 2.13.0+mindspore2.10 served by msadapter_hook" in out) == on


def test_environment_decides_over_the_tape_and_the_switch(installed, suite):
    out = installed.output("-m", "pytest", "--msadapter", cwd=suite(), ENABLE_BACKWARD=0)
    assert "STATE True True False" in out and "CHILD True False" in out and "tape off" in out
    out = installed.output("-m", "pytest", "--msadapter", cwd=suite(), MSADAPTER_HOOK=0)
    assert "STATE False False True" in out and "msadapter: off, by MSADAPTER_HOOK=0" in out


def test_workers_of_xdist_have_it_too(installed, suite):
    out = installed.output("-m", "pytest", "--msadapter", "-n", "1", "-rP", cwd=suite())
    assert "2 passed" in out


def test_a_torch_imported_before_is_a_usage_error(installed, suite, write):
    folder = suite()
    write({"early/torch.py": "__version__ = '1.0'\n", "early/early_plugin.py": "import torch\n"})
    done = installed("-m", "pytest", "--msadapter", "-p", "early_plugin", cwd=folder, PYTHONPATH=folder / "early")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--msadapter: another torch 1.0 is already imported" in done.stderr


def test_no_warning_where_the_hook_is_on_already(installed, suite):
    out = installed.output(
        "-m", "pytest", "-W", "error::pytest.PytestWarning", "--msadapter", cwd=suite(), MSADAPTER_HOOK=1
    )
    assert "2 passed in" in out


def test_pytest_inside_a_program_leaves_it_as_it_was(installed, suite):
    code = (
        "import pytest, os, sys, msadapter_hook\nbefore = dict(os.environ), list(sys.meta_path)\n"
        "assert pytest.main(['--msadapter']) == 0 and not msadapter_hook.is_installed()\n"
        "names = {n for n in {*os.environ, *before[0]} if os.environ.get(n) != before[0].get(n)}\n"
        "names = {n for n in names if not n.startswith('PYTEST')}\n"
        "print('LEFT', names, [f for f in sys.meta_path if 'msadapter' in type(f).__module__])"
    )
    assert "LEFT set() []" in installed.output("-c", code, cwd=suite())
