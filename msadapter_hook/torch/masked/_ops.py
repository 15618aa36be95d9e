"""The operators of torch.masked: hidden elements are replaced by the operator's identity, then the plain operator runs."""

from importlib import import_module

from ..nn import functional as F
from ._sparse import any_layout

torch = import_module("..", __package__)  # the root that this tree is served under

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]


# ------------------------------------------------------------------------------------------------ masks and dimensions
def _spread_mask(input, mask):
    """The mask as bool in the size of the input."""
    if mask.dim() > input.dim():
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    mask = mask if mask.dtype is torch.bool else mask != 0
    return mask if mask.shape == input.shape else torch.broadcast_to(mask, input.shape)


def _shown(input, mask, identity):
    """The input with the identity where the mask hides it."""
    return input if mask is None else torch.where(_spread_mask(input, mask), input, identity)


def _dims(dim, ndim):
    """The dimensions as a tuple of non-negative numbers."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    found = []
    for d in (dim,) if isinstance(dim, int) else dim:
        limit = max(ndim, 1)
        if not -limit <= d < limit:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {d})")
        found.append(d % limit)
        if found.count(found[-1]) > 1:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
    return tuple(found)


def _one(dim, ndim):
    return _dims(dim, ndim)[0]


def _whole_dtype(input, dtype):
    """The dtype of sums and products: integers as int64."""
    if dtype is not None:
        return dtype
    return input.dtype if input.dtype.is_floating_point or input.dtype.is_complex else torch.int64


def _lowest(dtype):
    return (
        -float("inf") if dtype.is_floating_point or dtype.is_complex else False if dtype is torch.bool else torch.iinfo(dtype).min
    )


def _highest(dtype):
    return float("inf") if dtype.is_floating_point or dtype.is_complex else True if dtype is torch.bool else torch.iinfo(dtype).max


# ------------------------------------------------------------------------------------------------ sums and products
def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Sum of what the mask shows. Source: PyTorch, torch.masked.sum."""
    dtype = _whole_dtype(input, dtype)
    shown = _shown(input, mask, 0)
    if not input.dim():
        return shown.to(dtype)
    return torch.sum(shown, _dims(dim, input.dim()), bool(keepdim), dtype=dtype)


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Product of what the mask shows. Source: PyTorch, torch.masked.prod."""
    dtype = _whole_dtype(input, dtype)
    result = _shown(input, mask, 1).to(dtype)
    for d in sorted(_dims(dim, input.dim()), reverse=True):
        result = result.prod(d, keepdim=bool(keepdim))
    return result


def cumsum(input, dim, *, dtype=None, mask=None):
    """Running sum of what the mask shows. Source: PyTorch, torch.masked.cumsum."""
    dtype = _whole_dtype(input, dtype)
    return torch.cumsum(_shown(input, mask, 0), _one(dim, input.dim()), dtype=dtype)


def cumprod(input, dim, *, dtype=None, mask=None):
    """Running product of what the mask shows. Source: PyTorch, torch.masked.cumprod."""
    dtype = _whole_dtype(input, dtype)
    return torch.cumprod(_shown(input, mask, 1), _one(dim, input.dim()), dtype=dtype)


# ------------------------------------------------------------------------------------------------ extremes
def _extreme(reduce, identity):
    def run(input, dim=None, *, keepdim=False, dtype=None, mask=None):
        shown = _shown(input, mask, identity(input.dtype))
        return reduce(shown, _dims(dim, input.dim()), bool(keepdim)).to(dtype or input.dtype)

    return run


def _position(reduce, identity):
    def run(input, dim=None, *, keepdim=False, dtype=None, mask=None):
        shown = _shown(input, mask, identity(input.dtype))
        dim = None if dim is None else _one(dim, input.dim())
        return reduce(shown, dim, bool(keepdim)).to(dtype or input.dtype)

    return run


def _named(function, name, what):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{what} of what the mask shows. Source: PyTorch, torch.masked.{name}."
    return function


amax = _named(_extreme(torch.amax, _lowest), "amax", "The maximum")
amin = _named(_extreme(torch.amin, _highest), "amin", "The minimum")
argmax = _named(_position(torch.argmax, _lowest), "argmax", "The place of the maximum")
argmin = _named(_position(torch.argmin, _highest), "argmin", "The place of the minimum")


# ------------------------------------------------------------------------------------------------ averages
def _count(input, dims, keepdim, mask, dtype):
    """How many elements each reduction sees."""
    seen = torch.ones(input.shape, dtype=dtype) if mask is None else _spread_mask(input, mask).to(dtype)
    return torch.sum(seen, dims, bool(keepdim), dtype=dtype) if input.dim() else seen


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Mean of what the mask shows; NaN where it shows nothing. Source: PyTorch, torch.masked.mean."""
    given = "Input" if dtype is None else "Optional"
    dtype = dtype or input.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {given} dtype must be either a floating point or complex dtype. Got: {dtype}"
        )
    dims = _dims(dim, input.dim())
    if mask is None:
        return input.mean(dims, keepdim=bool(keepdim), dtype=dtype)
    count = _count(input, dims, keepdim, mask, dtype)
    return sum(input, dims, keepdim=keepdim, dtype=dtype, mask=mask) / count


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """Median of what the mask shows. Source: PyTorch, torch.masked.median."""
    dtype = dtype or input.dtype
    axis = _one(dim, input.dim())
    real = input.dtype.is_floating_point
    shown = _shown(input if real else input.to(torch.float32), mask, float("nan"))
    found = torch.nanmedian(shown, axis, bool(keepdim)).values
    if real:
        return found
    if torch.isnan(found).any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return found.to(dtype)


