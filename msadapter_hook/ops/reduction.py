"""Reductions over dimensions: sums, products, extremes, truth, norms."""

import math

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import constant, value_of
from msadapter_hook.tensor import Tensor, dtypes
from msadapter_hook.tensor.geometry import wrap_dim, wrap_dims

from .promotion import align, dtype_of, floating, is_complex, is_floating, is_integral, to
from .refusals import not_implemented
from .registry import composite, operator
from .tables import call

ALL = "function method out"
_INT64 = np.dtype(np.int64)


def axes_of(value, dim):
    """The axes that `dim` names; None and () mean all."""
    if dim is None or dim == ():
        return tuple(range(value.ndim))
    return wrap_dims(dim, value.ndim) if value.ndim else _no_axes(dim)


def _no_axes(dim):
    wrap_dims(dim, 0)
    return ()


def axis_of(value, dim):
    """The axis that `dim` names (0 for a zero-dim value), counted from the front."""
    return wrap_dim(dim, value.ndim)


def at_least_1d(value):
    return value if value.ndim else prims.reshape(value, shape=(1,))


# ------------------------------------------------------------------------------------------------ sums and products
def _of_sum(self, dtype):
    if dtype is not None:
        return to(self, dtype)
    return to(self, dtypes.int64) if is_integral(self) else self


@operator("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", grad_name="SumBackward0")
@operator(
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    forms=ALL,
    grad_name="SumBackward1",
)
def sum(self, dim=None, keepdim=False, dtype=None):
    """Sum; integers are summed as int64. Source: PyTorch, torch.sum."""
    if isinstance(dim, dtypes.dtype):
        dim, dtype = None, dim
    self = _of_sum(self, dtype)
    axes = axes_of(self, dim)
    return prims.sum(self, axes=axes, keepdims=keepdim) if self.ndim else prims.reshape(self, shape=())


@operator("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", grad_name="MeanBackward0")
@operator(
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    forms=ALL,
    grad_name="MeanBackward1",
)
def mean(self, dim=None, keepdim=False, dtype=None):
    """Mean of floating point or complex elements. Source: PyTorch, torch.mean."""
    if isinstance(dim, dtypes.dtype):
        dim, dtype = None, dim
    given = "Input" if dtype is None else "Optional"
    asked = dtype or dtype_of(self)
    if not (asked.is_floating_point or asked.is_complex):
        raise RuntimeError(
            f"mean(): could not infer output dtype. {given} dtype must be either a floating point or complex dtype. "
            f"Got: {asked.scalar_name}"
        )
    self = to(self, asked)
    axes = axes_of(self, dim)
    return prims.mean(self, axes=axes, keepdims=keepdim) if self.ndim else prims.reshape(self, shape=())


@operator("nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", forms=ALL, saves="self")
def nansum(self, dim=None, keepdim=False, dtype=None):
    """Sum with NaN as zero. Source: PyTorch, torch.nansum."""
    if is_complex(self):
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if is_floating(self):
        self = prims.where(prims.isnan(self), constant(0, self.dtype), self)
    return sum(self, dim, keepdim, dtype)


@operator("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", forms=ALL)
def nanmean(self, dim=None, keepdim=False, dtype=None):
    """Mean of what is not NaN. Source: PyTorch, torch.nanmean."""
    if is_integral(self):
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {dtype_of(self).scalar_name}"
        )
    if is_complex(self):
        raise RuntimeError("nansum on CPU does not support complex inputs")
    missing = prims.isnan(self)
    total = sum(prims.where(missing, constant(0, self.dtype), self), dim, keepdim, dtype)
    count = sum(prims.logical_not(missing), dim, keepdim)
    return total / prims.cast(count, dtype=total.dtype)


@operator("prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", saves="self result", grad_name="ProdBackward0")
@operator(
    "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    forms=ALL,
    saves="self result",
    grad_name="ProdBackward1",
)
def prod(self, dim=None, keepdim=False, dtype=None):
    """Product; integers are multiplied as int64. Source: PyTorch, torch.prod."""
    if isinstance(dim, dtypes.dtype):
        dim, dtype = None, dim
    self = _of_sum(self, dtype)
    axes = axes_of(self, None) if dim is None else axes_of(self, (dim,))
    return prims.prod(self, axes=axes, keepdims=keepdim)


