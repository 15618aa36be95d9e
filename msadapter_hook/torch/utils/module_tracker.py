"""torch.utils.module_tracker: in which modules a program is."""

import weakref

from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Context: `parents` are the names of the modules whose forward runs now, and "Global". Source: PyTorch,
    torch.utils.module_tracker.ModuleTracker."""

    def __init__(self):
        self.parents = {"Global"}
        self._names = weakref.WeakKeyDictionary()
        self._stack = []

    def name_of(self, module):
        """The name of a module: its class's for one entered from outside, with the path to it for what it holds."""
        if module not in self._names:
            root = type(module).__name__
            for path, inner in module.named_modules():
                self._names.setdefault(inner, f"{root}.{path}" if path else root)
        return self._names[module]

    def _enter(self, module, inputs):
        name = self.name_of(module)
        self._stack.append(name)
        self.parents.add(name)

    def _leave(self, module, inputs, output):
        name = self._stack.pop()
        if name not in self._stack:
            self.parents.discard(name)

    def __enter__(self):
        self._handles = [register_module_forward_pre_hook(self._enter),
                         register_module_forward_hook(self._leave, always_call=True)]
        return self

    def __exit__(self, *exc):
        for handle in self._handles:
            handle.remove()
        self.parents, self._stack = {"Global"}, []