def _spread(input, dim, unbiased, keepdim, dtype, mask, root, correction=None):
    if correction is None:
        correction = 0 if unbiased is False else 1
    if dtype is None:
        dtype = input.dtype if input.dtype.is_floating_point or input.dtype.is_complex else torch.float32
    work = dtype if dtype.is_floating_point or dtype.is_complex else torch.float32
    dims = _dims(dim, input.dim())
    real = work.to_real() if work.is_complex else work
    count = _count(input, dims, True, mask, real)
    center = sum(input, dims, keepdim=True, dtype=work, mask=mask) / count
    offset = input.to(work) - center
    square = (offset * offset.conj()).real if work.is_complex else offset * offset
    total = sum(square, dims, keepdim=keepdim, dtype=real, mask=mask)
    if not keepdim:
        count = count.reshape(total.shape)
    if correction:
        count = torch.maximum(count - correction, torch.zeros((), dtype=count.dtype))
    made = total / count
    return (made.sqrt() if root else made).to(dtype)


def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Variance of what the mask shows. Source: PyTorch, torch.masked.var."""
    return _spread(input, dim, unbiased, keepdim, dtype, mask, False, correction)


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Standard deviation of what the mask shows. Source: PyTorch, torch.masked.std."""
    return _spread(input, dim, unbiased, keepdim, dtype, mask, True, correction)


# ------------------------------------------------------------------------------------------------ norms and logarithms
def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Vector norm of what the mask shows. Source: PyTorch, torch.masked.norm."""
    from ..linalg import vector_norm

    identity = float("inf") if ord < 0 else 0
    dims = _dims(dim, input.dim())
    return vector_norm(_shown(input, mask, identity), ord, dims, bool(keepdim), dtype=dtype)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """What the mask shows over its norm; zero elsewhere. Source: PyTorch, torch.masked.normalize."""
    if dtype is None:
        dtype = input.dtype
    length = norm(input, ord, _one(dim, input.dim()), keepdim=True, dtype=dtype, mask=mask)
    least = torch.zeros((), dtype=length.dtype) + eps
    return _shown(input, mask, 0) / torch.maximum(length, least)


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """log(sum(exp(x))) of what the mask shows. Source: PyTorch, torch.masked.logsumexp."""
    dtype = dtype or input.dtype
    shown = _shown(input, mask, _lowest(input.dtype))
    return torch.logsumexp(shown, _dims(dim, input.dim()), bool(keepdim)).to(dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(exp(input) + exp(other)), what a mask hides counting as -inf. Source: PyTorch, torch.masked.logaddexp."""
    dtype = dtype or input.dtype
    lowest = _lowest(dtype)
    return torch.logaddexp(_shown(input, input_mask, lowest), _shown(other, other_mask, lowest)).to(dtype)