# ------------------------------------------------------------------------------------------------ truth
def _truth(self, axes, keepdim, ufunc):
    found = ufunc.reduce(self.numpy if self.dtype.kind == "b" else self.numpy != 0, axis=axes, keepdims=keepdim)
    return value_of(np.asarray(found, np.uint8 if self.dtype == np.uint8 else bool))


def _declare_truth(name, ufunc):
    def whole(self):
        return _truth(self, axes_of(self, None), False, ufunc)

    def one(self, dim, keepdim=False):
        return _truth(self, axes_of(self, (dim,)), keepdim, ufunc)

    def several(self, dim=None, keepdim=False):
        return _truth(self, axes_of(self, None) if dim is None else axes_of(self, dim) if dim else (), keepdim, ufunc)

    for body in (whole, one, several):
        body.__doc__ = f"Whether {name} element is not zero; bool (uint8 for uint8). Source: PyTorch, torch.{name}."
    operator(f"{name}(Tensor self) -> Tensor", forms=ALL)(whole)
    operator(f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", forms=ALL)(one)
    operator(f"{name}.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", forms=ALL)(several)


_declare_truth("all", np.logical_and)
_declare_truth("any", np.logical_or)


@operator("count_nonzero(Tensor self, int[1]? dim=None) -> Tensor", forms="function method")
def count_nonzero(self, dim=None):
    """How many elements are not zero; int64. Source: PyTorch, torch.count_nonzero."""
    return value_of(np.asarray(np.add.reduce(self.numpy != 0, axis=axes_of(self, dim), dtype=np.int64)))


# ------------------------------------------------------------------------------------------------ extremes
def _whole_extreme(name, primitive):
    def body(self):
        if not self.size:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                "with the 'dim' argument."
            )
        if is_complex(self):
            raise not_implemented(f"{name}_all", self)
        return primitive(self)

    body.__doc__ = f"The {name}imum of all elements. Source: PyTorch, torch.{name}."
    return body


def require_length(name, value, axis):
    """Raise IndexError where the axis has no elements."""
    if value.ndim and value.shape[axis] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")


def _comparable(array):
    """The array as NumPy orders it well: 16-bit brain floats as float32."""
    return array.astype(np.float32) if array.dtype.kind == "V" or array.dtype.name == "bfloat16" else array


def pick(self, index, axis, keepdim):
    """Elements at an index array that keeps the axis, and the index as a Value; both without the axis unless kept."""
    whole = at_least_1d(self)
    index = index.reshape(index.shape or (1,)).astype(np.int64)
    values = prims.take_along(whole, value_of(index), axis=axis)
    if not self.ndim:
        shape = ()
    elif keepdim:
        return values, value_of(index)
    else:
        shape = values.shape[:axis] + values.shape[axis + 1 :] if values.shape[axis] == 1 else values.shape
    return prims.reshape(values, shape=shape), value_of(index.reshape(shape))


def _along_dim(name, argument):
    def body(self, dim, keepdim=False):
        axis = axis_of(self, dim)
        require_length(name, self, axis)
        if is_complex(self):
            raise RuntimeError(f"{name}(): does not support complex input")
        whole = _comparable(at_least_1d(self).numpy)
        return pick(self, np.expand_dims(argument(whole, axis), axis), axis, keepdim)

    body.__doc__ = f"The {name}imum along a dimension and where it first lies (int64). Source: PyTorch, torch.{name}."
    return body


def _declare_extreme(name, whole, argument, binary):
    operator(f"{name}(Tensor self) -> Tensor", forms=ALL, saves="self result", grad_name=f"{name.capitalize()}Backward1")(
        _whole_extreme(name, whole)
    )

    def of_two(self, other):
        """The larger or smaller of two elements. Source: PyTorch, torch.maximum and torch.minimum."""
        a, b = align(self, other)
        if is_complex(a):
            raise RuntimeError(f"{binary} not implemented for complex tensors.")
        return getattr(prims, binary)(a, b)

    operator(
        f"{name}.other(Tensor self, Tensor other) -> Tensor",
        forms=ALL,
        saves="self other",
        grad_name=f"{binary.capitalize()}Backward0",
    )(of_two)
    operator(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        forms=ALL,
        grad_name=f"{name.capitalize()}Backward0",
    )(_along_dim(name, argument))


_declare_extreme("max", prims.max_of_all, np.argmax, "maximum")
_declare_extreme("min", prims.min_of_all, np.argmin, "minimum")


