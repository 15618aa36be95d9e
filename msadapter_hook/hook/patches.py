"""Corrections of other libraries that cannot be made from our side: a table, applied after import, undone later."""

import copy
import functools
import importlib
import pkgutil
import sys
import threading
import warnings
from dataclasses import dataclass


@dataclass(frozen=True)
class Patch:
    """One row. `apply` names a function, "package.module:function", called as `function(module, wrap)` once.

    library: the module whose import triggers it; versions: a version specifier of its distribution (or "" for all);
    why: one sentence; test: the test that shows it is needed.
    `wrap(owner, "Class.method", wrapper)` puts a wrapt wrapper `(wrapped, instance, args, kwargs)` around something.
    """

    library: str
    versions: str
    why: str
    apply: str
    test: str
    distribution: str | None = None


def _mindspore(name, why, test):
    return Patch("mindspore", ">=2.10,<2.11", why, f"msadapter_hook.interop.patches:{name}", f"tests/interop/{test}")


#: library, versions, why, apply, test
PATCHES = (
    _mindspore("functions", "ops, mint, numpy and primitives take our tensors; gradients flow", "test_operations.py"),
    _mindspore("tensors", "MindSpore's tensors take ours in operators, indices and methods, and are made from them", "test_tensors.py"),
    _mindspore("cells", "Cells take our tensors; networks and optimizers of MindSpore take served modules", "test_cells.py"),
    _mindspore("transforms", "value_and_grad, grad, vjp, jvp differentiate functions of our tensors", "test_gradients.py"),
    _mindspore("amp", "auto_mixed_precision takes served modules", "test_amp.py"),
    _mindspore("jit", "jit runs functions that use served modules through recorded programs", "test_graph_mode.py"),
)


class Patcher:
    """Applies the rows of a table: at once where the library is there, else right after its import."""

    def __init__(self, table):
        self._rows = {}
        for row in table:
            self._rows.setdefault(row.library, []).append(row)
        self._lock = threading.RLock()  # guards the fields below
        self._searching = threading.local()
        self._applied = set()
        self._wrapped = []
        self._active = False

    def start(self):
        """Begin. Costs nothing where the table is empty."""
        if not self._rows:
            return
        self._active = True
        sys.meta_path.insert(0, self)
        for library in self._rows:
            module = sys.modules.get(library)
            if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
                self.apply(module, library)

    def stop(self):
        """Undo every wrapper that is still in place."""
        self._active = False
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        with self._lock:
            for parent, name, original, inherited, wrapper in reversed(self._wrapped):
                if vars(parent).get(name) is not wrapper:
                    continue  # wrapped again by somebody else: taking it out would take out theirs
                if inherited:
                    delattr(parent, name)
                else:
                    setattr(parent, name, original)
            self._wrapped.clear()
            self._applied.clear()

    def apply(self, module, library):
        """Apply the rows of a library to its module, once. A row that fails warns and leaves the library usable."""
        with self._lock:
            if not self._active or library in self._applied:
                return
            self._applied.add(library)
            for row in self._rows[library]:
                try:
                    if self._fits(row, module):
                        place, _, name = row.apply.partition(":")
                        getattr(importlib.import_module(place), name)(module, self._wrap)
                except Exception as error:
                    warnings.warn(
                        f"msadapter_hook: the correction of {library} failed ({row.why}): {error!r}", RuntimeWarning
                    )

    # -- as a finder of sys.meta_path

    def find_spec(self, fullname, path=None, target=None):
        """The spec the others find for a library of the table, with a loader that calls us back."""
        searching = vars(self._searching).setdefault("names", set())
        if fullname not in self._rows or fullname in searching:
            return None
        searching.add(fullname)
        try:
            for finder in list(sys.meta_path):
                search = getattr(finder, "find_spec", None)
                spec = search(fullname, path, target) if search and finder is not self else None
                if spec is not None:
                    if hasattr(spec.loader, "exec_module"):
                        spec.loader = _CallingBack(spec.loader, lambda module: self.apply(module, fullname))
                    return spec
        finally:
            searching.discard(fullname)
        return None

    def invalidate_caches(self):
        """Nothing is cached."""

    @staticmethod
    def _fits(row, module):
        if not row.versions:
            return True
        from importlib.metadata import PackageNotFoundError, version

        from packaging.specifiers import SpecifierSet

        try:
            found = version(row.distribution or row.library)
        except PackageNotFoundError:
            found = module.__version__
        return SpecifierSet(row.versions).contains(found, prereleases=True)

    def _wrap(self, owner, path, wrapper):
        import wrapt

        parent, name, original = wrapt.resolve_path(owner, path)
        inherited = name not in vars(parent)
        replacement = _kinds()(original, wrapper)
        home = parent.__module__ + ":" + parent.__qualname__ + "." if isinstance(parent, type) else parent.__name__ + ":"
        replacement._self_place = home + name
        wrapt.apply_patch(parent, name, replacement)
        self._wrapped.append((parent, name, original, inherited, replacement))


@functools.lru_cache(maxsize=1)
def _kinds():
    """The class of our wrappers: they are copied and pickled as functions are, by reference. wrapt's own refuse that."""
    import wrapt

    class Bound(wrapt.BoundFunctionWrapper):
        """A wrapped method of an object."""

        def __copy__(self):
            return self

        def __deepcopy__(self, memo):
            return getattr(copy.deepcopy(self._self_instance, memo), self.__wrapped__.__name__)

        def __reduce_ex__(self, protocol):
            return getattr, (self._self_instance, self.__wrapped__.__name__)

    class Wrapper(wrapt.FunctionWrapper):
        """A wrapped function, at its place in the library. A pickle needs nothing of ours: it names the place."""

        __bound_function_wrapper__ = Bound

        def __copy__(self):
            return self

        def __deepcopy__(self, memo):
            return self

        def __reduce_ex__(self, protocol):
            return pkgutil.resolve_name, (self._self_place,)

    return Wrapper


class _CallingBack:
    """Stands before a loader until the module is executed, then steps aside and calls back."""

    def __init__(self, loader, callback):
        self._loader = loader
        self._callback = callback

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._callback(module)
