"""Start-up: switch msadapter_hook on where the environment asks for it, then run the sitecustomize that is shadowed.

PYTEST_DONT_REWRITE (a plugin's files are rewritten by pytest, which would warn that this one is loaded already)
"""

import os
import sys
from importlib.machinery import PathFinder

if os.environ.get("MSADAPTER_HOOK") or os.environ.get("ENABLE_BACKWARD"):
    try:
        from msadapter_hook.hook import startup
    except ImportError:  # the package is gone and this file is left: Python goes on without it
        pass
    else:
        startup.activate()

_here = os.path.dirname(os.path.abspath(__file__))
_folders = [os.path.abspath(folder) for folder in sys.path]
_after = _folders[_folders.index(_here) + 1 :] if _here in _folders else _folders
_spec = PathFinder.find_spec("sitecustomize", [folder for folder in _after if folder != _here])
if _spec is not None and _spec.loader is not None:
    from importlib.util import module_from_spec

    sys.modules["sitecustomize"] = _module = module_from_spec(_spec)
    _spec.loader.exec_module(_module)