def _declare_position(name, argument):
    def body(self, dim=None, keepdim=False):
        if is_complex(self) or self.dtype.kind == "b":
            raise RuntimeError(f"{name}(): does not support {'complex' if is_complex(self) else 'bool'} input")
        array = _comparable(self.numpy)
        if dim is None:
            if not self.size:
                raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
            found = np.asarray(argument(array), np.int64)
            return value_of(found.reshape((1,) * self.ndim) if keepdim else found)
        axis = axis_of(self, dim)
        require_length(name, self, axis)
        if not self.ndim:
            return value_of(np.zeros((), np.int64))
        found = np.asarray(argument(array, axis), np.int64)
        return value_of(np.expand_dims(found, axis) if keepdim else found)

    body.__doc__ = f"Where the extreme element first lies; int64. Source: PyTorch, torch.{name}."
    operator(f"{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", forms=ALL)(body)


_declare_position("argmax", np.argmax)
_declare_position("argmin", np.argmin)


def _declare_over_dims(name, primitive, kernel):
    def body(self, dim=(), keepdim=False):
        axes = axes_of(self, dim)
        if not self.size:
            if dim in ((), None):
                raise RuntimeError(
                    f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
                    "dim with the 'dim' argument."
                )
            for axis in axes:
                require_length(name, self, axis)
        if is_complex(self):
            raise not_implemented(kernel, self)
        return primitive(self, axes=axes, keepdims=keepdim)

    body.__doc__ = f"The extreme over dimensions; ties share the gradient. Source: PyTorch, torch.{name}."
    operator(f"{name}(Tensor self, int[1]? dim=[], bool keepdim=False) -> Tensor", forms=ALL, saves="self result")(body)


_declare_over_dims("amax", prims.amax, "max_values_cpu")
_declare_over_dims("amin", prims.amin, "min_values_cpu")


@operator("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", forms=ALL, saves="self")
def aminmax(self, dim=None, keepdim=False):
    """Minimum and maximum, of all elements or along a dimension. Source: PyTorch, torch.aminmax."""
    if is_complex(self):
        raise not_implemented("aminmax_cpu", self)
    if dim is None:
        if not self.size:
            raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
        axes = tuple(range(self.ndim))
    else:
        axis = axis_of(self, dim)
        if self.ndim and self.shape[axis] == 0:
            raise IndexError(f"aminmax: Expected reduction dim {axis} to have non-zero size.")
        axes = (axis,) if self.ndim else ()
    return prims.amin(self, axes=axes, keepdims=keepdim), prims.amax(self, axes=axes, keepdims=keepdim)


# ------------------------------------------------------------------------------------------------ logarithm of the sum
@operator(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    forms=ALL,
    saves="self result",
    aliases=("special.logsumexp",),
)
def logsumexp(self, dim, keepdim=False):
    """log(sum(exp(x))) over dimensions. Source: PyTorch, torch.logsumexp."""
    self = floating(self)
    return prims.logsumexp(self, axes=axes_of(self, dim), keepdims=keepdim)


@composite("sum_to_size(Tensor self, int[] size) -> Tensor", forms="method")
def sum_to_size(self, size):
    """Summed over the dimensions that broadcasting `size` to this size would add. Source: PyTorch, Tensor.sum_to_size."""
    lead = self.dim() - len(size)
    if lead < 0 or any(n not in (1, m) for n, m in zip(size, self._size[lead:])):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(self._size)}}}.")
    axes = list(range(lead)) + [i + lead for i, n in enumerate(size) if n == 1 and self._size[i + lead] != 1]
    if not size:
        return self.sum()
    return self.sum(axes, keepdim=True).reshape(size) if axes else self


_BITS = {"f": np.float64, "V": np.float64, "i": np.int64, "u": np.uint64, "b": np.int64}


@operator("hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor", forms=ALL)
def hash_tensor(self, dim=(), keepdim=False, mode=0):
    """The exclusive or of the bits of all elements, each as 64 bits; uint64. Source: PyTorch, torch.hash_tensor."""
    if mode != 0:
        raise RuntimeError(f"hash_tensor: unknown mode {mode}; only 0 (exclusive or) is there")
    if is_complex(self):
        raise not_implemented("xor_sum_cpu", self)
    bits = self.numpy.astype(_BITS[self.dtype.kind]).view(np.uint64)
    return value_of(np.asarray(np.bitwise_xor.reduce(bits, axis=axes_of(self, dim), keepdims=keepdim)))


