"""Activations of torch and torch.nn.functional."""

import warnings

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import Value, constant, value_of
from msadapter_hook.tensor import dtypes
from msadapter_hook.tensor.generator import default_generator
from msadapter_hook.tensor.geometry import wrap_dim

from .promotion import dtype_of, floating, is_complex, is_integral, to
from .refusals import require_floating, require_kinds
from .registry import Operator, _inplace, _Plain, composite, operator
from .tables import METHODS, OPERATORS, call

F = "nn.functional"
_UPDATING = {}  # name -> f(tensor, *arguments) that writes to the tensor: what `inplace=True` calls


# ------------------------------------------------------------------------------------------------ declaring
def activation(schema, *, torch=False, underscore=True, saves="self", grad_name=None):
    """Declare an activation of torch.nn.functional that takes `inplace`, with its in-place function `name_`.

    `torch`: it is a function of torch as well. `underscore`: the in-place function is public.
    """

    def declare(body):
        name = schema.partition("(")[0]
        inner = "_activation." + name
        operator(schema, forms="function", namespace="_activation", saves=saves, grad_name=grad_name)(body)
        kernel = OPERATORS[inner]
        update = _UPDATING[name] = _inplace(kernel, name + "_")
        required = schema.split(") -> ")[0].partition(", *")[0]

        def function(*bound):
            *rest, inplace = bound
            return update(*rest) if inplace else kernel(*rest)

        function.__doc__ = body.__doc__
        composite(f"{required}, bool inplace=False) -> Tensor", forms="function", namespace=F)(function)
        if underscore:
            OPERATORS[f"{F}.{name}_"] = _Plain(f"{F}.{name}_", update)
        if torch:
            OPERATORS[name] = plain = Operator(name)
            plain.overloads, plain.function = kernel.overloads, kernel.function
            if underscore:
                OPERATORS[name + "_"] = _Plain(name + "_", update)
        return body

    return declare


def simple(schema, **options):
    """Declare an activation without `inplace`."""
    return operator(schema, namespace=F, forms=options.pop("forms", "function"), saves=options.pop("saves", "self"), **options)


# ------------------------------------------------------------------------------------------------ relu and its kin
@composite("relu(Tensor input, bool inplace=False) -> Tensor", forms="function", namespace=F)
def relu(input, inplace=False):
    """max(x, 0). Source: PyTorch, torch.nn.functional.relu."""
    return input.relu_() if inplace else call("relu", input)


OPERATORS[f"{F}.relu_"] = _Plain(f"{F}.relu_", METHODS["relu_"])


@activation("hardtanh(Tensor self, Scalar min_val=-1.0, Scalar max_val=1.0) -> Tensor")
def hardtanh(self, min_val=-1.0, max_val=1.0):
    """Clamped to a range. Source: PyTorch, torch.nn.functional.hardtanh."""
    if self.dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if is_complex(self):
        raise NotImplementedError("clamp is not supported for complex types")
    if is_integral(self):
        if self.dtype.kind == "u" and min_val < 0:
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
        min_val, max_val = int(min_val), int(max_val)
    return prims.hardtanh(self, low=min_val, high=max_val)


@activation("relu6(Tensor self) -> Tensor", underscore=False, grad_name="HardtanhBackward0")
def relu6(self):
    """min(max(x, 0), 6). Source: PyTorch, torch.nn.functional.relu6."""
    return hardtanh(self, 0, 6)


@activation("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor")
def leaky_relu(self, negative_slope=0.01):
    """x where positive, slope * x elsewhere. Source: PyTorch, torch.nn.functional.leaky_relu."""
    require_floating(self, "leaky_relu_cpu")
    return prims.leaky_relu(self, slope=float(negative_slope))


@activation("elu(Tensor self, Scalar alpha=1.0) -> Tensor")
def elu(self, alpha=1.0):
    """x where positive, alpha * (exp(x) - 1) elsewhere. Source: PyTorch, torch.nn.functional.elu."""
    require_floating(self, "elu_cpu")
    return prims.elu(self, alpha=float(alpha), scale=1.0, input_scale=1.0)


