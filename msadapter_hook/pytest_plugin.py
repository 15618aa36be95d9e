"""`pytest --msadapter`, or `msadapter = true` in the ini file: the hook is on before any conftest or test is imported.

As the command line does, it sets ENABLE_BACKWARD=1 unless the environment has it. Its name as a plugin is the module's.
"""

import pytest

from msadapter_hook import settings
from msadapter_hook.errors import HookError, SettingsError
from msadapter_hook.hook import session
from msadapter_hook.version import TORCH_VERSION, __version__

_OPTION = "msadapter"
_HELP = "serve `import torch` by msadapter_hook (PyTorch programs on MindSpore)"
_undo = pytest.StashKey()


def pytest_addoption(parser):
    """The option and its twin in the ini file."""
    parser.getgroup(_OPTION).addoption(f"--{_OPTION}", action="store_true", default=False, help=_HELP)
    parser.addini(_OPTION, _HELP, type="bool", default=False)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config):
    """Install the hook: the last moment before conftest files are imported."""
    if not (early_config.known_args_namespace.msadapter or early_config.getini(_OPTION)):
        return
    try:
        undo = []
        if not settings.is_set("ENABLE_BACKWARD"):
            exported = settings.export("pytest --msadapter", ENABLE_BACKWARD="1")
            undo.append(lambda: settings.restore(exported))
        undo.append(session.install().uninstall)
    except (HookError, SettingsError) as error:
        raise pytest.UsageError(f"--{_OPTION}: {error}") from None
    early_config.stash[_undo] = undo


def pytest_unconfigure(config):
    """Leave the process as it was (pytest may be run inside another program)."""
    for step in reversed(config.stash.get(_undo, [])):
        step()


def pytest_report_header(config):
    """Says what is served."""
    if _undo not in config.stash:
        return None
    if not session.is_installed():
        return "msadapter: off, by MSADAPTER_HOOK=0"
    from importlib.metadata import PackageNotFoundError, version

    try:
        below = f"mindspore {version('mindspore')}"
    except PackageNotFoundError:
        below = "mindspore, which is not installed"
    tape = "on" if settings.current().enable_backward else "off"
    return f"msadapter: torch {TORCH_VERSION} served by msadapter_hook {__version__} on {below}; tape {tape}"
