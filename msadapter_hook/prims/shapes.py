"""Shapes and dtypes of what primitives give, for values without data. A rule by the name of the primitive where it can be told
from shapes alone; the kernel itself on zeros for the rest, as long as they are few.
"""

import math

import numpy as np

from msadapter_hook.tape import abstract

_FEW = 1 << 22  # elements of zeros that a kernel without a rule may be run on

_ELEMENTWISE = frozenset(
    "absolute acos acosh add angle asin asinh atan atan2 atanh bernoulli_p binary_cross_entropy bitwise_and bitwise_left_shift "
    "bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp clamp_range conj copy copysign cos cosh detach div elu entr equal "
    "erf erfc erfcx erfinv exp exp2 expm1 floor floor_divide floor_quotient fmax fmin fmod frexp gcd gelu greater greater_equal "
    "hardshrink hardsigmoid hardswish hardtanh heaviside hypot i0 i0e i1 i1e igamma igammac imag invert isclose isfinite isinf "
    "isnan lcm ldexp leaky_relu lerp less less_equal lgamma log log10 log1p log2 log_ndtr log_sigmoid logaddexp logaddexp2 "
    "logical_and logical_not logical_or logical_xor logit make_complex masked_fill maximum minimum mish moved_statistic mul "
    "nan_to_num ndtr ndtri neg nextafter not_equal polygamma pow pow_number prelu real reciprocal relu remainder rint "
    "round_decimals rrelu rsqrt safe_root sgn sigmoid sigmoid_cross_entropy signbit silu sin sinc sinh smooth_l1 softplus "
    "softplus_beta softshrink sqrt square standard_gamma_gradient sub tan tanh threshold tied trunc trunc_divide "
    "truncated_quotient where xlog1py xlogy xlogy_same zeta".split())
_AS_FIRST = frozenset(
    "add_along as_strided_scatter beside cumprod cumsum diagonal_scatter flip index_add index_put inverse cholesky "
    "cholesky_inverse fixed_norm group_norm log_softmax logcumsumexp matrix_exponential overwrite put_along roll row_norm "
    "slice_scatter softmax scatter_combined tril triu bias_add scatter_reduce standard_gamma".split())
_REDUCING = frozenset("amax amin logsumexp mean prod sum var vector_norm".split())
_SAME_DEVICE = frozenset("add sub mul div where maximum minimum equal not_equal less less_equal greater greater_equal pow atan2 "
                         "fmod remainder concat logical_and logical_or".split())


def _broadcast(*shapes):
    return np.broadcast_shapes(*shapes)


def _tiny_dtypes(primitive, inputs, attributes):
    """The dtypes that the kernel gives, from a run where every axis has length 1."""
    ones = [np.ones((1,) * len(v.shape), v.dtype) for v in inputs]
    with np.errstate(all="ignore"):
        found = primitive.host(*ones, **attributes)
    return [np.asarray(r).dtype for r in ((found,) if primitive.outputs == 1 else found)]


def _reduced(shape, axes, keepdims):
    if keepdims:
        return tuple([1 if i in axes else n for i, n in enumerate(shape)])
    return tuple([n for i, n in enumerate(shape) if i not in axes])


def _window(shape, start, stop, step):
    return tuple([len(range(*slice(a, b, c).indices(n))) for n, a, b, c in zip(shape, start, stop, step)])


def _joined(shapes, axis):
    first = shapes[0]
    return first[:axis] + (sum([s[axis] for s in shapes]),) + first[axis + 1:]


def _diagonal(shape, offset, axis1, axis2):
    rows, columns = shape[axis1], shape[axis2]
    n = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    axis1, axis2 = axis1 % len(shape), axis2 % len(shape)
    return tuple([s for i, s in enumerate(shape) if i not in (axis1, axis2)]) + (max(n, 0),)


def _index_shape(a, axes, index):
    common = _broadcast(*[i.shape for i in index])
    rest = [n for d, n in enumerate(a.shape) if d not in axes]
    at = axes[0] if list(axes) == list(range(axes[0], axes[0] + len(axes))) else 0
    return tuple(rest[:at]) + common + tuple(rest[at:])


def _product(a, b, transpose_b=False):
    columns = b.shape[-2] if transpose_b else b.shape[-1]
    inner = b.shape[-1] if transpose_b else b.shape[-2]
    if a.shape[-1] != inner:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a.shape[-2]}x{a.shape[-1]} and {inner}x{columns})")
    return _broadcast(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], columns)