# ------------------------------------------------------------------------------------------------ norms
def vector_norm(value, p, dim, keepdim):
    """The p-norm of a Value over dimensions; None: all."""
    axes = axes_of(value, dim)
    if not value.size and (p < 0 or p == math.inf):
        if dim is None or not [i for i in axes if value.shape[i]] or any(value.shape[i] == 0 for i in axes):
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {_number(p)} norm on an empty tensor because the operation does "
                "not have an identity"
                if dim is None
                else f"linalg.vector_norm cannot compute the {_number(p)} norm on the dimension {axes[0]} because this "
                "dimension is empty and the operation does not have an identity"
            )
    return prims.vector_norm(value, p=float(p), axes=axes, keepdims=keepdim)


def _number(p):
    return int(p) if math.isfinite(p) and float(p).is_integer() else p


@operator(
    "_vector_norm(Tensor self, Scalar p, int[1]? dim=None, bool keepdim=False) -> Tensor",
    forms="function",
    namespace="_norms",
    saves="self result",
    grad_name="LinalgVectorNormBackward0",
)
def _norm_kernel(self, p, dim=None, keepdim=False):
    if is_integral(self):
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {dtype_of(self).scalar_name}"
        )
    return vector_norm(self, p, dim, keepdim)


@composite("norm(Tensor self, any p=fro, int[1]? dim=None, bool keepdim=False, ScalarType? dtype=None) -> Tensor", forms=ALL)
def norm(self, p="fro", dim=None, keepdim=False, dtype=None):
    """Vector or matrix norm. Source: PyTorch, torch.norm."""
    if isinstance(p, str):
        if p == "nuc":
            if dim is None and self.dim() != 2 or dim is not None and len(dim) != 2:
                if self.dim() < 2:
                    raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
            return call("linalg.matrix_norm", self, "nuc", dim if dim is not None else (-2, -1), keepdim, dtype=dtype)
        if p != "fro":
            raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
        if dim is not None and len(dim) > 2:
            raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    value = self if dtype is None else self.to(dtype)
    number = 2.0 if p in ("fro", None) else p.item() if isinstance(p, Tensor) else p
    return call("_norms._vector_norm", value, number, dim, keepdim)


@composite("frobenius_norm(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", forms="function out")
def frobenius_norm(self, dim=(), keepdim=False):
    """The 2-norm over dimensions. Source: PyTorch, torch.frobenius_norm."""
    return call("_norms._vector_norm", self, 2.0, dim or None, keepdim)


@composite("nuclear_norm(Tensor self, int[2] dim=[-2, -1], bool keepdim=False) -> Tensor", forms="function out")
def nuclear_norm(self, dim=(-2, -1), keepdim=False):
    """The sum of singular values. Source: PyTorch, torch.nuclear_norm."""
    return call("linalg.matrix_norm", self, "nuc", dim, keepdim)


@composite("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", forms="function")
def norm_except_dim(v, pow=2, dim=0):
    """The norms of all slices along `dim`, kept; -1: of the whole. Source: PyTorch, torch.norm_except_dim."""
    if dim == -1:
        return call("_norms._vector_norm", v, float(pow))
    axis = axis_of(v.value, dim)
    return call("_norms._vector_norm", v, float(pow), tuple(i for i in range(v.dim()) if i != axis), True)


@composite("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor")
def dist(self, other, p=2):
    """The p-norm of the difference. Source: PyTorch, torch.dist."""
    difference = self - other
    if not (difference._dtype.is_floating_point or difference._dtype.is_complex):
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {difference._dtype.scalar_name} instead."
        )
    return call("_norms._vector_norm", difference, p)


@operator("renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", forms="function method inplace out", saves="self")
def renorm(self, p, dim, maxnorm):
    """Each slice along `dim` scaled down to a p-norm of at most `maxnorm`. Source: PyTorch, torch.renorm."""
    if self.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.ndim} dimensions")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if is_integral(self):
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {dtype_of(self).scalar_name}"
        )
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    axis = axis_of(self, dim)
    norms = vector_norm(self, p, tuple(i for i in range(self.ndim) if i != axis), True)
    limit = constant(maxnorm, norms.dtype)
    factor = prims.where(norms > limit, limit / (norms + 1e-7), constant(1, norms.dtype))
    return self * (prims.cast(factor, dtype=self.dtype) if is_complex(self) else factor)
