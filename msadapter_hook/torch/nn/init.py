# Initial values of parameters, drawn in PyTorch's order and kind so that equal seeds give equal weights.
import contextlib
import functools
import math
import threading
import warnings

from .. import empty_like, eye, no_grad, randperm, where
from .. import linalg as _linalg

__all__ = [
    "calculate_gain", "uniform_", "normal_", "trunc_normal_", "constant_", "ones_", "zeros_", "eye_", "dirac_",
    "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "orthogonal_", "sparse_", "uniform",
    "normal", "constant", "eye", "dirac", "xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal",
    "orthogonal", "sparse",
]  # fmt: skip

_torch_eye = eye

_GAINS = {
    **dict.fromkeys(
        ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid"),
        1,
    ),
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


# Set while a module is built whose values nobody wants (utils.skip_init): then nothing is drawn.
_nothing = threading.local()


@contextlib.contextmanager
def _without_drawing():
    before = getattr(_nothing, "drawn", False)
    _nothing.drawn = True
    try:
        yield
    finally:
        _nothing.drawn = before


def _no_grad_uniform_(tensor, a, b, generator=None):
    if getattr(_nothing, "drawn", False):
        return tensor
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(tensor, mean, std, generator=None):
    if getattr(_nothing, "drawn", False):
        return tensor
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_trunc_normal_(tensor, mean, std, a, b, generator=None):
    def below(x):
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    if tensor.device.type == "meta" or getattr(_nothing, "drawn", False):
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=3,
        )
    with no_grad():
        if below((b - mean) / std) - below((a - mean) / std) > 0.3:
            _redraw_normal(tensor, mean, std, a, b, generator)
        else:
            _reject_uniform(tensor, mean, std, a, b, generator)
    return tensor


def _redraw_normal(tensor, mean, std, a, b, generator):
    # Most draws fall inside: draw whole tensors and take the new values where the old ones lie outside.
    low, high = (tensor.new_tensor(bound, device="cpu").item() for bound in (a, b))
    values = tensor.normal_(mean, std, generator=generator)
    while True:
        outside = (values < low) | (values > high)
        if not outside.any():
            break
        values = where(outside, empty_like(values).normal_(mean, std, generator=generator), values)
    if values is not tensor:
        tensor.copy_(values)


def _reject_uniform(tensor, mean, std, a, b, generator):
    # Few normals would fall inside: draw uniform candidates and accept each with the density relative to its peak.
    log_peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    values = pending = None
    while pending is None or pending.any():
        candidates = empty_like(tensor).uniform_(a, b, generator=generator)
        values = candidates if pending is None else where(pending, candidates, values)
        log_density = ((candidates - mean) / std).pow(2).mul(-0.5).sub(log_peak)
        rejected = empty_like(tensor).uniform_(generator=generator).log().gt(log_density)
        pending = rejected if pending is None else pending & rejected
    tensor.copy_(values)


def _no_grad_fill_(tensor, val):
    with no_grad():
        return tensor.fill_(val)


def _no_grad_zero_(tensor):
    with no_grad():
        return tensor.zero_()


def calculate_gain(nonlinearity, param=None):
    """Recommended factor on the standard deviation before `nonlinearity`; `param` is the slope of leaky_relu.

    ValueError for an unknown name or a slope that is no number. Source: PyTorch, torch.nn.init.calculate_gain.
    """
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    if param is None:
        slope = 0.01
    elif not isinstance(param, bool) and isinstance(param, (int, float)):
        slope = param
    else:
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + slope**2))


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Fill with draws from U(a, b). Source: PyTorch, torch.nn.init.uniform_."""
    return _no_grad_uniform_(tensor, a, b, generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Fill with draws from N(mean, std²). Source: PyTorch, torch.nn.init.normal_."""
    return _no_grad_normal_(tensor, mean, std, generator)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Fill with draws from N(mean, std²) cut to [a, b]. Source: PyTorch, torch.nn.init.trunc_normal_."""
    return _no_grad_trunc_normal_(tensor, mean, std, a, b, generator=generator)


def constant_(tensor, val):
    """Fill with `val`. Source: PyTorch, torch.nn.init.constant_."""
    return _no_grad_fill_(tensor, val)


def ones_(tensor):
    """Fill with one. Source: PyTorch, torch.nn.init.ones_."""
    return _no_grad_fill_(tensor, 1.0)


def zeros_(tensor):
    """Fill with zero. Source: PyTorch, torch.nn.init.zeros_."""
    return _no_grad_zero_(tensor)


def eye_(tensor):
    """Make a matrix the identity; ValueError unless two-dimensional. Source: PyTorch, torch.nn.init.eye_."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.copy_(_torch_eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))
    return tensor