def _spatial(size, kernel, stride, padding, dilation):
    return tuple([(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(size, kernel, stride, padding, dilation)])


def _convolved(x, w, *b, stride, padding, dilation, groups):
    return (x.shape[0], w.shape[0], *_spatial(x.shape[2:], w.shape[2:], stride, padding, dilation))


def _lstm(x, h, *rest):
    return [x.shape[:2] + h.shape[-1:], h.shape, h.shape]


def _scan(x, h, *rest, **attributes):
    return [x.shape[:2] + h.shape[-1:], h.shape]


def _svd(a, full):
    *batch, m, n = a.shape
    k, batch = min(m, n), tuple(batch)
    return [batch + (m, m if full else k), batch + (k,), batch + (n if full else k, n)]


_SHAPES = {  # the shapes of the outputs; all of the first input's dtype
    "reshape": lambda a, shape: shape,
    "transpose": lambda a, axes: tuple([a.shape[i] for i in axes]),
    "broadcast_to": lambda a, shape: shape,
    "sum_to": lambda a, shape: shape,
    "strided_slice": lambda a, start, stop, step: _window(a.shape, start, stop, step),
    "as_strided": lambda a, size, stride, offset: size,
    "as_strided_add": lambda a, shape, size, stride, offset: shape,
    "graft": lambda old, data: data.shape,
    "max_of_all": lambda a: (),
    "min_of_all": lambda a: (),
    "drawn": lambda *arrays: arrays[-1].shape,
    "concat": lambda *a, axis: _joined([v.shape for v in a], axis),
    "stack": lambda *a, axis: a[0].shape[:axis] + (len(a),) + a[0].shape[axis:],
    "pad": lambda a, before, after, value: tuple([b + n + c for b, n, c in zip(before, a.shape, after)]),
    "gather": lambda a, index, axis: a.shape[:axis] + index.shape + a.shape[axis + 1:],
    "index_get": lambda a, *index, axes: _index_shape(a, axes, index),
    "take_along": lambda a, index, axis: index.shape,
    "diagonal": lambda a, offset, axis1, axis2: _diagonal(a.shape, offset, axis1, axis2),
    "matmul": _product,
    "affine_map": lambda x, w, *b: x.shape[:-1] + w.shape[:1],
    "attention": lambda q, k, v, *mask, scale: q.shape[:-1] + v.shape[-1:],
    "axis_take": lambda a, index, axis: a.shape[:axis] + (index.shape[0],) + a.shape[axis + 1:],
    "axis_add": lambda g, index, axis, size: g.shape[:axis] + (size,) + g.shape[axis + 1:],
    "axis_repeat": lambda a, axis, times: a.shape[:axis] + (a.shape[axis] * times,) + a.shape[axis + 1:],
    "axis_map": lambda a, m, axis: a.shape[:axis] + (m.shape[0],) + a.shape[axis + 1:],
    "places_get": lambda a, index: a.shape[:2] + index.shape[2:],
    "places_add": lambda g, index, size: g.shape[:2] + (size,),
    "max_pool": lambda a, kernel, stride, padding, dilation, out: a.shape[:2] + tuple(out),
    "avg_pool": lambda a, out, **rest: a.shape[:2] + tuple(out),
    "avg_pool_back": lambda g, size, **rest: g.shape[:2] + tuple(size),
    "max_unpool": lambda a, index, size: a.shape[:2] + tuple(size),
    "conv": _convolved,
    "conv_bias": _convolved,
    "conv_input": lambda g, w, size, stride, padding, dilation, groups: (g.shape[0], w.shape[1] * groups, *size),
    "conv_weight": lambda x, g, kernel, stride, padding, dilation, groups: (g.shape[1], x.shape[1] // groups, *kernel),
    "sparse_cross_entropy": lambda a, target: (),
    "determinant": lambda a: a.shape[:-2],
    "solve": lambda a, b: _broadcast(a.shape[:-2], b.shape[:-2]) + b.shape[-2:],
    "solve_triangular": lambda a, b, above, unit: _broadcast(a.shape[:-2], b.shape[:-2]) + b.shape[-2:],
    "cholesky_solve": lambda b, a, upper: _broadcast(a.shape[:-2], b.shape[:-2]) + b.shape[-2:],
    "pinv": lambda a, *rest, hermitian: a.shape[:-2] + (a.shape[-1], a.shape[-2]),
    "cdist": lambda a, b, p: _broadcast(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-2]),
    "fft_c2c": lambda a, axes, forward, scale: a.shape,
}
_SEVERAL = {  # several outputs, all of the first input's dtype
    "split": lambda a, axis, sizes: [a.shape[:axis] + (n,) + a.shape[axis + 1:] for n in sizes],
    "batch_norm": lambda x, w, b, eps: [x.shape, x.shape[1:2], x.shape[1:2]],
    "lstm": _lstm,
    "gru": _scan,
    "rnn": _scan,
    "log_determinant": lambda a: [a.shape[:-2], a.shape[:-2]],
}
_INDICES = {"max_pool_index": lambda a, kernel, stride, padding, dilation, out: a.shape[:2] + tuple(out)}


def _real(dtype):
    return np.empty(0, dtype).real.dtype


def _complex(dtype):
    return np.dtype(np.complex64) if dtype.itemsize <= 4 else np.dtype(np.complex128)


def _svd_specs(a, full):
    u, s, v = _svd(a, full)
    return ((u, a.dtype), (s, _real(a.dtype)), (v, a.dtype))


_SPECS = {  # dtypes that differ
    "cast": lambda a, dtype: ((a.shape, dtype),),
    "svd": _svd_specs,
    "eigh": lambda a, uplo: ((a.shape[:-1], _real(a.dtype)), (a.shape, a.dtype)),
    "eig": lambda a: ((a.shape[:-1], _complex(a.dtype) if a.dtype.kind != "c" else a.dtype),
                      (a.shape, _complex(a.dtype) if a.dtype.kind != "c" else a.dtype)),
    "fft_r2c": lambda a, axis, forward, scale: ((a.shape[:axis] + (a.shape[axis] // 2 + 1,) + a.shape[axis + 1:], _complex(a.dtype)),),
    "fft_c2r": lambda a, axis, n, forward, scale: ((a.shape[:axis] + (n,) + a.shape[axis + 1:], _real(a.dtype)),),
    "view_bits": lambda a, dtype: ((a.shape if dtype.itemsize == a.dtype.itemsize else
                                    a.shape[:-1] + (a.shape[-1] * a.dtype.itemsize // dtype.itemsize,), dtype),),
    "overwrite": lambda old, new: ((new.shape, new.dtype),),
    "standard_gamma": lambda a, sample: ((sample.shape, sample.dtype),),
}


def infer(primitive, inputs, attributes):
    """((shape, dtype), …) of the outputs of a primitive call. RuntimeError where the inputs are on different devices,
    NotImplementedError where only the data could tell."""
    name = primitive.name
    if name in _SAME_DEVICE:
        _check_devices(inputs)
    found = _SPECS.get(name)
    if found is not None:
        return found(*inputs, **attributes)
    dtype = inputs[0].dtype if inputs else None
    found = _SHAPES.get(name)
    if found is not None:
        return ((tuple(found(*inputs, **attributes)), dtype),)
    found = _SEVERAL.get(name)
    if found is not None:
        return tuple([(tuple(shape), dtype) for shape in found(*inputs, **attributes)])
    if name in _INDICES:
        return ((_INDICES[name](*inputs, **attributes), np.dtype(np.int64)),)
    if name in _AS_FIRST:
        return ((inputs[0].shape, dtype),)
    if name in _ELEMENTWISE or name.startswith("special_"):
        shape = _broadcast(*[v.shape for v in inputs])
        return tuple([(shape, d) for d in _tiny_dtypes(primitive, inputs, attributes)])
    if name in _REDUCING:
        shape = _reduced(inputs[0].shape, attributes["axes"], attributes["keepdims"])
        return tuple([(shape, d) for d in _tiny_dtypes(primitive, inputs, attributes)])
    return _run(primitive, inputs, attributes)


def _check_devices(inputs):
    """Elementwise operations refuse to mix a tensor without data with one of the CPU, numbers excepted."""
    first = inputs[0] if inputs[0].shape or len(inputs) == 1 else inputs[1]
    for v in inputs:
        if v.shape and not v.wrapped and not first.wrapped and v.abstract is not first.abstract and v.node is None:
            mine, other = ("cpu", "meta") if first.abstract else ("meta", "cpu")
            raise RuntimeError(f"Tensor on device {mine} is not on the expected device {other}!")


def _run(primitive, inputs, attributes):
    """Specs from the kernel itself, on zeros in place of what has no data."""
    if primitive.host is None or sum([math.prod(v.shape) for v in inputs]) > _FEW:
        raise NotImplementedError(f"{primitive.name}: its result's shape is not known without data for inputs of this size")
    arrays = [np.zeros(v.shape, v.dtype) if v.abstract else v.numpy for v in inputs]
    with np.errstate(all="ignore"):
        found = primitive.host(*arrays, **attributes)
    return tuple([(np.shape(r), np.asarray(r).dtype) for r in ((found,) if primitive.outputs == 1 else found)])


abstract.infer = infer
