"""Who sees the hook: `only`, `block`, `paused`. Nothing here is active until one of them is used.

Two importers that want different modules under one name need two sets of entries in `sys.modules`: ours and those of
Python's normal import system. The set in place is ours; for the import of somebody who does not see the hook they are
exchanged, under a lock. What reads `sys.modules["torch"]` itself sees ours always.
"""

import builtins
import contextlib
import contextvars
import importlib.util
import sys
import threading

from msadapter_hook.hook.loader import is_served

#: modules that import on behalf of somebody else: the importer is found beyond them
_GO_BETWEENS = {
    "importlib",
    "_frozen_importlib",
    "_frozen_importlib_external",
    "pkgutil",
    "wrapt",
    "contextlib",
    "runpy",
}
_OURS = __name__.partition(".")[0]

_paused = contextvars.ContextVar("msadapter_hook_paused", default=False)
_side = contextvars.ContextVar("msadapter_hook_side", default=None)  # during an import: is it on our side?


def _top_level(namespace):
    return (namespace.get("__name__") or "").partition(".")[0]


def importer_globals():
    """The globals of the code that imports: the first frame beyond the import system and this package's hook."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if name != _OURS and not name.startswith(_OURS + ".hook") and name.partition(".")[0] not in _GO_BETWEENS:
            return frame.f_globals
        frame = frame.f_back
    return {}


def _names(what, names):
    if names is None:
        return None
    if isinstance(names, str):
        raise TypeError(f"{what}={names!r}: expected a set of top-level package names, as {{{names!r}}}")
    return frozenset(names)


class Visibility:
    """The rule for one session, and the exchange of modules that follows from it. `owns` tells the served names."""

    def __init__(self, owns):
        self._owns = owns
        self._lock = threading.RLock()  # guards sys.modules for the served names, and the fields below
        self._only = self._block = None
        self._guards = 0  # reasons to watch imports: a filter, each running paused()
        self._undo = []
        self._ours_in_place = True
        self._others = {}  # the set of modules that is not in place

    # -- the rule

    def set_filter(self, only=None, block=None):
        """Make `only` or `block` the rule (both None: everybody sees the hook); gives what was the rule before."""
        only, block = _names("only", only), _names("block", block)
        if only is not None and block is not None:
            raise ValueError("only and block exclude each other: give one of them")
        with self._lock:
            before = self._only, self._block
            had, has = before != (None, None), (only, block) != (None, None)
            self._only, self._block = only, block
            if has and not had:
                self._guard()
            elif had and not has:
                self._unguard()
        return before

    @contextlib.contextmanager
    def paused(self):
        """Inside, nobody in this thread or task sees the hook, apart from served modules."""
        self._guard()
        token = _paused.set(True)
        try:
            yield
        finally:
            _paused.reset(token)
            self._unguard()

    def sees(self, namespace):
        """True where code with these globals sees the hook. Served modules and this package always do."""
        package = _top_level(namespace)
        if is_served(namespace.get("__loader__")) or package == _OURS:
            return True
        # a module of another torch belongs to that torch
        if _paused.get() or self._owns(namespace.get("__name__") or ""):
            return False
        if self._only is not None:
            return package in self._only
        return self._block is None or package not in self._block

    def visible(self):
        """For the finder: does the import (or the question) under way see the hook?"""
        if not self._guards:
            return True
        side = _side.get()
        return self._side_of(None) if side is None else side

    def _side_of(self, namespace):
        if namespace is None:
            return self.sees(importer_globals())
        if _top_level(namespace) in _GO_BETWEENS:  # imports a parent, on behalf of the import under way
            side = _side.get()
            return self.sees(importer_globals()) if side is None else side
        return self.sees(namespace)

    # -- the exchange

    @contextlib.contextmanager
    def _on_side(self, ours):
        with self._lock:
            before = self._ours_in_place
            self._exchange(ours)
            token = _side.set(ours)
            try:
                yield
            finally:
                _side.reset(token)
                self._exchange(before)

    def _exchange(self, ours):
        if ours == self._ours_in_place:
            return
        others, self._others = self._others, take_modules(self._owns)
        sys.modules.update(others)
        self._ours_in_place = ours

    def close(self):
        """End the rule: no import is watched any more. Gives the modules that others imported under served names."""
        with self._lock:
            self.set_filter()
            others, self._others = self._others, {}
        return others

    # -- the watch over imports

    def _guard(self):
        with self._lock:
            self._guards += 1
            if self._guards == 1:
                self._patch(builtins, "__import__", self._guarded_import)
                # import_module, also where a program holds the function itself, ends here
                self._patch(importlib._bootstrap, "_gcd_import", self._guarded_gcd_import)
                self._patch(importlib.util, "find_spec", self._guarded_find_spec)

    def _unguard(self):
        with self._lock:
            self._guards -= 1
            if self._guards == 0:
                for owner, name, original, replacement in reversed(self._undo):
                    # replaced by somebody else meanwhile: ours stays beneath, and only passes on
                    if getattr(owner, name) is replacement:
                        setattr(owner, name, original)
                self._undo.clear()

    def _patch(self, owner, name, make):
        original = getattr(owner, name)
        replacement = make(original)
        setattr(owner, name, replacement)
        self._undo.append((owner, name, original, replacement))

    def _guarded_import(self, original):
        def __import__(name, globals=None, locals=None, fromlist=(), level=0):
            package = (globals or {}).get("__package__") or (globals or {}).get("__name__") or ""
            if not self._guards or not self._owns(package if level else name):
                return original(name, globals, locals, fromlist, level)
            with self._on_side(self._side_of(globals)):
                return original(name, globals, locals, fromlist, level)

        return __import__

    def _guarded_gcd_import(self, original):
        def _gcd_import(name, package=None, level=0):
            if not self._guards or not self._owns(package or "" if level else name):
                return original(name, package, level)
            with self._on_side(self._side_of(None)):
                return original(name, package, level)

        return _gcd_import

    def _guarded_find_spec(self, original):
        def find_spec(name, package=None):
            if not self._guards or not self._owns(package or "" if name.startswith(".") else name):
                return original(name, package)
            with self._on_side(self._side_of(None)):
                return original(name, package)

        return find_spec


def take_modules(owns):
    """Take all modules with owned names out of `sys.modules`; gives them by name."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if owns(name)}
