"""What primitives do to tensors whose data only their class knows: the operators on those tensors that compute the same.

Gradients are made of primitives; for such tensors each of them is asked of the tensors here (see `tape.abstract`).
"""

from msadapter_hook.errors import unsupported
from msadapter_hook.tape import abstract, no_grad
from msadapter_hook.tape.recording import state
from msadapter_hook.tensor import Tensor
from msadapter_hook.tensor.core import DTYPE_OF

from . import dispatch
from .tables import call

_SAME = {  # primitives that an operator computes under this name, elementwise, without attributes
    name: name for name in
    "add sub mul div pow maximum minimum fmax fmin atan2 remainder fmod copysign hypot logaddexp logaddexp2 xlogy neg conj_physical "
    "real imag sgn floor ceil trunc exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan asin acos atan sinh "
    "cosh tanh asinh acosh atanh sigmoid erf erfc erfinv relu logical_and logical_or logical_xor logical_not bitwise_and bitwise_or "
    "bitwise_xor isnan isinf isfinite signbit where lerp masked_fill sinc lgamma i0 matrix_exp".split()}
_SAME |= {"absolute": "abs", "rint": "round", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "equal": "eq",
          "not_equal": "ne", "invert": "bitwise_not", "conj": "conj_physical", "inverse": "linalg.inv", "make_complex": "complex",
          "silu": "nn.functional.silu", "softplus": "nn.functional.softplus", "hardswish": "nn.functional.hardswish",
          "mish": "nn.functional.mish", "log_sigmoid": "nn.functional.logsigmoid", "solve": "linalg.solve",
          "determinant": "linalg.det"}
_NUMBERS = frozenset("add sub mul div pow maximum minimum gt ge lt le eq ne remainder fmod where".split())


def _floor_divide(a, b):
    return call("div", a, b, rounding_mode="floor")


def _sliced(a, start, stop, step):
    for d, (low, high, by, n) in enumerate(zip(start, stop, step, a._size)):
        if (low, by) != (0, 1) or high < n:
            a = dispatch.emit("slice.Tensor", a, d, low, max(low, high), by)
    return a


def _slice_scatter(base, new, start, stop, step, at=0):
    while at < base.ndim and (start[at], step[at]) == (0, 1) and stop[at] >= base._size[at]:
        at += 1
    if at == base.ndim:
        return new
    part = dispatch.emit("slice.Tensor", base, at, start[at], max(start[at], stop[at]), step[at])
    inner = _slice_scatter(part, new, start, stop, step, at + 1)
    return dispatch.emit("slice_scatter", base, inner, at, start[at], max(start[at], stop[at]), step[at])


def _sum_to(a, shape):
    lead = a.ndim - len(shape)
    axes = [*range(lead), *[i + lead for i, n in enumerate(shape) if n == 1 and a._size[i + lead] != 1]]
    if not axes:
        return a
    made = call("sum", a, axes, keepdim=True)
    return made.view(shape) if lead else made


def _index(a, index, axes):
    key = [None] * a.ndim
    for i, axis in zip(index, axes):
        key[axis] = i
    return key


def _reduction(name, **renamed):
    def run(a, axes, keepdims):
        if not a.ndim:
            return call(name, a)
        return call(name, a, list(axes), keepdim=keepdims)

    return run


def _prod(a, axes, keepdims):
    for d in sorted(axes, reverse=True):
        a = call("prod", a, d, keepdim=keepdims)
    return a


def _conv(a, w, *bias, stride, padding, dilation, groups):
    n = len(stride)
    return call("convolution", a, w, bias[0] if bias else None, list(stride), list(padding), list(dilation), False, [0] * n, groups)


def _conv_input(g, w, size, stride, padding, dilation, groups):
    lengths = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in zip(g._size[2:], stride, padding, dilation, w._size[2:])]
    extra = [m - n for m, n in zip(size, lengths)]
    return call("convolution", g, w, None, list(stride), list(padding), list(dilation), True, extra, groups)