# ------------------------------------------------------------------------------------------------ softmax and its kin
def softmax(input, dim, *, dtype=None, mask=None):
    """Softmax over what the mask shows. Source: PyTorch, torch.masked.softmax."""
    return F.softmax(_shown(input, mask, _lowest(input.dtype)), _one(dim, input.dim()), dtype=dtype or input.dtype)


def log_softmax(input, dim, *, dtype=None, mask=None):
    """Log-softmax over what the mask shows. Source: PyTorch, torch.masked.log_softmax."""
    return F.log_softmax(_shown(input, mask, _lowest(input.dtype)), _one(dim, input.dim()), dtype=dtype or input.dtype)


def softmin(input, dim, *, dtype=None, mask=None):
    """Softmin over what the mask shows. Source: PyTorch, torch.masked.softmin."""
    return F.softmin(_shown(input, mask, _highest(input.dtype)), _one(dim, input.dim()), dtype=dtype or input.dtype)


# ------------------------------------------------------------------------------------------------ masks of results
_SAME_SIZE = ("cumsum", "cumprod", "softmax", "log_softmax", "softmin", "normalize")
_REDUCTIONS = ("sum", "prod", "amax", "amin", "argmax", "argmin", "mean", "median", "norm", "var", "std", "logsumexp")


def _is(op, names):
    """Whether `op` is the function of this module of one of these names."""
    name = getattr(op, "__name__", None)
    return name in names and globals()[name] is op


def _canonical_dim(dim, ndim):
    """The dimensions as a tuple of non-negative numbers; None and () are all of them."""
    return _dims(tuple(dim) if isinstance(dim, list) else dim, ndim)


def _input_mask(input, *args, **kwargs):
    """The mask of a call, as bool in the size of the input. ValueError without one."""
    mask = kwargs.get("mask")
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    return _spread_mask(input, mask)


def _output_mask(op, input, *args, **kwargs):
    """Where the result of `op`, one of the functions of torch.masked, depends on an element that the mask shows."""
    if _is(op, _SAME_SIZE):
        return _input_mask(input, *args, **kwargs)
    if not _is(op, _REDUCTIONS):
        raise ValueError(f"_output_mask expected masked operation (got {getattr(op, '__name__', op)!r})")
    place = 1 if op.__name__ == "norm" else 0  # of `dim` after the input
    dim = args[place] if len(args) > place else kwargs.get("dim")
    shown = _input_mask(input, *args, **kwargs)
    dims = _canonical_dim(dim, input.dim())
    keepdim = bool(kwargs.get("keepdim", False))
    for d in sorted(dims, reverse=True) if input.dim() else ():
        shown = shown.any(d, keepdim)
    return shown


# ------------------------------------------------------------------------------------------------ identities, sparse layouts
def _reduction_identity(op_name, input, *args):
    """The element that leaves a reduction as it is, as a zero-dim tensor; None where there is none.

    Source: PyTorch, torch.masked._reduction_identity. NotImplementedError for an unknown operator.
    """
    name = op_name.rsplit(".", 1)[-1]
    dtype = input.dtype
    if name in ("mean", "median", "std", "var"):
        return None if name == "mean" or not dtype.is_floating_point or name != "median" else torch.tensor(float("nan"), dtype=dtype)
    if name == "norm":
        order = args[0] if args else 2
        return torch.tensor(float("inf") if order == -float("inf") else 0, dtype=dtype)
    known = {"sum": 0, "cumsum": 0, "prod": 1, "cumprod": 1}
    if name in known:
        return torch.tensor(known[name], dtype=dtype)
    if name in ("amax", "argmax", "logaddexp", "logsumexp"):
        return torch.tensor(_lowest(dtype), dtype=dtype)
    if name in ("amin", "argmin"):
        return torch.tensor(_highest(dtype), dtype=dtype)
    raise NotImplementedError(f"identity of {op_name} on {dtype} input")


for _name in _SAME_SIZE + _REDUCTIONS:
    globals()[_name] = any_layout(globals()[_name], _output_mask)
