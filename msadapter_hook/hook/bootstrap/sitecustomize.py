"""Start-up of child processes of a program that runs from a checkout: the folder of this file is on their PYTHONPATH.

Does what the package's own sitecustomize.py does, after making the package importable. Alone in its folder, so that
nothing else comes onto the path of a child.
"""

import os
import sys

_top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
if _top not in sys.path:
    sys.path.append(_top)
with open(os.path.join(_top, "sitecustomize.py"), encoding="utf-8") as _file:
    exec(compile(_file.read(), _file.name, "exec"))  # with our __file__: what is shadowed comes after this folder