@activation("selu(Tensor self) -> Tensor", torch=True, grad_name="EluBackward0")
def selu(self):
    """The self-normalizing ELU. Source: PyTorch, torch.nn.functional.selu."""
    require_floating(self, "elu_cpu")
    return prims.elu(self, alpha=1.6732632423543772848170429916717, scale=1.0507009873554804934193349852946, input_scale=1.0)


@activation("celu(Tensor self, Scalar alpha=1.0) -> Tensor", torch=True)
def celu(self, alpha=1.0):
    """ELU with the slope 1 at zero for every alpha. Source: PyTorch, torch.nn.functional.celu."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    require_floating(self, "elu_cpu")
    return prims.celu(self, alpha=float(alpha))


@activation("silu(Tensor self) -> Tensor", underscore=False)
def silu(self):
    """x * sigmoid(x). Source: PyTorch, torch.nn.functional.silu."""
    require_kinds(self, "fc", "silu_cpu")
    return prims.silu(self)


@activation("mish(Tensor self) -> Tensor", underscore=False)
def mish(self):
    """x * tanh(softplus(x)). Source: PyTorch, torch.nn.functional.mish."""
    require_floating(self, "mish_cpu")
    return prims.mish(self)


@activation("hardswish(Tensor self) -> Tensor", underscore=False)
def hardswish(self):
    """x * relu6(x + 3) / 6. Source: PyTorch, torch.nn.functional.hardswish."""
    require_floating(self, "hardswish_cpu")
    return prims.hardswish(self)


@activation("hardsigmoid(Tensor self) -> Tensor", underscore=False)
def hardsigmoid(self):
    """relu6(x + 3) / 6. Source: PyTorch, torch.nn.functional.hardsigmoid."""
    require_floating(self, "hardsigmoid_cpu")
    return prims.hardsigmoid(self)


@activation("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", torch=True)
def threshold(self, threshold, value):
    """x where above the threshold, `value` elsewhere. Source: PyTorch, torch.nn.functional.threshold."""
    require_kinds(self, "fi", "threshold_cpu")
    return prims.threshold(self, limit=threshold, value=value)


# ------------------------------------------------------------------------------------------------ without inplace
@simple('gelu(Tensor self, *, str approximate="none") -> Tensor', forms="function out")
def gelu(self, approximate="none"):
    """x * Phi(x), exact or by tanh. Source: PyTorch, torch.nn.functional.gelu."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    require_floating(self, "GeluKernelImpl")
    return prims.gelu(self, approximate=approximate)


@simple("logsigmoid(Tensor self) -> Tensor", forms="function out", grad_name="LogSigmoidBackward0")
def logsigmoid(self):
    """log(sigmoid(x)). Source: PyTorch, torch.nn.functional.logsigmoid."""
    require_floating(self, "log_sigmoid_cpu")
    return prims.log_sigmoid(self)


@simple("softplus(Tensor self, Scalar beta=1.0, Scalar threshold=20.0) -> Tensor", forms="function out")
def softplus(self, beta=1.0, threshold=20.0):
    """log(1 + exp(beta * x)) / beta, linear above the threshold. Source: PyTorch, torch.nn.functional.softplus."""
    require_floating(self, "softplus_cpu")
    return prims.softplus_beta(self, beta=float(beta), threshold=float(threshold))


@composite("softsign(Tensor self) -> Tensor", forms="function", namespace=F)
def softsign(self):
    """x / (1 + |x|). Source: PyTorch, torch.nn.functional.softsign."""
    return self / (self.abs() + 1)


@composite("tanhshrink(Tensor self) -> Tensor", forms="function", namespace=F)
def tanhshrink(self):
    """x - tanh(x). Source: PyTorch, torch.nn.functional.tanhshrink."""
    return self - self.tanh()


@operator(
    "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", forms="function method out", saves="self", aliases=(f"{F}.hardshrink",)
)
def hardshrink(self, lambd=0.5):
    """Zero within [-lambd, lambd]. Source: PyTorch, torch.nn.functional.hardshrink."""
    require_floating(self, "hardshrink_cpu")
    return prims.hardshrink(self, limit=float(lambd))


