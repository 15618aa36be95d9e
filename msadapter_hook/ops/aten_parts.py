"""How PyTorch takes operators apart before `__torch_dispatch__` sees them, and what calls the overloads that have no public name.

`PARTS`: by the name of an operator's schema, a function of its arguments by name that makes it of the others; NotImplemented
where it stands as it is. `NATIVE`: by the name in `torch.ops.aten`, the function of its arguments.
"""

from msadapter_hook import prims
from msadapter_hook.tensor import Tensor, dtypes, geometry
from msadapter_hook.tensor.device import current_device
from msadapter_hook.tensor.geometry import wrap_dim

from .dispatch import emit
from .methods import convert, item
from .tables import METHODS, OPERATORS, PARTS, call
from .views import sliced

NATIVE = {}
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def part(*names):
    """Declare what the operators of these names are made of."""

    def declare(function):
        PARTS.update(dict.fromkeys(names, function))
        return function

    return declare


def overload(name):
    """Declare what calls an overload of `torch.ops.aten`."""

    def declare(function):
        NATIVE[name] = function
        return function

    return declare


def native_of(name):
    """The function behind a name of `torch.ops.aten`; None where there is none."""
    found = NATIVE.get(name)
    if found is not None:
        return found
    for prefix, instead in (("", ""), ("linalg.", "linalg_"), ("special.", "special_"), ("fft.", "fft_"), ("nn.functional.", "")):
        if name.startswith(instead) and prefix + name[len(instead):] in OPERATORS:
            entry = OPERATORS[prefix + name[len(instead):]]
            if entry.overloads or name not in METHODS:
                return entry.function
    return METHODS.get(name) or getattr(Tensor, name, None)


# ------------------------------------------------------------------------------------------------ shapes
@part("reshape")
def _reshape(self, shape):
    size = geometry.infer_size(shape, self.numel())
    if geometry.view_stride(self._size, self._stride, size) is not None:
        return self.view(size)
    return emit("_unsafe_view", self.clone(memory_format=dtypes.contiguous_format), list(size))


def _slice(self, dim, start, stop, step=1):
    rest = [] if step == 1 else [step]
    return emit("slice.Tensor", self, dim, start, stop, *rest)


@part("narrow")
def _narrow(self, dim, start, length):
    start = int(start)
    d = wrap_dim(dim, self.ndim)
    return _slice(self, dim, start + self._size[d] if start < 0 else start, (start + self._size[d] if start < 0 else start) + length)


@part("expand_as")
def _expand_as(self, other):
    return self.expand(other._size)


@part("broadcast_to")
def _broadcast_to(self, size):
    return self.expand(size)


