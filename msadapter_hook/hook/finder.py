"""The finder: answers the import system for the roots in its table, and for nothing else."""

import functools
from dataclasses import dataclass
from importlib.machinery import FileFinder
from importlib.util import spec_from_file_location
from pathlib import Path

from msadapter_hook.hook.loader import ServedLoader


@dataclass(frozen=True)
class Root:
    """One served tree: the dotted name it is imported by, its folder, and the distribution that stands for it.

    distribution: the name `importlib.metadata` knows it by, or None for no distribution at all.
    """

    name: str
    folder: Path
    distribution: str | None = None
    version: str = "0"
    description: str = "served by msadapter_hook"

    def owns(self, fullname):
        """True for the root's own name and for what lies below it: `torch`, `torch.nn`, but not `torchvision`."""
        return fullname == self.name or fullname.startswith(self.name + ".")


class ServedFinder:
    """A finder for `sys.meta_path`. `visible()` says whether whoever imports just now sees the roots."""

    def __init__(self, roots, visible=lambda: True):
        self.roots = tuple(roots)
        self._visible = visible
        self._folders = {}

    def owns(self, fullname):
        """True where a root is responsible for the name."""
        return any(root.owns(fullname) for root in self.roots)

    def find_spec(self, fullname, path=None, target=None):
        """The spec of a served module; None for everything else, so that an unknown submodule is not found.

        A folder without __init__.py is an unknown submodule too: ModuleNotFoundError, because the next finder would
        make an empty module of it.
        """
        root = next((root for root in self.roots if root.owns(fullname)), None)
        if root is None or not self._visible():
            return None
        if fullname == root.name:
            return self._root_spec(root)
        for folder in self._search_folders(root, fullname) if path is None else path:
            spec = self._in_folder(root, str(folder)).find_spec(fullname, target)
            if spec is not None and spec.loader is None:
                raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
            if spec is not None:
                return spec
        return None

    def find_distributions(self, context=None):
        """The distributions of the roots, as importlib.metadata asks for them."""
        from importlib.metadata import DistributionFinder  # 20 ms, and few programs ask

        from msadapter_hook.hook.distribution import distributions

        if not self._visible():
            return iter(())
        return distributions(self.roots, DistributionFinder.Context() if context is None else context)

    def invalidate_caches(self):
        """Called by importlib.invalidate_caches()."""
        for finder in list(self._folders.values()):
            finder.invalidate_caches()

    def _root_spec(self, root):
        init = root.folder / "__init__.py"
        if not init.is_file():
            return None
        loader = ServedLoader(root.name, str(init), root)
        return spec_from_file_location(root.name, init, loader=loader, submodule_search_locations=[str(root.folder)])

    def _in_folder(self, root, folder):
        key = root.name, folder
        if key not in self._folders:
            # FileFinder knows about case-insensitive file systems and changed folders
            self._folders[key] = FileFinder(folder, (functools.partial(ServedLoader, root=root), [".py"]))
        return self._folders[key]

    @staticmethod
    def _search_folders(root, fullname):
        inner = fullname[len(root.name) + 1 :].split(".")[:-1]
        return [root.folder.joinpath(*inner)]
