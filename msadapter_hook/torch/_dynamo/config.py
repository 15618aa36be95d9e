"""torch._dynamo.config: settings that programs write; kept, and without effect."""

import contextlib
import sys
import types


class _Config(types.ModuleType):
    """Any setting can be written and read back; one never written is None."""

    cache_size_limit = recompile_limit = 8
    accumulated_cache_size_limit = 256
    suppress_errors = verbose = capture_scalar_outputs = capture_dynamic_output_shape_ops = False
    dynamic_shapes = assume_static_by_default = automatic_dynamic_shapes = True

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def patch(self, arg1=None, arg2=None, **changes):
        """A context (or decorator) in which settings have other values. Source: PyTorch, torch._dynamo.config.patch."""
        if isinstance(arg1, str):
            changes[arg1] = arg2
        elif isinstance(arg1, dict):
            changes.update(arg1)

        @contextlib.contextmanager
        def changed():
            kept = {name: getattr(self, name) for name in changes}
            for name, value in changes.items():
                setattr(self, name, value)
            try:
                yield
            finally:
                for name, value in kept.items():
                    setattr(self, name, value)

        return changed()


sys.modules[__name__].__class__ = _Config