@part("chunk")
def _chunk(self, chunks, dim=0, **rest):
    n = self._size[wrap_dim(dim, self.ndim)]
    size = max(-(-n // chunks), 1)
    return tuple(emit("split.Tensor", self, size, *([dim] if dim else [])))


@part("split")
def _split(*, dim=0, **given):
    x, size = given.values()
    if isinstance(size, int):
        return tuple(emit("split.Tensor", x, size, *([dim] if dim else [])))
    return tuple(emit("split_with_sizes", x, list(size), *([dim] if dim else [])))


@part("unbind")
def _unbind(self, dim=0):
    return tuple(emit("unbind.int", self, *([dim] if dim else [])))


@overload("_unsafe_view")
def _unsafe_view(self, size):
    return self.view(size)


@overload("slice")
def _sliced(self, dim=0, start=None, end=None, step=1):
    d = wrap_dim(dim, self.ndim)
    low, high, _ = slice(start, end, step).indices(self._size[d])
    return sliced(self, d, low, max(high, low), step)


@overload("alias")
def _alias(self):
    return self.view(self._size)


@overload("lift_fresh")
def _lift_fresh(self):
    return self


@overload("split_with_sizes")
def _split_with_sizes(self, split_sizes, dim=0):
    return self.split(split_sizes, dim)


@overload("squeeze_copy")
def _squeeze_copy(self, *dim):
    return self.squeeze(*dim).clone()


# ------------------------------------------------------------------------------------------------ products
@part("matmul", "linalg.matmul")
def _matmul(self, other):
    a, b = self.ndim, other.ndim
    if a == 1 and b == 1:
        return self.dot(other)
    if a == 2 and b == 1:
        return self.mv(other)
    if a == 1 and b == 2:
        return self.unsqueeze(0).mm(other).squeeze(0)
    if a == 2 and b == 2:
        return self.mm(other)
    if a >= 3 and b in (1, 2):
        rows = self.reshape((-1, self._size[-1]))
        if b == 1:
            return emit("_unsafe_view", rows.mv(other), list(self._size[:-1]))
        return emit("_unsafe_view", rows.mm(other), [*self._size[:-1], other._size[-1]])
    if a < 2 or b < 2:
        return NotImplemented
    batch = geometry.broadcast_shapes(self._size[:-2], other._size[:-2])
    left = self.expand((*batch, *self._size[-2:])).reshape((-1, *self._size[-2:]))
    right = other.expand((*batch, *other._size[-2:])).reshape((-1, *other._size[-2:]))
    return emit("_unsafe_view", left.bmm(right), [*batch, self._size[-2], other._size[-1]])


@part("nn.functional.linear")
def _linear(input, weight, bias=None):
    if weight.ndim != 2 or input.ndim < 2:
        return NotImplemented if weight.ndim != 2 else call("matmul", input, weight.t()) + bias if bias is not None else (
            call("matmul", input, weight.t()))
    if bias is None:
        return call("matmul", input, weight.t())
    if input.ndim == 2:
        return call("addmm", bias, input, weight.t())
    rows = input.reshape((-1, input._size[-1]))
    return call("addmm", bias, rows, weight.t()).view((*input._size[:-1], weight._size[0]))


@part("outer", "ger")
def _outer(self, **other):
    return self.reshape((self._size[0], 1)) * next(iter(other.values()))


# ------------------------------------------------------------------------------------------------ softmax and losses
def _soft(name):
    def made(dim=None, dtype=None, _stacklevel=3, self=None, input=None):
        x = input if self is None else self
        if dim is None:
            return NotImplemented
        if dtype is not None and dtype is not x._dtype:
            x = x.to(dtype)
        return emit(name, x, dim, False)

    return made


part("softmax", "special.softmax", "nn.functional.softmax")(_soft("_softmax"))
part("log_softmax", "special.log_softmax", "nn.functional.log_softmax")(_soft("_log_softmax"))


@overload("_softmax")
def _native_softmax(self, dim, half_to_float):
    return call("softmax", self, dim)


@overload("_log_softmax")
def _native_log_softmax(self, dim, half_to_float):
    return call("log_softmax", self, dim)


@part("nn.functional.cross_entropy")
def _cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    if label_smoothing or target._dtype.is_floating_point or size_average is not None or reduce is not None:
        return NotImplemented
    return call("nn.functional.nll_loss", call("log_softmax", input, 1 if input.ndim > 1 else 0), target, weight,
                ignore_index=ignore_index, reduction=reduction)


@part("nn.functional.nll_loss")
def _nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    if size_average is not None or reduce is not None or input.ndim not in (1, 2, 4):
        return NotImplemented
    name = "nll_loss2d_forward" if input.ndim == 4 else "nll_loss_forward"
    return emit(name, input, target, weight, _REDUCTIONS[reduction], ignore_index)[0]


def _nll_forward(self, target, weight, reduction, ignore_index):
    words = ("none", "mean", "sum")
    loss = call("nn.functional.nll_loss", self, target, weight, ignore_index=ignore_index, reduction=words[reduction])
    kept = target != ignore_index
    total = kept.sum().to(self._dtype) if weight is None else (weight[target * kept] * kept).sum()
    return loss, total if reduction else call("zeros", (), dtype=self._dtype)


overload("nll_loss_forward")(_nll_forward)
overload("nll_loss2d_forward")(_nll_forward)


@part("nn.functional.l1_loss")
def _l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    if size_average is not None or reduce is not None or weight is not None:
        return NotImplemented
    made = (input - target).abs()
    return made.mean() if reduction == "mean" else made.sum() if reduction == "sum" else made


def _loss(name):
    """A loss that stands as it is, its reduction as a number."""

    def made(input, target, reduction="mean", **rest):
        if any(v is not None for k, v in rest.items() if k in ("size_average", "reduce", "weight", "pos_weight")):
            return NotImplemented
        numbers = [rest[k] for k in ("beta", "delta") if rest.get(k, 1.0) != 1.0]
        more = [_REDUCTIONS[reduction], *numbers] if reduction != "mean" or numbers else []
        return emit(name, input, target, *([None] * (name in _WEIGHTED) * bool(more)), *([None] * (
            name == "binary_cross_entropy_with_logits") * bool(more)), *more)

    def native(self, target, *rest, reduction=1):
        weights, rest = (rest[:2] if name.endswith("logits") else rest[:1], rest[2 if name.endswith("logits") else 1:]) if (
            name in _WEIGHTED) else ((), rest)
        reduction = rest[0] if rest else reduction
        keywords = dict(zip(("weight", "pos_weight"), weights))
        if len(rest) > 1:
            keywords["beta" if name == "smooth_l1_loss" else "delta"] = rest[1]
        return call("nn.functional." + name, self, target, reduction=("none", "mean", "sum")[reduction], **keywords)

    part("nn.functional." + name)(made)
    overload(name)(native)


_WEIGHTED = frozenset(["binary_cross_entropy", "binary_cross_entropy_with_logits"])
for _name in ("mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "soft_margin_loss"):
    _loss(_name)


# ------------------------------------------------------------------------------------------------ convolution and pooling
def _numbers(x, n):
    return [x] * n if isinstance(x, int) else list(x) * (n if len(x) == 1 else 1)


def _conv(n, transposed):
    def made(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        if isinstance(padding, str) or input.ndim != n + 2:
            return NotImplemented
        return emit("convolution", input, weight, bias, _numbers(stride, n), _numbers(padding, n), _numbers(dilation, n), transposed,
                    _numbers(output_padding, n), groups)

    part(f"nn.functional.conv{'_transpose' if transposed else ''}{n}d")(made)


for _n in (1, 2, 3):
    _conv(_n, False)
    _conv(_n, True)


def _max_pool(n, x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    more = [_numbers(kernel_size, n), [] if stride is None else _numbers(stride, n), _numbers(padding, n), _numbers(dilation, n), ceil_mode]
    plain = [None, [], [0] * n, [1] * n, False]
    while len(more) > 1 and more[-1] == plain[len(more) - 1]:
        more.pop()
    return emit(f"max_pool{n}d_with_indices", x, *more)


def _native_max_pool(n):
    def native(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
        return call(f"nn.functional.max_pool{n}d_with_indices", self, kernel_size, stride or None, padding, dilation, ceil_mode)

    return native


def _pools(n):
    part(f"_max_pool{n}d")(lambda self, **options: _max_pool(n, self, **options)[0])
    part(f"_max_pool{n}d_with_indices")(lambda self, **options: tuple(_max_pool(n, self, **options)))
    overload(f"max_pool{n}d_with_indices")(_native_max_pool(n))


_pools(2)
_pools(3)


@part("nn.functional.adaptive_avg_pool2d")
def _adaptive_avg_pool2d(input, output_size):
    size = _numbers(output_size, 2)
    if size == [1, 1]:
        return input.mean((-1, -2), keepdim=True)
    return emit("_adaptive_avg_pool2d", input, [n if s is None else s for s, n in zip(size, input._size[-2:])])


# ------------------------------------------------------------------------------------------------ normalization
@part("nn.functional.layer_norm")
def _layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    return emit("native_layer_norm", input, list(normalized_shape), weight, bias, eps)[0]


@part("nn.functional.group_norm", "group_norm")
def _group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    n, c = input._size[:2]
    return emit("native_group_norm", input, weight, bias, n, c, geometry.numel(input._size[2:]), num_groups, eps)[0]


@part("nn.functional.batch_norm")
def _batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    emit("empty.memory_format", [0], dtype=dtypes.uint8, layout=dtypes.strided, device=current_device())
    return emit("native_batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@part("nn.functional.rms_norm", "rms_norm")
def _rms_norm(input, normalized_shape, weight=None, eps=None):
    dims = list(range(input.ndim - len(normalized_shape), input.ndim))
    eps = dtypes.finfo(input._dtype).eps if eps is None else eps
    made = input * emit("add_.Scalar", input.pow(2).mean(dims, keepdim=True), eps).rsqrt()
    return made if weight is None else made * weight


@part("true_divide")
def _true_divide(self, other):
    return call("div", self, other)


@part("linalg.norm")
def _linalg_norm(self=None, A=None, ord=None, dim=None, keepdim=False, dtype=None):
    x = A if self is None else self
    if isinstance(ord, str) or dtype is not None or ord is not None and (x.ndim if dim is None else len(dim)) == 2:
        return NotImplemented
    more = [dim, keepdim] if keepdim else [dim] if dim is not None else []
    return emit("linalg_vector_norm", x, 2.0 if ord is None else ord, *[list(m) if isinstance(m, tuple) else m for m in more])


@part("norm")
def _norm(self, p="fro", dim=None, keepdim=False, dtype=None):
    if isinstance(p, str) and p != "fro" or dtype is not None:
        return NotImplemented
    numbers = [2 if p == "fro" or p is None else p]
    if dim is not None:
        numbers += [[dim] if isinstance(dim, int) else list(dim)] + [True] * keepdim
    elif numbers == [2]:
        numbers = []
    return emit("linalg_vector_norm", self, *numbers)


@part("nn.functional.cosine_similarity", "cosine_similarity")
def _cosine_similarity(x1, x2, dim=1, eps=1e-8):
    lengths = []
    for x in (x1, x2):
        lengths.append(emit("linalg_vector_norm", x, 2, [dim], True).clone())
    least = emit("scalar_tensor", eps, dtype=lengths[0]._dtype, device=current_device())
    a, b = [x / emit("clamp_min_.Tensor", n, least) for x, n in zip((x1, x2), lengths)]
    return (a * b).sum(dim)


@part("nn.functional.prelu", "prelu")
def _prelu(weight, self=None, input=None):
    x = input if self is None else self
    shape = (1, -1) + (1,) * (x.ndim - 2) if x.ndim > 1 else (-1,)
    return emit("_prelu_kernel", x, weight.view(tuple(weight.numel() if n == -1 else n for n in shape)))


@overload("_prelu_kernel")
def _prelu_kernel(self, weight):
    return call("where", self > 0, self, weight * self)


@part("nn.functional.scaled_dot_product_attention")
def _attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if query.ndim != 4 or dropout_p or enable_gqa or attn_mask is not None and attn_mask.requires_grad:
        return NotImplemented
    options = {} if attn_mask is None else {"attn_mask": attn_mask}
    if scale is not None:
        options["scale"] = scale
    return emit("_scaled_dot_product_flash_attention_for_cpu", query, key, value, *([0.0, True] if is_causal else []), **options)[0]


@overload("_scaled_dot_product_flash_attention_for_cpu")
def _flash_attention(query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    made = call("nn.functional.scaled_dot_product_attention", query, key, value, attn_mask, dropout_p, is_causal, scale=scale)
    weights = query.matmul(key.transpose(-2, -1)) * (query._size[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        weights = weights.masked_fill(call("ones_like", weights, dtype=dtypes.bool_).tril().logical_not(), float("-inf"))
    if attn_mask is not None:
        weights = weights.masked_fill(attn_mask.logical_not(), float("-inf")) if attn_mask._dtype is dtypes.bool_ else weights + attn_mask
    return made, weights.logsumexp(-1)


def _upsampling(name, mode):
    n = int(name.rstrip("d")[-1])

    def native(input, output_size, *rest):
        align = bool(rest[0]) if mode not in ("nearest",) and rest else False
        scales = rest[len(rest) - n:] if len(rest) >= n else (None,) * n
        return call("_interpolate", input, tuple(output_size), mode, tuple(scales), align, False)

    overload(name)(native)


for _name, _mode in {"upsample_nearest1d": "nearest", "upsample_nearest2d": "nearest", "upsample_nearest3d": "nearest",
                     "upsample_linear1d": "linear", "upsample_bilinear2d": "bilinear", "upsample_trilinear3d": "trilinear",
                     "upsample_bicubic2d": "bicubic"}.items():
    _upsampling(_name, _mode)


@part("_interpolate")
def _interpolate(self, size, mode, factors, align, antialias):
    n = len(size)
    name = f"upsample_{mode}{n}d"
    if antialias or name not in NATIVE:
        return NotImplemented
    scales = [None if f is None else float(f) for f in factors]
    while scales and scales[-1] is None:
        scales.pop()
    return emit(name, self, list(size), *([] if mode == "nearest" else [align]), *scales)


@part("_einsum")
def _einsum(equation, operands):
    """Two operands as a product of matrices in batches; None of the letters repeats within one."""
    left, arrow, out = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != 2 or len(operands) != 2 or "." in equation or any(len(set(t)) != len(t) for t in terms):
        return NotImplemented
    a, b = operands
    if not arrow:
        out = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
    x, y = terms
    x_only = [c for c in x if c not in y and c not in out]
    y_only = [c for c in y if c not in x and c not in out]
    if x_only:
        a, x = a.sum([x.index(c) for c in x_only]), "".join(c for c in x if c not in x_only)
    if y_only:
        b, y = b.sum([y.index(c) for c in y_only]), "".join(c for c in y if c not in y_only)
    batch = [c for c in out if c in x and c in y]
    rows, columns = [c for c in out if c in x and c not in y], [c for c in out if c in y and c not in x]
    inner = [c for c in x if c in y and c not in out]
    size = {**dict(zip(x, a._size)), **dict(zip(y, b._size))}

    def count(letters):
        return geometry.numel([size[c] for c in letters])

    a = a.permute([x.index(c) for c in batch + rows + inner]).reshape((count(batch), count(rows), count(inner)))
    b = b.permute([y.index(c) for c in batch + inner + columns]).reshape((count(batch), count(inner), count(columns)))
    made = a.bmm(b).view(tuple(size[c] for c in batch + rows + columns))
    return made.permute([(batch + rows + columns).index(c) for c in out])


@part("nn.functional.normalize")
def _normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    return input / call("linalg.vector_norm", input, p, dim, keepdim=True).clamp_min(eps).expand(input._size)


# ------------------------------------------------------------------------------------------------ choosing and conversion
@part("where")
def _where(condition, input=None, other=None, self=None):
    x = self if input is None else input
    if isinstance(x, Tensor) and isinstance(other, Tensor):
        return NotImplemented
    if not isinstance(x, Tensor) and not isinstance(other, Tensor):
        return NotImplemented
    like, number = (x, other) if isinstance(x, Tensor) else (other, x)
    own = dtypes.scalar_dtype(number)
    made = emit("scalar_tensor", number, dtype=like._dtype if like._dtype.is_floating_point and not own.is_complex else own,
                layout=dtypes.strided, device=current_device())
    return call("where", condition, *((x, made) if isinstance(x, Tensor) else (made, other)))


@part("isclose")
def _isclose(self, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    close = self == other
    if equal_nan and self._dtype.is_floating_point:
        close = close.logical_or(self.isnan() & other.isnan())
    if not rtol and not atol:
        return close
    error = (self - other).abs()
    return close.logical_or(error.isfinite() & (error <= (other * rtol).abs() + atol))


@part("allclose")
def _allclose(self, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    if not (self._dispatches or other._dispatches):
        return NotImplemented
    return bool(call("isclose", self, other, rtol, atol, equal_nan).all().item())


@part("nn.functional.dropout", "dropout")
def _dropout(p=0.5, training=True, inplace=False, self=None, input=None, train=None):
    x = input if self is None else self
    training = training if train is None else train
    if not training or p == 0 or inplace or not 0 < p < 1:
        return NotImplemented if inplace or training and p else x
    return x * emit("div_.Scalar", emit("empty_like", x).bernoulli_(1 - p), 1 - p)


@overload("_to_copy")
def _to_copy(self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    return convert(self, dtype, device, True, memory_format)


@overload("_local_scalar_dense")
def _local_scalar_dense(self):
    return item(self)


@overload("index")
def _index(self, indices):
    return self[tuple([slice(None) if i is None else i for i in indices])]


@overload("index_put_")
def _index_put_(self, indices, values, accumulate=False):
    return METHODS["index_put_"](self, tuple(indices), values, accumulate)


@overload("_index_put_impl_")
def _index_put_impl_(self, indices, values, accumulate=False, unsafe=False):
    return METHODS["index_put_"](self, tuple(indices), values, accumulate)


@overload("constant_pad_nd")
def _constant_pad_nd(self, pad, value=0):
    return call("nn.functional.pad", self, tuple(pad), value=value)


@part("nn.functional.pad")
def _pad(pad, mode="constant", value=None, self=None, input=None):
    if mode != "constant":
        return NotImplemented
    return emit("constant_pad_nd", input if self is None else self, list(pad), 0.0 if value is None else value)


@overload("threshold_backward")
def _threshold_backward(grad_output, self, threshold):
    return call("where", self > threshold, grad_output, 0)


@overload("view")
def _view(self, *args, **kwargs):
    return METHODS["view"](self, *args, **kwargs)



@overload("convolution_backward")
def _convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
                          output_mask):
    n = input.ndim - 2
    how = {"stride": tuple(_numbers(stride, n)), "padding": tuple(_numbers(padding, n)), "dilation": tuple(_numbers(dilation, n)),
           "groups": groups}
    g, x, w, kernel = grad_output.value, input.value, weight.value, tuple(weight._size[2:])
    made = [None, None, None]
    if output_mask[0]:
        made[0] = Tensor._make(prims.conv(g, w, **how) if transposed else prims.conv_input(g, w, size=tuple(input._size[2:]), **how))
    if output_mask[1]:
        given = (g, x) if transposed else (x, g)
        made[1] = Tensor._make(prims.conv_weight(*given, kernel=kernel, **how))
    if output_mask[2]:
        made[2] = grad_output.sum([d for d in range(grad_output.ndim) if d != 1])
    return tuple(made)