def dirac_(tensor, groups=1):
    """Make a 3-, 4- or 5-dimensional convolution weight the identity on channels, for each of `groups`.

    ValueError for other dimensions or a first size that `groups` does not divide. Source: PyTorch,
    torch.nn.init.dirac_.
    """
    dimensions = tensor.ndimension()
    if dimensions not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    out_per_group = sizes[0] // groups
    center = tuple(size // 2 for size in sizes[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for d in range(min(out_per_group, sizes[1])):
                tensor[(group * out_per_group + d, d, *center)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Glorot's uniform: ±gain·√(6/(fan_in + fan_out)). Source: PyTorch, torch.nn.init.xavier_uniform_."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Glorot's normal: std gain·√(2/(fan_in + fan_out)). Source: PyTorch, torch.nn.init.xavier_normal_."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return _no_grad_normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def _kaiming_std(tensor, a, mode, nonlinearity):
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """He's uniform: ±gain·√(3/fan). Tensors without elements stay, with a warning.

    Source: PyTorch, torch.nn.init.kaiming_uniform_.
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """He's normal: std gain/√fan. Source: PyTorch, torch.nn.init.kaiming_normal_."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    return _no_grad_normal_(tensor, 0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor, gain=1, generator=None):
    """Make the matrix (first size, the rest) have orthonormal rows or columns, times `gain`.

    ValueError with fewer than two dimensions. Source: PyTorch, torch.nn.init.orthogonal_.
    """
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    with no_grad():
        flat = empty_like(tensor).reshape(rows, columns).normal_(0, 1, generator=generator)
        if rows < columns:
            flat.t_()
        q, r = _linalg.qr(flat)
        # QR is unique up to signs; those of R's diagonal make the distribution uniform.
        q *= r.diag(0).sign()
        if rows < columns:
            q.t_()
        tensor.view_as(q).copy_(q)
        tensor.mul_(gain)
    return tensor


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Fill a matrix from N(0, std²) and zero a fraction `sparsity` of each column.

    ValueError unless two-dimensional. Source: PyTorch, torch.nn.init.sparse_.
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = int(math.ceil(sparsity * rows))
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[randperm(rows)[:zeros], column] = 0
    return tensor


def _make_deprecate(function):
    new_name = function.__name__
    old_name = new_name[:-1]

    @functools.wraps(function)
    def deprecated(*args, **kwargs):
        warnings.warn(
            f"`nn.init.{old_name}` is now deprecated in favor of `nn.init.{new_name}`.", FutureWarning, stacklevel=2
        )
        return function(*args, **kwargs)

    deprecated.__name__ = old_name
    deprecated.__doc__ = f"Deprecated spelling of `torch.nn.init.{new_name}`."
    return deprecated


uniform = _make_deprecate(uniform_)
normal = _make_deprecate(normal_)
constant = _make_deprecate(constant_)
eye = _make_deprecate(eye_)
dirac = _make_deprecate(dirac_)
xavier_uniform = _make_deprecate(xavier_uniform_)
xavier_normal = _make_deprecate(xavier_normal_)
kaiming_uniform = _make_deprecate(kaiming_uniform_)
kaiming_normal = _make_deprecate(kaiming_normal_)
orthogonal = _make_deprecate(orthogonal_)
sparse = _make_deprecate(sparse_)
