"""The loader of served modules: what a served module is, beyond the source in its file, is decided here."""

import importlib
import types
from importlib.machinery import SourceFileLoader
from pathlib import Path

from msadapter_hook import errors


class RootModule(types.ModuleType):
    """The module `torch` itself: its repr says what it is, and it can be pickled and copied (by name)."""

    def __repr__(self):
        spec = self.__spec__
        return f"<module {spec.name!r} from {spec.origin!r} ({spec.loader.root.description})>"

    def __reduce__(self):
        # cloudpickle and dill treat modules by their exact type and would choke on a subclass
        return importlib.import_module, (self.__spec__.name,)


class ServedLoader(SourceFileLoader):
    """Loads one served file under the name it was asked for; `root` is the table row it belongs to."""

    def __init__(self, fullname, path, root):
        super().__init__(fullname, path)
        self.root = root

    def create_module(self, spec):
        """A module that answers a missing name with the adapter's AttributeError.

        Prepared here, not after execution: exec_module stays the import system's own, whose frames Python hides.
        """
        module = RootModule(spec.name) if spec.name == self.root.name else types.ModuleType(spec.name)

        def __getattr__(name):
            # `from package import submodule` asks for the attribute first: nothing is missing then
            raise errors.missing_attribute(spec.name, name, counted=not _has_submodule(spec, name))

        module.__getattr__ = __getattr__
        return module


def _has_submodule(spec, name):
    folders = map(Path, spec.submodule_search_locations or ())
    return any((folder / f"{name}.py").exists() or (folder / name / "__init__.py").exists() for folder in folders)


def is_served(loader):
    """True for the loader of one of our modules (take `__loader__` of a module or of a function's globals)."""
    return isinstance(loader, ServedLoader)
