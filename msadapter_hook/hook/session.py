"""The hook on and off: what `install()`, `uninstall()` and `paused()` do. At most one session is active."""

import contextlib
import sys
import threading
from pathlib import Path

from msadapter_hook import errors, settings
from msadapter_hook.hook.finder import Root, ServedFinder
from msadapter_hook.hook.patches import PATCHES, Patcher
from msadapter_hook.hook.visibility import Visibility, take_modules
from msadapter_hook.version import PYTORCH_VERSION, TORCH_VERSION

PACKAGE = Path(__file__).resolve().parent.parent
BOOTSTRAP = PACKAGE / "hook" / "bootstrap"
STARTUP_FILE = "msadapter_hook_startup.pth"

#: What is served by default: a name, a folder, and the distribution that stands for them.
ROOTS = (
    Root(
        "torch",
        PACKAGE / "torch",
        distribution="torch",
        version=TORCH_VERSION,
        description=f"PyTorch {PYTORCH_VERSION} on MindSpore, served by msadapter_hook",
    ),
    Root("functorch", PACKAGE / "torch" / "_functorch" / "root"),
)

_lock = threading.RLock()  # guards _active and _parked
_active = None
_parked = {}  # roots -> their modules, kept while the hook is off: a second session goes on with the same tree


class Session:
    """The hook while it is on. Raises HookError in `start` where it cannot be; nothing is changed then."""

    def __init__(self, roots):
        self.roots = tuple(roots)
        self.visibility = Visibility(lambda name: any(root.owns(name) for root in self.roots))
        self._finder = ServedFinder(self.roots, self.visibility.visible)
        self._patcher = Patcher(PATCHES)
        self._exports = []

    def start(self):
        """Put the hook in place."""
        for name, module in list(sys.modules.items()):
            if self._finder.owns(name):
                root = next(root.name for root in self.roots if root.owns(name))
                raise errors.another_torch(root, sys.modules.get(root, module))
        self._exports.append(settings.prepare_process())
        sys.modules.update(_parked.pop(self.roots, {}))
        sys.meta_path.insert(0, self._finder)
        self._patcher.start()

    def stop(self):
        """Take it away again."""
        self._patcher.stop()
        with contextlib.suppress(ValueError):  # somebody has replaced sys.meta_path
            sys.meta_path.remove(self._finder)
        others = self.visibility.close()
        _parked[self.roots] = take_modules(self._finder.owns)
        sys.modules.update(others)
        while self._exports:
            settings.restore(self._exports.pop())

    def export_to_children(self):
        """Let child processes inherit the hook: the variable, and a start-up file where none is installed."""
        if not startup_file_installed():
            self._exports.append(settings.prepend_path("PYTHONPATH", str(BOOTSTRAP)))
        self._exports.append(settings.export(MSADAPTER_HOOK="1"))


class Handle:
    """What `install()` gives. `uninstall()`, or the end of the `with` block, undoes what that call did, once."""

    def __init__(self, undo=None):
        self._undo = undo

    def uninstall(self):
        """Undo the installation that gave this handle; nothing where the hook was on already."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.uninstall()

    def __repr__(self):
        return f"<msadapter_hook {'installed' if is_installed() else 'not installed'}>"


def install(only=None, block=None, roots=None):
    """See `msadapter_hook.install`."""
    global _active
    if settings.reload().hook is False:
        return Handle()
    with _lock:
        if _active is not None:
            if roots is not None and tuple(roots) != _active.roots:
                raise errors.HookError("the hook is on and serves other roots; uninstall it first")
            session = _active
            before = session.visibility.set_filter(only, block)
            return Handle(lambda: _restore_filter(session, before))
        session = Session(ROOTS if roots is None else roots)
        session.visibility.set_filter(only, block)
        try:
            session.start()
        except BaseException:
            session.visibility.close()
            raise
        # a child would serve everybody, and the default tree
        if only is None and block is None and roots is None:
            session.export_to_children()
        _active = session
        return Handle(lambda: _stop(session))


def uninstall():
    """See `msadapter_hook.uninstall`."""
    with _lock:
        if _active is not None:
            _stop(_active)


def is_installed():
    """True while a session is active."""
    return _active is not None


def paused():
    """See `msadapter_hook.paused`."""
    session = _active
    return contextlib.nullcontext() if session is None else session.visibility.paused()


def startup_file_installed():
    """True where this interpreter runs our start-up file by itself, so children need the variable only."""
    return any(Path(folder, STARTUP_FILE).is_file() for folder in sys.path if folder)


def _stop(session):
    global _active
    with _lock:
        if _active is session:
            _active = None
            session.stop()


def _restore_filter(session, before):
    with _lock:
        if _active is session:
            session.visibility.set_filter(*before)
