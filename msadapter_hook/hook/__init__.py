"""The hook: how `import torch` comes to be served, and the ways in. It knows nothing of what it serves.

finder, loader, distribution: what the import system asks; visibility: who sees the hook; session: on and off;
startup, runner: the ways in; patches: corrections of other libraries. Nothing here imports mindspore or numpy.
"""
