"""The names that earlier adapters gave the served tree: `mindtorch.torch`, `ms_adapter.pytorch`, `msadapter.pytorch`.

With the hook on they are the very modules of `import torch`. With it off they are a tree of their own, beside whatever torch
is installed; all aliases share that one tree, under the name `mindtorch.torch`. The packages `mindtorch`, `ms_adapter` and
`msadapter` beside this one call `serve`.
"""

import importlib
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec

from msadapter_hook.hook import session
from msadapter_hook.hook.finder import Root, ServedFinder
from msadapter_hook.hook.patches import PATCHES, Patcher
from msadapter_hook.version import PYTORCH_VERSION

#: alias -> what it stands for
ALIASES = {
    "mindtorch.torch": "torch",
    "ms_adapter.pytorch": "torch",
    "msadapter.pytorch": "torch",
    "mindtorch.torchvision": "torchvision",
    "ms_adapter.torchvision": "torchvision",
    "msadapter.torchvision": "torchvision",
}

#: the tree of our own, where `torch` is not ours
OWN = Root(
    "mindtorch.torch",
    session.PACKAGE / "torch",
    description=f"PyTorch {PYTORCH_VERSION} on MindSpore, served by msadapter_hook",
)


class AliasFinder:
    """A finder for `sys.meta_path`: the aliases and what lies below them."""

    def __init__(self):
        self._own = ServedFinder((OWN,))
        self._patcher = None  # the corrections of MindSpore, where the hook has not made them

    def find_spec(self, fullname, path=None, target=None):
        """A spec whose loader puts the module it stands for in place, or the served tree's own; None for other names."""
        alias = next((a for a in ALIASES if fullname == a or fullname.startswith(a + ".")), None)
        if alias is None:
            return None
        real = ALIASES[alias] + fullname[len(alias):]
        if ALIASES[alias] == "torch" and not session.is_installed():
            self._correct()
            if alias == OWN.name:
                return self._own.find_spec(fullname, path, target)
            real = OWN.name + fullname[len(alias):]
        if not _exists(real):
            return None
        return ModuleSpec(fullname, _Standing(real), is_package=True)

    def invalidate_caches(self):
        """Called by importlib.invalidate_caches()."""
        self._own.invalidate_caches()

    def _correct(self):
        if self._patcher is None:
            self._patcher = Patcher(PATCHES)
            self._patcher.start()


def _exists(name):
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            return False
        raise
    except ValueError:  # a module without a spec is there
        return True


class _Standing:
    """A loader that puts another module under the name asked for."""

    def __init__(self, real):
        self._real = real

    def create_module(self, spec):
        """An ordinary module, which nobody sees."""

    def exec_module(self, module):
        # the import system takes what stands in sys.modules afterwards
        sys.modules[module.__spec__.name] = importlib.import_module(self._real)


_finder = AliasFinder()


def serve():
    """Answer for the aliases from here on; harmless when called again."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
