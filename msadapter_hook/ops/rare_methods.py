"""Methods and attributes of Tensor that few programs use: older names, questions about absent devices, quantized parts."""

import warnings

from msadapter_hook.errors import unsupported
from msadapter_hook.tensor import Tensor, geometry

from . import arguments
from .tables import METHODS

_QUANTIZED = "quantized tensors are not supported; torch.fake_quantize_per_tensor_affine simulates them"


def _refused(name, advice):
    def refuse(self, *args, **kwargs):
        raise unsupported(f"torch.Tensor.{name}", advice)

    refuse.__name__ = name
    refuse.__qualname__ = f"Tensor.{name}"
    return refuse


for _name in ("int_repr", "qscheme", "q_scale", "q_zero_point", "q_per_channel_axis", "q_per_channel_scales", "q_per_channel_zero_points"):
    METHODS[_name] = _refused(_name, _QUANTIZED)
for _name in ("xpu", "ipu", "mtia"):
    METHODS[_name] = _refused(_name, "there is no such device here; computations run on MindSpore's device")
METHODS["to_mkldnn"] = _refused("to_mkldnn", "oneDNN's own layout is not there; the dense tensor serves everywhere")
METHODS["record_stream"] = _refused("record_stream", "there are no streams to wait for")
METHODS["to_padded_tensor"] = _refused("to_padded_tensor", "it is a method of nested tensors")
METHODS["reinforce"] = _refused("reinforce", "it was removed from PyTorch too; torch.distributions has log_prob")


def dequantize(self):
    """Itself in float32: no tensor is quantized here. Source: PyTorch, Tensor.dequantize."""
    return self.float()


def dim_order(self, ambiguity_check=False):
    """The dimensions from the outermost to the innermost in memory. Source: PyTorch, Tensor.dim_order."""
    if ambiguity_check and any(n == 1 for n in self._size):
        raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one of the given memory formats.")
    return tuple(geometry.memory_order(self._size, self._stride))


def const_data_ptr(self):
    return self.data_ptr()


def is_distributed(self):
    return False


def resize(self, *sizes):
    """The tensor in another size with as many elements; deprecated in PyTorch for reshape. Source: PyTorch, Tensor.resize."""
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    sizes = arguments.integers(sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes)
    if geometry.numel(sizes) != self.numel():
        raise RuntimeError(f"requested resize to {'x'.join(map(str, sizes))} ({geometry.numel(sizes)} elements in total), but the given "
                           f"tensor has a size of {'x'.join(map(str, self._size))} ({self.numel()} elements). autograd's resize can only "
                           "change the shape of a given tensor, while preserving the number of elements. ")
    return self.contiguous().view(sizes)


def resize_as(self, tensor):
    """resize to the size of another tensor. Source: PyTorch, Tensor.resize_as."""
    return resize(self, *tensor._size)


for _function in (dequantize, dim_order, const_data_ptr, is_distributed, resize, resize_as):
    METHODS[_function.__name__] = _function
METHODS["__long__"] = lambda self: int(self)
METHODS["__nonzero__"] = lambda self: bool(self)
Tensor.is_mtia = False
Tensor.volatile = False
Tensor.name = None
Tensor.grad_dtype = property(lambda self: self._dtype, doc="The gradient's dtype: the tensor's own. Source: PyTorch, Tensor.grad_dtype.")
