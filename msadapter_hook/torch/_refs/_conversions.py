"""torch._refs._conversions: the tensor in another dtype, a function for each."""

from importlib import import_module

_root = import_module("..", __package__)


def _to(name):
    def convert(self, memory_format=None):
        return getattr(self, name)() if memory_format is None else getattr(self, name)(memory_format=memory_format)

    convert.__name__ = name
    convert.__doc__ = f"The tensor as {name}. Source: PyTorch, Tensor.{name}."
    return convert


bfloat16, half, float, double = map(_to, ("bfloat16", "half", "float", "double"))
chalf, cfloat, cdouble = map(_to, ("chalf", "cfloat", "cdouble"))
bool, byte, char, short, int, long = map(_to, ("bool", "byte", "char", "short", "int", "long"))


def complex(real, imag):
    """real + i * imag, the parts promoted to one dtype. Source: PyTorch, torch.complex."""
    return _root.complex(real, imag)


def polar(abs, angle):
    """The number of this size and angle. Source: PyTorch, torch.polar."""
    return _root.polar(abs, angle)
