"""msadapter_hook: unmodified PyTorch programs on MindSpore.

Importing this package changes nothing and is cheap: neither mindspore, numpy nor torch is imported. The hook is
switched on by `install()`, by `python -m msadapter_hook`, by the environment (settings.py), by `pytest --msadapter`.

PYTEST_DONT_REWRITE (pytest would warn where the hook is on before it starts)
"""

from msadapter_hook.version import __version__

__all__ = ["__version__", "install", "is_installed", "paused", "uninstall"]


def install(*, only=None, block=None, roots=None):
    """Serve `import torch` from here on; gives a handle with `uninstall()`, usable in a `with` statement.

    only, block: top-level package names of importers that do (`only`) or do not (`block`) see the hook; `"__main__"`
    is the program itself. At most one of the two. Everybody else gets Python's normal import system.
    roots: what to serve, a sequence of `msadapter_hook.hook.finder.Root`; the default is the served `torch`.

    Calling it again is harmless: it replaces `only` and `block`, and its handle undoes no more than that. Nothing is
    installed while the environment says `MSADAPTER_HOOK=0`.
    Raises `msadapter_hook.errors.HookError` where another torch has been imported already; nothing is changed then.
    """
    from msadapter_hook.hook import session

    return session.install(only=only, block=block, roots=roots)


def uninstall():
    """Take the hook away, whoever installed it: `sys.meta_path` and `sys.modules` are as before. Harmless when off."""
    from msadapter_hook.hook import session

    session.uninstall()


def is_installed():
    """True while the hook is on."""
    from msadapter_hook.hook import session

    return session.is_installed()


def paused():
    """A context manager: inside it, in this thread or task, imports of torch go to Python's normal import system."""
    from msadapter_hook.hook import session

    return session.paused()
