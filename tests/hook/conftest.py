"""Environments of their own with the package really installed, and small trees to serve."""

import shutil
import sys
import sysconfig
import time
from pathlib import Path

import pytest


def shared_packages(folder):
    """A folder with links to what is installed beside this interpreter, the project itself excepted."""
    folder.mkdir()
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not entry.name.startswith(("msadapter_hook", "_msadapter_hook", "sitecustomize", "__pycache__")):
            (folder / entry.name).symlink_to(entry)
    return folder


@pytest.fixture(scope="session")
def make_environment(python_type, project_root):
    """A function (folder, *pip options) -> Python: a virtual environment with the project installed into it.

    It sees the packages of this interpreter, so nothing is downloaded.
    """
    here = python_type(sys.executable)

    def make(folder, *options):
        here.output("-m", "venv", "--without-pip", folder)
        site_packages = next(folder.glob("lib/python*/site-packages"))
        (site_packages / "packages_of_the_tests.pth").write_text(str(shared_packages(folder / "packages")) + "\n")
        made = python_type(str(folder / "bin" / "python"))
        pip = ["-m", "pip", "--python", made.executable, "install", "-q", "--disable-pip-version-check"]
        quiet = ["--no-deps", "--no-build-isolation", "--no-index", "--ignore-installed"]
        here.output(*pip, *quiet, *options, cwd=project_root, timeout=300)
        return made

    return make


@pytest.fixture(scope="session")
def installed(make_environment, python_type, project_root, tmp_path_factory, worker_id):
    """Python of an environment in which `pip install .` was run; one for all workers of a run."""
    if worker_id == "master":
        return make_environment(tmp_path_factory.mktemp("installed"), ".")
    folder = tmp_path_factory.getbasetemp().parent / "installed"
    try:
        folder.mkdir()
    except FileExistsError:
        deadline = time.monotonic() + 300
        while not (folder / "ready").exists():  # another worker is making it
            assert time.monotonic() < deadline and folder.exists(), "the environment was not made"
            time.sleep(0.2)
        return python_type(str(folder / "bin" / "python"))
    try:
        made = make_environment(folder, ".")
    except BaseException:
        shutil.rmtree(folder)
        raise
    (folder / "ready").touch()
    return made


@pytest.fixture
def write(tmp_path):
    """A function (files) that writes {relative path: text} below the test's folder, and gives the folder."""

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


@pytest.fixture
def small_tree(write):
    """A tiny tree in `served/` and a stand-in for another torch in `other/`; gives the code that installs the hook.

    Call it as `small_tree(only={...})`: the arguments go to `install`.
    """
    folder = write(
        {
            "served/__init__.py": "__version__ = '2.13.0+mindspore2.10'\nfrom . import nn\nfrom .nn import Linear\n",
            "served/nn/__init__.py": "from .modules.linear import Linear\n",
            "served/nn/modules/__init__.py": "",
            "served/nn/modules/linear.py": "class Linear: pass\n",
            "served/lazy.py": "def version():\n    from . import __version__\n    import torch\n"
            "    return __version__, torch.__version__\n",
            "served/broken.py": "def inner():\n    raise RuntimeError('inside')\n\ninner()\n",
            "served/empty/notes.txt": "no package",
            "other/torch/__init__.py": "__version__ = '1.0'\nfrom . import nn\n"
            "def late():\n    import torch.nn\n    from torch import later\n    return torch.nn.other, later.other\n",
            "other/torch/later.py": "from . import nn\nother = nn.other\n",
            "other/torch/slow.py": "import time\ntime.sleep(0.3)\nother = True\n",
            "other/torch/nn.py": "other = True\n",
            "other/torchvision.py": "name = 'torchvision'\n",
            "other/torch_like.py": "name = 'torch_like'\n",
        }
    )
    (folder / "other" / "asking.py").write_text(
        "import importlib, importlib.util, importlib.metadata\n"
        "def statement():\n    import torch\n    return torch.__version__\n"
        "def submodule():\n    import torch.nn\n    return torch.__version__, hasattr(torch.nn, 'other')\n"
        "def function():\n    return importlib.import_module('torch').__version__\n"
        "def spec():\n    return importlib.util.find_spec('torch').origin\n"
    )
    shutil.copy(folder / "other" / "asking.py", folder / "other" / "asking_too.py")

    def code(**arguments):
        return (
            "import sys, pathlib, msadapter_hook\n"
            "from msadapter_hook.hook.finder import Root\n"
            f"folder = pathlib.Path({str(folder / 'served')!r})\n"
            "tree = Root('torch', folder, 'torch', '2.13.0+mindspore2.10', 'small tree')\n"
            f"handle = msadapter_hook.install(roots=[tree], **{arguments!r})\n"
        )

    code.folder = folder
    code.other = str(folder / "other")
    return code
