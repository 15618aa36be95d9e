"""Random numbers: operators over the streams of the generator, seed for seed PyTorch's, and dropout.

What is drawn is data: it enters the tape as a constant, so a replay cannot draw again.
"""

import math
import warnings

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import value_of
from msadapter_hook.tensor import Tensor, detached, dtypes, from_array, geometry, samplers, streams
from msadapter_hook.tensor.formats import like_geometry
from msadapter_hook.tensor.generator import default_generator

from .creation import _LIKE, _OPTIONS, finish
from .registry import composite, warn_once
from .tables import METHODS, call
from .writing import check_inplace

_DRAW = "*, Generator? generator=None, " + _OPTIONS[3:]
_DRAW_LIKE = "*, Generator? generator=None, " + _LIKE[3:]


def _stream(generator):
    if generator is None:
        return default_generator
    if generator.device.type != "cpu" and default_generator.device.type == "cpu":
        raise RuntimeError(f"Expected a 'cpu' device type for generator but found '{generator.device.type}'")
    return generator


def _count(size):
    for n in size:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(size)}")
    return geometry.numel(size)


def _made(flat, size, dtype, device, requires_grad, layout):
    return finish(from_array(flat.reshape(size), dtype), device, requires_grad, layout)


# ------------------------------------------------------------------------------------------------ factories
@composite(f"rand(int[] size, {_DRAW}) -> Tensor", forms="function out")
def rand(size, generator=None, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """Uniform numbers in [0, 1). Source: PyTorch, torch.rand."""
    dtype = dtype or dtypes.get_default_dtype()
    return _made(streams.rand(_stream(generator), _count(size), dtype), size, dtype, device, requires_grad, layout)


@composite(f"randn(int[] size, {_DRAW}) -> Tensor", forms="function out")
def randn(size, generator=None, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """Standard normal numbers. Source: PyTorch, torch.randn."""
    dtype = dtype or dtypes.get_default_dtype()
    return _made(streams.normal(_stream(generator), _count(size), dtype=dtype), size, dtype, device, requires_grad,
                 layout)


@composite(f"randint(int high, int[] size, {_DRAW}) -> Tensor", forms="function out")
@composite(f"randint.low(int low, int high, int[] size, {_DRAW}) -> Tensor", forms="function out")
def randint(*args):
    """Integers in [low, high); int64 by default. Source: PyTorch, torch.randint."""
    *bounds, size, generator, dtype, layout, device, _, requires_grad = args
    low, high = bounds if len(bounds) == 2 else (0, bounds[0])
    dtype = dtype or dtypes.int64
    return _made(streams.randint(_stream(generator), _count(size), low, high, dtype), size, dtype, device,
                 requires_grad, layout)


@composite(f"randperm(int n, {_DRAW}) -> Tensor", forms="function out")
def randperm(n, generator=None, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """A permutation of 0 … n-1. Source: PyTorch, torch.randperm."""
    dtype = dtype or dtypes.int64
    flat = streams.randperm(_stream(generator), n).astype(dtype.numpy, copy=False)
    return _made(flat, (n,), dtype, device, requires_grad, layout)


def _drawn_like(self, draw, dtype, device, requires_grad, layout, memory_format):
    """A tensor of `self`'s size and layout; `draw(n, dtype, scattered)` gives the numbers in the order of memory."""
    dtype = dtype or self._dtype
    stride = like_geometry(self, memory_format) or geometry.contiguous_stride(self._size)
    array = _in_memory_order(lambda n, scattered: draw(n, dtype, scattered), self._size, stride)
    return finish(Tensor._make(value_of(array), dtype, stride), device or self.device, requires_grad, layout)


def _in_memory_order(draw, size, stride):
    """An array of `size` filled from `draw(n, scattered)`, the first number at the lowest address."""
    contiguous = geometry.is_contiguous(size, stride)
    flat = draw(geometry.numel(size), not contiguous)
    if contiguous:
        return flat.reshape(size)
    order = geometry.memory_order(size, stride)
    return np.ascontiguousarray(flat.reshape([size[d] for d in order]).transpose(np.argsort(order)))


@composite(f"rand_like(Tensor self, {_DRAW_LIKE}) -> Tensor", forms="function")
def rand_like(self, generator=None, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None,
              requires_grad=False):
    """Uniform numbers with the size and dtype of `self`. Source: PyTorch, torch.rand_like."""
    g = _stream(generator)
    return _drawn_like(self, lambda n, t, _: streams.rand(g, n, t), dtype, device, requires_grad, layout, memory_format)


@composite(f"randn_like(Tensor self, {_DRAW_LIKE}) -> Tensor", forms="function")
def randn_like(self, generator=None, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None,
               requires_grad=False):
    """Standard normal numbers with the size and dtype of `self`. Source: PyTorch, torch.randn_like."""
    g = _stream(generator)
    return _drawn_like(self, lambda n, t, scattered: streams.normal(g, n, dtype=t, scattered=scattered), dtype, device,
                       requires_grad, layout, memory_format)


@composite(f"randint_like(Tensor self, Scalar high, {_DRAW_LIKE}) -> Tensor", forms="function")
@composite(f"randint_like.low(Tensor self, Scalar low, Scalar high, {_DRAW_LIKE}) -> Tensor", forms="function")
def randint_like(self, *args):
    """Integers in [low, high) with the size and dtype of `self`. Source: PyTorch, torch.randint_like."""
    *bounds, generator, dtype, layout, device, _, memory_format, requires_grad = args
    low, high = bounds if len(bounds) == 2 else (0, bounds[0])
    g = _stream(generator)
    return _drawn_like(self, lambda n, t, _: streams.randint(g, n, int(low), int(high), t), dtype, device,
                       requires_grad,
                       layout, memory_format)


# ------------------------------------------------------------------------------------------------ distributions
drawn = prims.host_call(
    "drawn", lambda *arrays: arrays[-1],
    joint_vjp=lambda grads, outs, needs,
    *inputs: [prims.zeros_like(v) if need else None for v, need in zip(inputs, needs)],
    uses_output=False)


def _refuse_gradient(grads, outs, needs, *inputs):
    raise RuntimeError("derivative for aten::bernoulli is not implemented")


_underivable = prims.host_call("bernoulli_p", lambda a: a, joint_vjp=_refuse_gradient, uses_output=False)


def _result(t, array, name):
    """A new tensor with `array`, attached to `t` by a gradient of zeros."""
    value = drawn(t.value, value_of(array))
    if value.requires_grad:
        value.node.operator = name
    return Tensor._make(value)


def _normal_bounds(std):
    if isinstance(std, Tensor):
        if std._dtype.is_complex:
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if std.numel() and not (detached(std).numpy >= 0).all():
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def _normal_of(mean, std, generator):
    """mean + std * normals, drawn for the common shape."""
    _normal_bounds(std)
    parts = [t for t in (mean, std) if isinstance(t, Tensor)]
    shape = geometry.broadcast_shapes(*[t._size for t in parts])
    dtype = parts[0]._dtype if len(parts) == 1 else dtypes.promote_types(parts[0]._dtype, parts[1]._dtype)
    noise = from_array(streams.normal(_stream(generator), geometry.numel(shape), dtype=dtype).reshape(shape), dtype)
    parts = [p.detach() if isinstance(p, Tensor) else p for p in (mean, std)]
    return _attach(noise * parts[1] + parts[0], mean, std, "NormalBackward0")


def _attach(result, *inputs_and_name):
    *inputs, name = inputs_and_name
    value = drawn(*[t.value for t in inputs if isinstance(t, Tensor)], result.value)
    if value.requires_grad:
        value.node.operator = name
    return Tensor._make(value, result._dtype)


composite("normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
          forms="function out")(_normal_of)


@composite("normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor", forms="function "
                                                                                                          "out")
def normal_mean(mean, std=1.0, generator=None):
    """Normal numbers about each mean. Source: PyTorch, torch.normal."""
    return _normal_of(mean, std, generator)


@composite("normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor", forms="function out")
def normal_std(mean, std, generator=None):
    """Normal numbers with each deviation. Source: PyTorch, torch.normal."""
    return _normal_of(mean, std, generator)


@composite(f"normal.float_float(float mean, float std, int[] size, {_DRAW}) -> Tensor", forms="function out")
def normal(mean, std, size, generator=None, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """Normal numbers of one mean and deviation. Source: PyTorch, torch.normal."""
    dtype = dtype or dtypes.get_default_dtype()
    _normal_bounds(std)
    flat = streams.normal(_stream(generator), _count(size), mean, std, dtype)
    return _made(flat, size, dtype, device, requires_grad, layout)


@composite("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", forms="function method out")
@composite("bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor", forms="function method")
def bernoulli(self, *rest):
    """0 or 1 with the probabilities in `self`, or with probability `p`. Source: PyTorch, torch.bernoulli."""
    *p, generator = rest
    g = _stream(generator)
    if p:
        if self.requires_grad:
            self = Tensor._make(_underivable(self.value), self._dtype)
        array = streams.bernoulli_p(g, self.numel(), p[0]).reshape(self._size)
    else:
        array = streams.bernoulli_t(g, detached(self).numpy)
    return _result(self, array.astype(self._dtype.numpy), "BernoulliBackward0")


@composite("multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
           forms="function method out")
def multinomial(self, num_samples, replacement=False, generator=None):
    """Indices drawn with the weights of each row; int64. Source: PyTorch, torch.multinomial."""
    return from_array(streams.multinomial(_stream(generator), detached(self).numpy, num_samples, replacement))


@composite("poisson(Tensor self, Generator? generator=None) -> Tensor", forms="function")
def poisson(self, generator=None):
    """A count for each rate. Source: PyTorch, torch.poisson."""
    return _result(self, samplers.poisson(_stream(generator), detached(self).numpy), "PoissonBackward0")


@composite("binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor", forms="function")
def binomial(count, prob, generator=None):
    """Successes among `count` trials of probability `prob`. Source: PyTorch, torch.binomial."""
    made = from_array(samplers.binomial(_stream(generator), detached(count).numpy, detached(prob).numpy))
    return _attach(made, count, prob, "BinomialBackward0")


_gamma_gradient = prims.host_call("standard_gamma_gradient", lambda a, x: _gamma_slope(a, x), differentiable=False)


def _gamma_slope(alpha, x):
    """Derivative of a gamma sample by its shape: minus (dF/da) / (dF/dx) of the distribution function."""
    from scipy import special

    a, y = alpha.astype(np.float64), x.astype(np.float64)
    step = 1e-4 * np.maximum(a, 1e-2)

    def by_shape(h):
        return (special.gammainc(a + h, y) - special.gammainc(a - h, y)) / (2 * h)

    slope = (4 * by_shape(step / 2) - by_shape(step)) / 3  # Richardson: error of fourth order
    log_density = (a - 1) * np.log(y) - y - special.gammaln(a)
    return (-slope / np.exp(log_density)).astype(alpha.dtype)


_gamma_sample = prims.host_call(
    "standard_gamma", lambda a, sample: sample,
    vjp=[lambda g, out, a, sample: g * _gamma_gradient(a, sample), None], uses_output=False)


@composite("_standard_gamma(Tensor self, Generator? generator=None) -> Tensor", forms="function")
def _standard_gamma(self, generator=None):
    """Gamma samples of rate 1, differentiable by their shapes. Source: PyTorch, torch._standard_gamma."""
    sample = samplers.standard_gamma(_stream(generator), detached(self).numpy)
    value = _gamma_sample(self.value, value_of(sample))
    if value.requires_grad:
        value.node.operator = "StandardGammaBackward0"
    return Tensor._make(value)


@composite("_standard_gamma_grad(Tensor self, Tensor output) -> Tensor", forms="function")
def _standard_gamma_grad(self, output):
    """Derivative of gamma samples by their shapes. Source: PyTorch, torch._standard_gamma_grad."""
    return Tensor._make(_gamma_gradient(self.value, output.value))


@composite("_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor", forms="function")
def _sample_dirichlet(self, generator=None):
    """A point of the simplex for each row. Source: PyTorch, torch._sample_dirichlet."""
    return _result(self, samplers.sample_dirichlet(_stream(generator), detached(self).numpy), "NotImplemented")


# ------------------------------------------------------------------------------------------------ in place
def fill_random(self, draw, name):
    """Fill from `draw(n, scattered)`, flat in the order of memory; a tensor of the graph gets a gradient of zeros."""
    check_inplace(self)
    if self.is_meta:
        self._write(self.value.detach())
        return self
    array = _in_memory_order(draw, self._size, self._stride)
    if array.dtype != self._dtype.numpy:
        array = array.astype(self._dtype.numpy)
    value = value_of(array)
    if self.requires_grad:
        value = drawn(self.value, value)
        if value.requires_grad:
            value.node.operator = name
    self._write(value)
    return self


def _in_place(function):
    METHODS[function.__name__] = function
    return function


def _bound(keywords, name, default):
    """A bound that may be given as `from=`, which is no Python name."""
    value = keywords.pop(name, default)
    if keywords:
        raise TypeError(f"got an unexpected keyword argument '{next(iter(keywords))}'")
    return value


def _number(x):
    return x.item() if isinstance(x, Tensor) else x


@_in_place
def uniform_(self, from_=0.0, to=1.0, *, generator=None, **keywords):
    """Filled with uniform numbers in [from, to). Source: PyTorch, Tensor.uniform_."""
    low, high = _number(_bound(keywords, "from", from_)), _number(to)
    g = _stream(generator)
    return fill_random(self, lambda n, _: streams.uniform(g, n, low, high, self._dtype), "UniformBackward0")


@_in_place
def normal_(self, mean=0.0, std=1.0, *, generator=None):
    """Filled with normal numbers. Source: PyTorch, Tensor.normal_."""
    g, mean, std = _stream(generator), _number(mean), _number(std)
    return fill_random(self, lambda n, scattered: streams.normal(g, n, mean, std, self._dtype, scattered),
                       "NormalBackward0")


_DIGITS = {"Float": 24, "Double": 53, "Half": 11, "BFloat16": 8}  # whole numbers up to two to this are all there


@_in_place
def random_(self, *bounds, generator=None, **keywords):
    """Filled with integers: of the dtype's range, of [0, to) or of [from, to). Source: PyTorch, Tensor.random_."""
    if len(bounds) > 2:
        raise TypeError(f"random_() takes at most 2 bounds, but {len(bounds)} were given")
    low = bounds[0] if len(bounds) == 2 else None
    to = bounds[-1] if bounds else keywords.pop("to", None)
    if len(bounds) == 1 and "to" in keywords:
        low, to = bounds[0], keywords.pop("to")
    low, g = _bound(keywords, "from", low), _stream(generator)
    for bound, words in ((low, "from"), (None if to is None else to - 1, "to - 1")):
        digits = _DIGITS.get(self._dtype.scalar_name)
        if bound is not None and digits is not None and not -(2**digits) <= bound <= 2**digits:
            name = self._dtype.scalar_name.lower()
            warn_once(f"{words} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations {name} can support discrete "
                      "uniform distribution only within this range. This warning will become an error in version 1.7 "
                      "release, please fix the code in advance")
    return fill_random(self, lambda n, _: streams.random_(g, n, self._dtype, low, to), "RandomBackward0")


@_in_place
def bernoulli_(self, p=0.5, *, generator=None):
    """Filled with 0 or 1; `p` a number, or a tensor of probabilities. Source: PyTorch, Tensor.bernoulli_."""
    g = _stream(generator)
    if isinstance(p, Tensor):
        p_array = np.broadcast_to(detached(p).numpy, self._size)
        return fill_random(self, lambda n, _: _reordered(streams.bernoulli_t(g, p_array), self), "BernoulliBackward0")
    return fill_random(self, lambda n, _: streams.bernoulli_p(g, n, p), "BernoulliBackward0")


def _reordered(array, tensor):
    if tensor.is_contiguous():
        return array.reshape(-1)
    return array.transpose(geometry.memory_order(tensor._size, tensor._stride)).reshape(-1)


@_in_place
def exponential_(self, lambd=1.0, *, generator=None):
    """Filled with waiting times of rate `lambd`. Source: PyTorch, Tensor.exponential_."""
    g = _stream(generator)
    return fill_random(self, lambda n, _: streams.exponential(g, n, lambd, self._dtype), "ExponentialBackward0")


@_in_place
def geometric_(self, p, *, generator=None):
    """Filled with numbers of trials up to the first success. Source: PyTorch, Tensor.geometric_."""
    g = _stream(generator)
    return fill_random(self, lambda n, _: streams.geometric(g, n, p, self._dtype), "GeometricBackward0")


@_in_place
def cauchy_(self, median=0.0, sigma=1.0, *, generator=None):
    """Filled with Cauchy numbers. Source: PyTorch, Tensor.cauchy_."""
    g = _stream(generator)
    return fill_random(self, lambda n, _: streams.cauchy(g, n, median, sigma, self._dtype), "CauchyBackward0")


@_in_place
def log_normal_(self, mean=1.0, std=2.0, *, generator=None):
    """Filled with exponentials of normal numbers. Source: PyTorch, Tensor.log_normal_."""
    g = _stream(generator)
    return fill_random(self, lambda n, _: streams.log_normal(g, n, mean, std, self._dtype), "LogNormalBackward0")


# ------------------------------------------------------------------------------------------------ dropout
def _noise(t, shape, keep):
    """Draws of the mask for `t`: true with probability `keep`, one per element or per channel."""
    if shape == t._size:
        return _in_memory_order(lambda n, _: streams.bernoulli_p(default_generator, n, keep), shape,
                                like_geometry(t, None) or geometry.contiguous_stride(shape))
    return streams.bernoulli_p(default_generator, geometry.numel(shape), keep).reshape(shape)


def _times(t, mask, inplace, name):
    """t * mask, recorded as that product."""
    mask = prims.broadcast_to(value_of(mask), shape=tuple(t._size)) if mask.shape != t._size else value_of(mask)
    value = prims.mul(t.value, mask)
    if value.requires_grad:
        value.node.operator = name
    return value


def drop(t, p, training, inplace=False, feature=False, alpha=False):
    """The dropout family. `feature`: one decision per channel. `alpha`: keeps mean and variance (for SELU)."""
    p = float(_number(p))
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if p == 0 or not training or t.numel() == 0:
        return t
    if p == 1:
        return t.mul_(call("zeros", (), dtype=t._dtype)) if inplace else t * call("zeros", (), dtype=t._dtype)
    if feature and t.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    if not (t._dtype.is_floating_point or t._dtype.is_complex):
        raise RuntimeError(f"result type Float can't be cast to the desired output type {t._dtype.scalar_name}")
    if inplace:
        check_inplace(t)
    if t.is_meta:
        return t.mul_(1.0) if inplace else t * 1.0
    shape = t._size[:2] + (1,) * (t.dim() - 2) if feature else t._size
    real = t._dtype.numpy if not t._dtype.is_complex else t._dtype.to_real().numpy
    drawn_mask = _noise(t, geometry.Size(shape), 1 - p)
    wide = real if real.itemsize >= 4 else np.dtype(np.float32)
    shift = None
    if alpha:
        scale = 1.7580993408473766
        a = 1.0 / math.sqrt((scale * scale * p + 1) * (1 - p))
        mask = drawn_mask.astype(real)
        low = ((mask.astype(wide) - 1).astype(real).astype(wide) * wide.type(scale * a)).astype(real)
        shift = (low.astype(wide) + wide.type(scale * a * p)).astype(t._dtype.numpy)
        mask = (mask.astype(wide) * wide.type(a)).astype(t._dtype.numpy)
    else:
        mask = (drawn_mask.astype(wide) / wide.type(1 - p)).astype(real).astype(t._dtype.numpy)
    value = _times(t, mask, inplace, "MulBackward0")
    if shift is not None:
        value = prims.add(value, value_of(shift))
        if value.requires_grad:
            value.node.operator = "AddBackward0"
    if inplace:
        t._write(value)
        t._history.version.count += int(alpha)
        return t
    made = Tensor._make(value, t._dtype, like_geometry(t, None))
    made._history.version.count = int(alpha)  # PyTorch adds the shift in place
    return made


for _name, _feature, _alpha in (("dropout", False, False), ("feature_dropout", True, False),
                                ("alpha_dropout", False, True),
                                ("feature_alpha_dropout", True, True)):
    def _pair(feature, alpha):
        def outside(input, p, train):
            return drop(input, p, train, False, feature, alpha)

        def inside(input, p, train):
            return drop(input, p, train, True, feature, alpha)

        return outside, inside

    _outside, _inside = _pair(_feature, _alpha)
    _outside.__doc__ = _inside.__doc__ = f"The operator under nn.functional's. Source: PyTorch, torch.{_name}."
    composite(f"{_name}(Tensor self, float p, bool train) -> Tensor", forms="function")(_outside)
    composite(f"{_name}_(Tensor self, float p, bool train) -> Tensor", forms="function")(_inside)


def _probability(p):
    p = _number(p)
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return p


@composite("dropout(Tensor self, Scalar p=0.5, bool training=True, bool inplace=False) -> Tensor", forms="function",
           namespace="nn.functional")
def dropout(self, p=0.5, training=True, inplace=False):
    """Elements set to zero with probability `p`, the others scaled by 1 / (1 - p). Source: PyTorch, F.dropout."""
    return drop(self, _probability(p), training, inplace)


@composite("alpha_dropout(Tensor self, Scalar p=0.5, bool training=False, bool inplace=False) -> Tensor",
           forms="function",
           namespace="nn.functional")
def alpha_dropout(self, p=0.5, training=False, inplace=False):
    """Dropout that keeps mean and variance of SELU's outputs. Source: PyTorch, F.alpha_dropout."""
    return drop(self, _probability(p), training, inplace, alpha=True)


@composite("feature_alpha_dropout(Tensor self, Scalar p=0.5, bool training=False, bool inplace=False) -> Tensor",
           forms="function", namespace="nn.functional")
def feature_alpha_dropout(self, p=0.5, training=False, inplace=False):
    """Alpha dropout of whole channels. Source: PyTorch, F.feature_alpha_dropout."""
    return drop(self, _probability(p), training, inplace, feature=True, alpha=True)


def _channels(self, p, training, inplace):
    return drop(self, p, training, inplace, feature=True)


@composite("dropout1d(Tensor self, Scalar p=0.5, bool training=True, bool inplace=False) -> Tensor", forms="function",
           namespace="nn.functional")
def dropout1d(self, p=0.5, training=True, inplace=False):
    """Whole channels of (N, C, L) or (C, L) set to zero. Source: PyTorch, F.dropout1d."""
    p = _probability(p)
    if self.dim() not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {self.dim()}D input. Note that "
                           "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, a "
                           "channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs).")
    if self.dim() == 3:
        return _channels(self, p, training, inplace)
    made = _channels(self.unsqueeze_(0) if inplace else self.unsqueeze(0), p, training, inplace)
    return made.squeeze_(0) if inplace else made.squeeze(0)


@composite("dropout2d(Tensor self, Scalar p=0.5, bool training=True, bool inplace=False) -> Tensor", forms="function",
           namespace="nn.functional")
def dropout2d(self, p=0.5, training=True, inplace=False):
    """Whole channels of (N, C, H, W) set to zero; (N, C, L) as 1-D dropout of channels. Source: PyTorch,
    F.dropout2d."""
    p = _probability(p)
    if self.dim() not in (3, 4):
        warnings.warn(f"dropout2d: Received a {self.dim()}-D input to dropout2d, which is deprecated and will result "
                      "in an error in a future release. To retain the behavior and silence this "
                      "warning, please use dropout instead. Note that dropout2d exists to provide "
                      "channel-wise dropout on inputs with 2 spatial dimensions, a channel dimension, "
                      "and an optional batch dimension (i.e. 3D or 4D inputs).", stacklevel=4)
    if self.dim() == 3:
        warnings.warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior "
                      "is desired - input is interpreted as shape (N, C, L), where C is the channel "
                      "dim. This behavior will change in a future release to interpret the input as "
                      "one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D "
                      "channel-wise dropout behavior, please switch to using dropout1d instead.", stacklevel=4)
    return _channels(self, p, training, inplace)


@composite("dropout3d(Tensor self, Scalar p=0.5, bool training=True, bool inplace=False) -> Tensor", forms="function",
           namespace="nn.functional")
def dropout3d(self, p=0.5, training=True, inplace=False):
    """Whole channels of (N, C, D, H, W) or (C, D, H, W) set to zero. Source: PyTorch, F.dropout3d."""
    p = _probability(p)
    if self.dim() not in (4, 5):
        warnings.warn(f"dropout3d: Received a {self.dim()}-D input to dropout3d, which is deprecated and will result "
                      "in an error in a future release. To retain the behavior and silence this "
                      "warning, please use dropout instead. Note that dropout3d exists to provide "
                      "channel-wise dropout on inputs with 3 spatial dimensions, a channel dimension, "
                      "and an optional batch dimension (i.e. 4D or 5D inputs).", stacklevel=4)
    unbatched = self.dim() == 4
    if not unbatched:
        return _channels(self, p, training, inplace)
    made = _channels(self.unsqueeze_(0) if inplace else self.unsqueeze(0), p, training, inplace)
    return made.squeeze_(0) if inplace else made.squeeze(0)


@composite("native_dropout(Tensor self, float p, bool? train) -> (Tensor, Tensor)", forms="function")
def native_dropout(self, p, train):
    """(output, mask) of dropout. Source: PyTorch, torch.native_dropout."""
    if self.numel() == 0:
        return self, call("empty_like", self, dtype=dtypes.bool_)
    if train is False or p == 0:
        return self.clone(), call("ones_like", self, dtype=dtypes.bool_)
    keep = streams.bernoulli_p(default_generator, self.numel(), 1 - p).reshape(self._size)
    mask = from_array(keep)
    scale = 0.0 if p == 1 else 1.0 / (1.0 - p)
    return self * mask * scale, mask


@composite("native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor", forms="function")
def native_dropout_backward(grad_output, mask, scale):
    """Gradient of native_dropout. Source: PyTorch, torch.native_dropout_backward."""
    return grad_output * (mask.to(grad_output._dtype) * scale)