@simple("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", forms="function out")
def softshrink(self, lambd=0.5):
    """Shrunk towards zero by lambd. Source: PyTorch, torch.nn.functional.softshrink."""
    require_floating(self, "softshrink_check")
    most = float(dtypes.finfo(dtype_of(self)).max)
    if not 0 <= lambd <= most:
        raise RuntimeError(
            f"lambda must be in range [0, {most:g}] for input dtype {dtype_of(self).scalar_name}, but found {lambd:g}"
        )
    return prims.softshrink(self, limit=float(lambd))


@operator(
    "prelu(Tensor self, Tensor weight) -> Tensor",
    forms="function method",
    saves="self weight",
    aliases=(f"{F}.prelu",),
    grad_name="PreluKernelBackward0",
    layout="self",
)
def prelu(self, weight):
    """x where positive, weight * x elsewhere; one weight, or one per channel. Source: PyTorch, torch.nn.functional.prelu."""
    if self.dtype != weight.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {dtype_of(self).scalar_name} and {dtype_of(weight).scalar_name}"
        )
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if weight.size != 1:
        if not self.ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = self.shape[1] if self.ndim >= 2 else 1
        if channels != weight.size:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.size} and "
                f"channel size = {channels}."
            )
        weight = prims.reshape(weight, shape=(weight.size,) + (1,) * (self.ndim - 2))
    elif weight.ndim and not self.ndim:
        weight = prims.reshape(weight, shape=())
    require_floating(self, "prelu_cpu")
    return prims.prelu(self, weight)


_rrelu_noise = prims.host_call(
    "rrelu",
    lambda a, slope: np.where(a <= 0, a * slope, a),
    vjp=[lambda g, out, a, slope: g * prims.where(a <= 0, slope, prims.zeros_like(slope) + 1), None],
    uses_output=False,
)