def _conv_weight(x, g, kernel, stride, padding, dilation, groups):
    weight = call("empty", (g._size[1], x._size[1] // groups, *kernel), dtype=x._dtype)
    return dispatch.emit("convolution_backward", g, x, weight, None, list(stride), list(padding), list(dilation), False,
                         [0] * len(stride), groups, [False, True, False])[1]


def _max_pool_index(x, kernel, stride, padding, dilation, out):
    """Places of the largest elements; the output size says whether windows may stick out."""
    n = len(kernel)
    plain = [(m + 2 * p - d * (k - 1) - 1) // s + 1 for m, k, s, p, d in zip(x._size[2:], kernel, stride, padding, dilation)]
    return dispatch.emit(f"max_pool{n}d_with_indices", x, list(kernel), list(stride), list(padding), list(dilation),
                         plain != list(out))[1]


def _places_add(g, index, size):
    return g.new_zeros((*g._size[:2], size)).scatter_add(2, index, g)


_OTHERS = {  # f(*tensors, **attributes)
    "cast": lambda a, dtype: a.to(DTYPE_OF[dtype]),
    "floor_divide": _floor_divide,
    "floor_quotient": _floor_divide,
    "trunc_divide": lambda a, b: call("div", a, b, rounding_mode="trunc"),
    "pow_number": lambda a, exponent: call("pow", a, exponent),
    "clamp_range": lambda a, low, high: call("clamp", a, low, high),
    "clamp": lambda a, *limits, has_low, has_high: call("clamp", a, limits[0] if has_low else None, limits[-1] if has_high else None),
    "gelu": lambda a, approximate: call("nn.functional.gelu", a, approximate=approximate),
    "leaky_relu": lambda a, slope: call("nn.functional.leaky_relu", a, slope),
    "softplus_beta": lambda a, beta, threshold: call("nn.functional.softplus", a, beta, threshold),
    "reshape": lambda a, shape: a.reshape(shape),
    "transpose": lambda a, axes: a.permute(axes),
    "broadcast_to": lambda a, shape: a.expand(shape) if tuple(a._size) != tuple(shape) else a,
    "sum_to": _sum_to,
    "strided_slice": _sliced,
    "slice_scatter": _slice_scatter,
    "flip": lambda a, axes: call("flip", a, list(axes)),
    "as_strided": lambda a, size, stride, offset: call("as_strided", a, size, stride, offset),
    "as_strided_scatter": lambda a, b, size, stride, offset: call("as_strided_scatter", a, b, size, stride, offset),
    "copy": lambda a: a.clone(), "detach": lambda a: a.detach(), "graft": lambda old, data: data, "overwrite": lambda old, new: new,
    "beside": lambda kept, *others: kept, "drawn": lambda *arrays: arrays[-1],
    "concat": lambda *a, axis: call("cat", list(a), axis),
    "stack": lambda *a, axis: call("stack", list(a), axis),
    "split": lambda a, axis, sizes: a.split(list(sizes), axis),
    "pad": lambda a, before, after, value: call("nn.functional.pad", a, [n for pair in zip(before[::-1], after[::-1]) for n in pair],
                                                value=value),
    "gather": lambda a, index, axis: dispatch.emit("index.Tensor", a, _index(a, [index], [axis])),
    "index_get": lambda a, *index, axes: dispatch.emit("index.Tensor", a, _index(a, index, axes)),
    "index_add": lambda a, index, source, axis: call(
        "index_put", a, [*[None] * axis, index], source if not axis else source, accumulate=True) if not axis else call(
        "index_add", a, axis, index.reshape(-1), source.reshape((*a._size[:axis], -1, *a._size[axis + 1:]))),
    "index_put": lambda a, new, *index, axes, accumulate: call("index_put", a, _index(a, index, axes), new, accumulate=accumulate),
    "take_along": lambda a, index, axis: call("gather", a, axis, index),
    "put_along": lambda a, index, new, axis: call("scatter", a, axis, index, new),
    "add_along": lambda a, index, new, axis: call("scatter_add", a, axis, index, new),
    "sum": _reduction("sum"), "mean": _reduction("mean"), "amax": _reduction("amax"), "amin": _reduction("amin"),
    "max_of_all": lambda a: call("max", a), "min_of_all": lambda a: call("min", a),
    "logsumexp": _reduction("logsumexp"), "prod": _prod,
    "var": lambda a, axes, keepdims, correction: call("var", a, list(axes), correction=correction, keepdim=keepdims),
    "vector_norm": lambda a, axes, keepdims, p=2, order=None: call(
        "linalg.vector_norm", a, p if order is None else order, list(axes), keepdim=keepdims),
    "cumsum": lambda a, axis: call("cumsum", a, axis), "cumprod": lambda a, axis: call("cumprod", a, axis),
    "softmax": lambda a, axis: call("softmax", a, axis), "log_softmax": lambda a, axis: call("log_softmax", a, axis),
    "matmul": lambda a, b, transpose_b=False: call("matmul", a, b if not transpose_b else b.t() if b.ndim == 2 else b.transpose(-2, -1)),
    "safe_root": lambda a: call("sqrt", a),
    "diagonal": lambda a, offset, axis1, axis2: call("diagonal", a, offset, axis1, axis2),
    "diagonal_scatter": lambda a, b, offset, axis1, axis2: call("diagonal_scatter", a, b, offset, axis1, axis2),
    "tril": lambda a, diagonal: call("tril", a, diagonal), "triu": lambda a, diagonal: call("triu", a, diagonal),
    "roll": lambda a, shifts, axes: call("roll", a, list(shifts), list(axes)),
    "bias_add": lambda a, b: call("add", a, b.reshape((-1,) + (1,) * (a.ndim - 2))),
    "max_pool_index": _max_pool_index, "places_add": _places_add, "places_get": lambda a, index: call("gather", a, 2, index),
    "tied": lambda a, b: a, "threshold": lambda a, limit, value: call("nn.functional.threshold", a, limit, value),
    "hardtanh": lambda a, low, high: call("nn.functional.hardtanh", a, low, high),
    "conv": _conv, "conv_bias": _conv, "conv_input": _conv_input, "conv_weight": _conv_weight,
}


def _tensor(value):
    return value.tensor if value.wrapped else Tensor._make(value)


def _number(value):
    """A zero-dim constant as a Python number, which is what formulas mean by it."""
    return value.numpy.item() if not value.abstract and not value.shape and not value.requires_grad else _tensor(value)


class _Computing:
    """Context: operators compute, and neither gradients nor tangents follow; whoever asked sees to those."""

    def __enter__(self):
        self._before = state.symbolic, state.levels, state.enabled, dispatch.state.disabled
        state.symbolic, state.levels, state.enabled, dispatch.state.disabled = False, (), False, 0

    def __exit__(self, *exc):
        state.symbolic, state.levels, state.enabled, dispatch.state.disabled = self._before


def perform(primitive, values, attributes):
    """The tensors that a primitive makes of the tensors behind `values`, nothing recorded. NotImplementedError where no operator
    is known for it."""
    name = _SAME.get(primitive.name)
    with _Computing():
        if name is not None:
            made = call(name, *[_number(v) if name in _NUMBERS else _tensor(v) for v in values], **attributes)
        elif primitive.name in _OTHERS:
            made = _OTHERS[primitive.name](*[_tensor(v) for v in values], **attributes)
        else:
            raise unsupported(f"the gradient step {primitive.name!r} for tensor subclasses",
                              "compute it on the plain tensors inside, or write an autograd.Function")
    return [made] if isinstance(made, Tensor) else list(made)


def value_behind(tensor):
    """The Value of a tensor, which keeps the tensor where only its class knows its data."""
    with no_grad():
        value = tensor.value
    return value.held() if value.wrapped else value


def full_like(value, number):
    """The Value of a tensor like `value`'s, full of `number`."""
    with _Computing():
        like = value.tensor
        return value_behind(call("zeros_like", like) if not number else call("ones_like", like))


def _adopted(tensor, node, index):
    value = value_behind(tensor)
    if any(v.wrapped and value.wrapped and v.tensor is tensor for v in node.inputs):
        with no_grad():
            tensor = tensor.detach()
    return dispatch.adopt(tensor, node, index)


abstract.tensor_over = Tensor._make
abstract.perform, abstract.value_behind, abstract.full_like, abstract.adopt = perform, value_behind, full_like, _adopted
