"""torch.backends.quantized: engines of quantized operators. There is none, and none can be chosen."""

import sys as _sys
import types as _types


class _Quantized(_types.ModuleType):
    """`engine` and `supported_engines` are looked at and assigned as attributes of the module."""

    supported_engines = ["none"]

    @property
    def engine(self):
        return "none"

    @engine.setter
    def engine(self, name):
        if name not in self.supported_engines:
            raise RuntimeError(f"quantized engine {name} is not supported: quantized operators are not provided; keep the model "
                               f"in floating "
                               "point or use float16/bfloat16")


_sys.modules[__name__].__class__ = _Quantized