@activation(
    "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, *, "
    "Generator? generator=None) -> Tensor",
    torch=True,
    grad_name="RreluWithNoiseBackward0",
)
def rrelu(self, lower=1 / 8, upper=1 / 3, training=False, generator=None):
    """Leaky relu with a random slope in training. Source: PyTorch, torch.nn.functional.rrelu."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    require_floating(self, "rrelu_with_noise_out_cpu")
    if not training:
        return prims.leaky_relu(self, slope=(lower + upper) / 2)
    g = generator or default_generator
    slope = np.ones(self.shape, self.dtype)
    flat, source = slope.reshape(-1), self.numpy.reshape(-1)
    for i in np.flatnonzero(source <= 0):  # one draw for each element that is not positive, in order
        flat[i] = g.draw53() * (upper - lower) + lower
    return _rrelu_noise(self, Value(slope.shape, slope.dtype, slope))


@simple("glu(Tensor self, int dim=-1) -> Tensor", forms="function out", layout="channels")
def glu(self, dim=-1):
    """The first half times the sigmoid of the second. Source: PyTorch, torch.nn.functional.glu."""
    if not self.ndim:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    axis = wrap_dim(dim, self.ndim)
    n = self.shape[axis]
    if n % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {n}")
    require_floating(self, "glu_cpu")
    ones = (1,) * self.ndim
    middle = list(self.shape)
    middle[axis] = n // 2
    start = [0] * self.ndim
    start[axis] = n // 2
    first = prims.strided_slice(self, start=(0,) * self.ndim, stop=tuple(middle), step=ones)
    second = prims.strided_slice(self, start=tuple(start), stop=self.shape, step=ones)
    return first * prims.sigmoid(second)


# ------------------------------------------------------------------------------------------------ softmax
def _for_softmax(self, dtype, kernel):
    value = to(self, dtype) if dtype is not None else self
    require_floating(value, kernel)
    return value


@operator(
    "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    forms="function method out",
    saves="result",
    aliases=("special.softmax",),
    layout="contiguous",
)
def softmax(self, dim, dtype=None):
    """exp(x) over its sum along `dim`; shape as the input. Source: PyTorch, torch.softmax."""
    value = _for_softmax(self, dtype, "softmax_lastdim_kernel_impl" if dim in (-1, self.ndim - 1) else "softmax_kernel_impl")
    axis = wrap_dim(dim, value.ndim)
    return prims.softmax(value, axis=axis) if value.ndim else _whole(prims.softmax, value)


@operator(
    "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    forms="function method out",
    saves="result",
    aliases=("special.log_softmax",),
    layout="contiguous",
)
def log_softmax(self, dim, dtype=None):
    """Logarithm of the softmax along `dim`; shape as the input. Source: PyTorch, torch.log_softmax."""
    value = _for_softmax(
        self, dtype, "log_softmax_lastdim_kernel_impl" if dim in (-1, self.ndim - 1) else "log_softmax_kernel_impl"
    )
    axis = wrap_dim(dim, value.ndim)
    return prims.log_softmax(value, axis=axis) if value.ndim else _whole(prims.log_softmax, value)


def _whole(primitive, value):
    return prims.reshape(primitive(prims.reshape(value, shape=(1,)), axis=0), shape=())


def _with_dim(name, primitive):
    def body(self, dim, half_to_float=False):
        value = to(self, dtypes.float32) if half_to_float else self
        axis = wrap_dim(dim, value.ndim)
        return primitive(value, axis=axis) if value.ndim else _whole(primitive, value)

    body.__doc__ = f"{name[1:]} along `dim`, halves as float32 where asked. Source: PyTorch, torch.{name}."
    operator(f"{name}(Tensor self, int dim, bool half_to_float) -> Tensor", forms="function", saves="result")(body)


_with_dim("_softmax", prims.softmax)
_with_dim("_log_softmax", prims.log_softmax)


@operator("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", forms="function", saves="result")
def _safe_softmax(self, dim, dtype=None):
    """Softmax in which a row of -inf only gives zeros. Source: PyTorch, torch._safe_softmax."""
    value = floating(to(self, dtype) if dtype is not None else self)
    if not value.size:
        return softmax(value, dim)
    axes = (wrap_dim(dim, value.ndim),) if value.ndim else ()
    masked = np.logical_and.reduce(np.isneginf(value.numpy), axis=axes, keepdims=True)
    hidden, zero = value_of(np.broadcast_to(masked, value.shape)), constant(0, value.dtype)
    return prims.where(hidden, zero, softmax(prims.where(hidden, zero, value), dim))


@operator(
    "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    forms="function out",
    saves="grad_output output",
)
def _softmax_backward(grad_output, output, dim, input_dtype):
    """The cotangent of softmax's input. Source: PyTorch, torch._softmax_backward_data."""
    weighted = grad_output * output
    axes = (wrap_dim(dim, output.ndim),) if output.ndim else ()
    total = prims.sum(weighted, axes=axes, keepdims=True)
    return to(weighted - output * prims.broadcast_to(total, shape=output.shape), input_dtype)


@operator(
    "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    forms="function out",
    saves="grad_output output",
)
def _log_softmax_backward(grad_output, output, dim, input_dtype):
    """The cotangent of log_softmax's input. Source: PyTorch, torch._log_softmax_backward_data."""
    axes = (wrap_dim(dim, output.ndim),) if output.ndim else ()
    total = prims.sum(grad_output, axes=axes, keepdims=True)
    return to(grad_output - prims.exp(output) * prims.broadcast_to(total, shape=output.shape), input_dtype)


def _implicit(name, ndim, stacklevel):
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def _functional_softmax(name, negate=False):
    public = "softmin" if negate else name

    def body(input, dim=None, _stacklevel=3, dtype=None):
        if dim is None:
            dim = _implicit(public, input.dim(), _stacklevel + 2)
        return call(name, -input if negate else input, dim, dtype=dtype)

    body.__doc__ = f"{public} along `dim`. Source: PyTorch, torch.nn.functional.{public}."
    composite(
        f"{public}(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor", forms="function", namespace=F
    )(body)


_functional_softmax("softmax")
_functional_softmax("log_softmax")
_functional_softmax("softmax", negate=True)
