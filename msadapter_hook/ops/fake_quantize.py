"""Fake quantization: numbers rounded to the grid of a quantized type and back, with the gradient passed straight through."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import value_of

from .registry import operator


def _check(quant_min, quant_max, *points):
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or equal to `quant_max`.")
    for point in points:
        if point.size and (point.min() < quant_min or point.max() > quant_max):
            raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")


def _faked(self, scale, point, quant_min, quant_max):
    """x on the grid (scale and point broadcast); what was clamped gets no gradient."""
    x = self.numpy
    kind = np.float32 if x.dtype.itemsize < 4 else x.dtype
    with np.errstate(all="ignore"):
        steps = np.rint(x.astype(kind) * (1 / scale).astype(kind)) + point
    inside = (steps >= quant_min) & (steps <= quant_max)
    made = ((np.clip(steps, quant_min, quant_max) - point) * scale.astype(kind)).astype(x.dtype)
    if not self.requires_grad:
        return value_of(made)
    return prims.graft(self * value_of(inside.astype(x.dtype)), value_of(made))


@operator("fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor",
          forms="function", grad_name="FakeQuantizePerTensorAffineCachemaskBackward0")
@operator("fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max) -> "
          "Tensor", forms="function", grad_name="FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0")
def fake_quantize_per_tensor_affine(self, scale, zero_point, quant_min, quant_max):
    """(clamp(round(x / scale) + zero_point, quant_min, quant_max) - zero_point) * scale; shape and dtype as the input, the gradient
    passed on where nothing is clamped. Source: PyTorch, torch.fake_quantize_per_tensor_affine.
    """
    scale, point = (np.asarray(v.numpy if hasattr(v, "numpy") else v).reshape(()) for v in (scale, zero_point))
    _check(quant_min, quant_max, point)
    return _faked(self, scale.astype(np.float32) if scale.dtype.itemsize > 4 and self.dtype.itemsize <= 4 else scale, point, quant_min,
                  quant_max)


@operator("fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) "
          "-> Tensor",
          forms="function", grad_name="FakeQuantizePerChannelAffineCachemaskBackward0")
def fake_quantize_per_channel_affine(self, scale, zero_point, axis, quant_min, quant_max):
    """The same with a scale and a zero point for each place along `axis`. Source: PyTorch, torch.fake_quantize_per_channel_affine."""
    if scale.ndim != 1 or zero_point.ndim != 1:
        raise RuntimeError("scale and zero_point need to be 1-D tensors")
    if scale.shape != zero_point.shape:
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    if not 0 <= axis < self.ndim:
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    if scale.shape[0] != self.shape[axis]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    shape = [1] * self.ndim
    shape[axis] = scale.shape[0]
    _check(quant_min, quant_max, zero_point.numpy)
    return _faked(self, scale.numpy.reshape(shape), zero_point.numpy.reshape(shape), quant_min, quant_max)
