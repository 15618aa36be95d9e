"""Products of vectors and matrices, of every rank: matmul and its kin, addmm and its kin, linear and bilinear maps."""

import math
import warnings

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import Value
from msadapter_hook.tape.recording import state
from msadapter_hook.tensor import geometry
from msadapter_hook.tensor.geometry import wrap_dim

from ._contract import contract, expanded, permuted, product, shaped
from .promotion import dtype_of, is_integral, promote
from .refusals import c_name
from .registry import composite, operator
from .tables import METHODS, call
from .writing import check_inplace, write_inplace

ALL = "function method inplace out"
FREE = "function method out"


# ------------------------------------------------------------------------------------------------ checks
def size_text(v):
    return "x".join(map(str, v.shape))


def no_bool(v, name):
    if v.dtype.kind == "b":
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'")


def _check_product(a, b):
    """Two matrices that can be multiplied."""
    if a.shape[-1] != b.shape[0]:
        rows = math.prod(a.shape[:-1])
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a.shape[-1]} and {size_text(b)})")
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {c_name(a)} != {c_name(b)}")
    no_bool(a, "addmm_impl_cpu_")


def _check_added(self, a, b, names=("self", "mat1", "mat2")):
    """What is added to a product of two matrices has their dtype, as they have each other's."""
    for one, other, pair in ((self, b, (0, 2)), (a, b, (1, 2))):
        if one is not None and one.dtype != other.dtype:
            raise RuntimeError(f"{names[pair[0]]} and {names[pair[1]]} must have the same dtype, but got {dtype_of(one).scalar_name} and "
                               f"{dtype_of(other).scalar_name}")


def _check_vectors(a, b):
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    if a.dtype != b.dtype:
        raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {dtype_of(a).scalar_name} and "
                           f"{dtype_of(b).scalar_name}")
    if a.shape != b.shape:
        raise RuntimeError(f"inconsistent tensor size, expected tensor [{a.shape[0]}] and src [{b.shape[0]}] to have "
                           "the same "
                           f"number of elements, but got {a.shape[0]} and {b.shape[0]} elements respectively")
    no_bool(a, "dot")


def _check_mv(mat, vec, added):
    if mat.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {1 if added is None else added.ndim}, {mat.ndim}, "
                           f"{vec.ndim}")
    rows = mat.shape[0] if added is None else (added.shape or (1,))[0]
    if mat.shape[1] != vec.shape[0] or rows not in (1, mat.shape[0]):
        raise RuntimeError(f"size mismatch, got input ({rows}), mat ({size_text(mat)}), vec ({vec.shape[0]})")
    if not (vec if added is None else added).dtype == mat.dtype == vec.dtype:
        names = [dtype_of(v).scalar_name for v in (vec if added is None else added, mat, vec)]
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {names[0]}, {names[1]}, and {names[2]}")
    no_bool(mat, "addmv_impl_cpu")


def _check_bmm(a, b):
    for i, v in enumerate((a, b)):
        if v.ndim != 3:
            raise RuntimeError(f"batch{i + 1} must be a 3D tensor")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]}, "
                           f"{a.shape[2]}] but got: "
                           f"[{b.shape[0]}, {b.shape[1]}].")
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {dtype_of(a).scalar_name} but found {dtype_of(b).scalar_name}")
    no_bool(a, "baddbmm_cpu")


def _check_1d(name, **vectors):
    for label, v in vectors.items():
        if v.ndim != 1:
            raise RuntimeError(f"{name}: Expected 1-D argument {label}, but got {v.ndim}-D")


def _expand_to(v, shape):
    """`v` broadcast to the shape of a product, with PyTorch's error where it does not fit."""
    geometry.expanded(v.shape, (0,) * v.ndim, shape, dtype_of(v).scalar_name)
    return v


# ------------------------------------------------------------------------------------------------ products
def dot_values(a, b):
    return shaped(prims.matmul(shaped(a, (1, a.size)), shaped(b, (1, b.size)), transpose_b=True), ())


def mv_values(a, b):
    return shaped(prims.matmul(a, shaped(b, (b.size, 1))), a.shape[:-1])


def matmul_values(a, b):
    """Matrix product of Values of any rank, as `torch.matmul`."""
    if a.ndim == 0 or b.ndim == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D")
    if a.ndim == 1 and b.ndim == 1:
        _check_vectors(a, b)
        return dot_values(a, b)
    if b.ndim == 1:
        if a.ndim == 2:
            _check_mv(a, b, None)
        else:
            _check_mv(_Shape((math.prod(a.shape[:-1]), a.shape[-1]), a.dtype), b, None)
        rows = shaped(a, (math.prod(a.shape[:-1]), a.shape[-1]))
        return shaped(mv_values(rows, b), a.shape[:-1])
    if a.ndim == 1:
        if b.ndim == 2:
            _check_product(_Shape((1, a.shape[0]), a.dtype), b)
            return shaped(prims.matmul(shaped(a, (1, a.size)), b), b.shape[1:])
        if a.shape[0] != b.shape[-2]:
            rows, columns = math.prod(b.shape[:-2]) * b.shape[-1], b.shape[-2]
            raise RuntimeError(f"size mismatch, got input ({rows}), mat ({rows}x{columns}), vec ({a.shape[0]})")
        _same_scalar(a, b)
        return shaped(product(shaped(a, (1, a.size)), b), b.shape[:-2] + b.shape[-1:])
    if b.ndim == 2:
        _check_product(a, b)
        return product(a, b)
    if a.ndim == 2:
        if a.shape[1] != b.shape[-2]:
            rows = math.prod(b.shape[:-2]) * b.shape[-1]
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{b.shape[-2]} and "
                               f"{a.shape[1]}x{a.shape[0]})")
        _same_scalar(a, b)
        return product(a, b)
    try:
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        _batch_mismatch(a.shape[:-2], b.shape[:-2])
    if a.shape[-1] != b.shape[-2]:
        n = math.prod(lead)
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{n}, {a.shape[-1]}] but "
                           "got: "
                           f"[{n}, {b.shape[-2]}].")
    _same_scalar(a, b)
    return product(a, b)


class _Shape:
    """Shape and dtype of a Value that need not be made for a check."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype, self.ndim = shape, dtype, len(shape)


def _same_scalar(a, b):
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {dtype_of(a).scalar_name} but found {dtype_of(b).scalar_name}")
    no_bool(a, "baddbmm_cpu")


def _batch_mismatch(a, b):
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
    for i in range(n - 1, -1, -1):
        if a[i] != b[i] and a[i] != 1 and b[i] != 1:
            raise RuntimeError(f"The size of tensor a ({a[i]}) must match the size of tensor b ({b[i]}) at "
                               "non-singleton "
                               f"dimension {i}")


def _squeezed(bound):
    """A vector times a matrix is a row, squeezed in place."""
    return int(len(bound[0]._size) == 1 and len(bound[1]._size) == 2 and (len(bound) == 2 or bound[2] is None))


@operator("matmul(Tensor self, Tensor other) -> Tensor", forms=FREE, saves="self:other other:self", aliases=("linalg.matmul",),
          grad_name="MmBackward0", writes=_squeezed)
def matmul(self, other):
    """Matrix product: of vectors, matrices, and stacks of them that broadcast. Source: PyTorch, torch.matmul."""
    return matmul_values(self, other)


@operator("mm(Tensor self, Tensor mat2) -> Tensor", forms=FREE, saves="self:mat2 mat2:self")
def mm(self, mat2):
    """Product of two matrices (n, m) and (m, p). Source: PyTorch, torch.mm."""
    for name, v in (("self", self), ("mat2", mat2)):
        if v.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix")
    _check_product(self, mat2)
    return prims.matmul(self, mat2)


@operator("bmm(Tensor self, Tensor mat2) -> Tensor", forms=FREE, saves="self:mat2 mat2:self")
def bmm(self, mat2):
    """Products of two stacks of matrices (b, n, m) and (b, m, p). Source: PyTorch, torch.bmm."""
    _check_bmm(self, mat2)
    return prims.matmul(self, mat2)


@operator("mv(Tensor self, Tensor vec) -> Tensor", forms=FREE, saves="self:vec vec:self")
def mv(self, vec):
    """Product of a matrix (n, m) and a vector (m,). Source: PyTorch, torch.mv."""
    _check_mv(self, vec, None)
    return mv_values(self, vec)


@operator("dot(Tensor self, Tensor tensor) -> Tensor", forms=FREE, saves="self:tensor tensor:self")
def dot(self, tensor):
    """Sum of the products of two vectors of one size. Source: PyTorch, torch.dot."""
    _check_vectors(self, tensor)
    return dot_values(self, tensor)


@operator("vdot(Tensor self, Tensor other) -> Tensor", forms=FREE, saves="self:other other:self")
def vdot(self, other):
    """As dot, with the conjugate of `self`. Source: PyTorch, torch.vdot."""
    _check_vectors(self, other)
    return dot_values(prims.conj_of(self), other)


@operator("inner(Tensor self, Tensor other) -> Tensor", forms=FREE)
def inner(self, other):
    """Sum of products over the last dimension of both. Source: PyTorch, torch.inner."""
    if self.ndim == 0 or other.ndim == 0:
        a, b = promote(self, other)
        return a * b
    if self.shape[-1] != other.shape[-1]:
        raise RuntimeError("inner() the last dimension must match on both input tensors but got shapes "
                           f"{list(self.shape)} and {list(other.shape)}")
    if self.ndim == 1 and other.ndim == 1:
        _check_vectors(self, other)
        return dot_values(self, other)
    if self.dtype != other.dtype:
        raise RuntimeError("both inputs should have same dtype")
    _check_product(_Shape((1, self.shape[-1]), self.dtype), _Shape((other.shape[-1], 1), other.dtype))
    left = shaped(self, (math.prod(self.shape[:-1]), self.shape[-1]))
    right = shaped(other, (math.prod(other.shape[:-1]), other.shape[-1]))
    return shaped(prims.matmul(left, right, transpose_b=True), self.shape[:-1] + other.shape[:-1])


@operator("outer(Tensor self, Tensor vec2) -> Tensor", forms=FREE, aliases=("ger",), grad_name="MulBackward0")
def outer(self, vec2):
    """All products of the elements of two vectors: (n,), (m,) → (n, m). Source: PyTorch, torch.outer."""
    _check_1d("outer", self=self, vec2=vec2)
    a, b = promote(self, vec2)
    return shaped(a, (a.shape[0], 1)) * shaped(b, (1, b.shape[0]))


# ------------------------------------------------------------------------------------------------ sums with products
def _same_dtype(self, other, name):
    if self.dtype != other.dtype:
        raise RuntimeError(f"self and {name} must have the same dtype, but got {dtype_of(self).scalar_name} and "
                           f"{dtype_of(other).scalar_name}")


def _number(x, v):
    return int(x) if is_integral(v) else x


def _combine(self, beta, made, alpha):
    """beta * self + alpha * made; with beta 0 nothing of `self` comes through, not even NaN."""
    alpha, beta = _number(alpha, made), _number(beta, made)
    if alpha != 1:
        made = made * alpha
    if beta == 0:
        return made
    if beta != 1:
        self = self * beta
    if made.ndim == 2 and self.shape == made.shape[1:]:
        return prims.bias_add(made, self)
    return prims.add(made, self)


@operator("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", forms=ALL,
          saves="mat1:mat2 mat2:mat1")
def addmm(self, mat1, mat2, beta=1, alpha=1):
    """beta * self + alpha * (mat1 @ mat2). Source: PyTorch, torch.addmm."""
    for name, v in (("mat1", mat1), ("mat2", mat2)):
        if v.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {v.ndim}-D tensor")
    if mat1.shape[1] == mat2.shape[0]:
        _check_added(self, mat1, mat2)
    _check_product(mat1, mat2)
    _expand_to(self, (mat1.shape[0], mat2.shape[1]))
    return _combine(self, beta, prims.matmul(mat1, mat2), alpha)


@operator("addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor", forms=ALL,
          saves="mat:vec vec:mat")
def addmv(self, mat, vec, beta=1, alpha=1):
    """beta * self + alpha * (mat @ vec). Source: PyTorch, torch.addmv."""
    _check_mv(mat, vec, self)
    return _combine(self, beta, mv_values(mat, vec), alpha)


@operator("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", forms=ALL,
          saves="vec1:vec2 vec2:vec1")
def addr(self, vec1, vec2, beta=1, alpha=1):
    """beta * self + alpha * outer(vec1, vec2). Source: PyTorch, torch.addr."""
    _check_1d("addr", vec1=vec1, vec2=vec2)
    _expand_to(self, (vec1.shape[0], vec2.shape[0]))
    self, a, b = promote(self, vec1, vec2)
    for name, x in (("beta", beta), ("alpha", alpha)):
        if isinstance(x, bool) and self.dtype.kind != "b":
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
        if is_integral(self) and isinstance(x, float):
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    left = shaped(a, (a.shape[0], 1))
    right = shaped(b, (1, b.shape[0]))
    if self.dtype.kind == "b":
        made = prims.logical_and(left, right)
        if not alpha:
            made = prims.zeros_like(made)
        return prims.logical_or(self, made) if beta else made
    made = left * right
    return _combine(self, beta, made, alpha)


@operator("baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", forms=ALL,
          saves="batch1:batch2 batch2:batch1")
def baddbmm(self, batch1, batch2, beta=1, alpha=1):
    """beta * self + alpha * (batch1 @ batch2). Source: PyTorch, torch.baddbmm."""
    if batch1.ndim == 3 and batch2.ndim == 3:
        _expand_to(self, (batch1.shape[0], batch1.shape[1], batch2.shape[2]))
    if self.dtype != batch1.dtype:
        raise RuntimeError(f"Input dtypes must be the same, got: input {c_name(self)}, batch1: {c_name(batch1)}, batch2: {c_name(batch2)}")
    _check_bmm(batch1, batch2)
    return _combine(self, beta, prims.matmul(batch1, batch2), alpha)


@operator("addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", forms=FREE,
          saves="batch1:batch2 batch2:batch1")
def addbmm(self, batch1, batch2, beta=1, alpha=1):
    """beta * self + alpha * (sum over the batch of batch1 @ batch2). Source: PyTorch, torch.addbmm."""
    if batch1.ndim == 3 and batch2.ndim == 3:
        _expand_to(self, (batch1.shape[1], batch2.shape[2]))
    _check_added(self, batch1, batch2)
    _check_bmm(batch1, batch2)
    b, n, m = batch1.shape
    p = batch2.shape[2]
    flat = prims.matmul(shaped(permuted(batch1, (1, 0, 2)), (n, b * m)), shaped(batch2, (b * m, p)))
    return _combine(self, beta, flat, alpha)


def addbmm_(self, *args, **kwargs):
    """addbmm in place; a tensor that broadcasts grows to the shape of the product. Source: PyTorch, Tensor.addbmm_."""
    made = call("addbmm", self, *args, **kwargs)
    if made.shape != self.shape:
        check_inplace(self)
        enabled, state.enabled = state.enabled, False  # the size changes, the gradient comes with what is written next
        try:
            self.resize_(made.shape)
        finally:
            state.enabled = enabled
    write_inplace(self, made.value, made._dtype)
    return self


METHODS["addbmm_"] = addbmm_


# ------------------------------------------------------------------------------------------------ linear maps
@operator("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", namespace="nn.functional", forms="function out",
          saves="input:weight weight:input", grad_name="AddmmBackward0", writes=_squeezed)
def linear(input, weight, bias=None):
    """input @ weight.T + bias: (*, in), (out, in), (out,) → (*, out). Source: PyTorch, torch.nn.functional.linear."""
    if weight.ndim == 1:
        made = matmul_values(input, weight)
        return made if bias is None else made + bias
    if weight.ndim != 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D")
    if input.ndim == 0:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are 0D and {weight.ndim}D")
    rows = math.prod(input.shape[:-1])
    if input.shape[-1] != weight.shape[1]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{input.shape[-1]} and "
                           f"{weight.shape[1]}x{weight.shape[0]})")
    if bias is not None:
        _check_added(bias, input, weight)
    if input.dtype != weight.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {c_name(input)} != {c_name(weight)}")
    no_bool(input, "addmm_impl_cpu_")
    if bias is not None:
        _expand_to(bias, (rows, weight.shape[0]))
    if bias is None or bias.shape == weight.shape[:1]:
        return prims.affine(input, weight, bias)
    made = prims.matmul(shaped(input, (rows, input.shape[-1])), weight, transpose_b=True) + bias
    return shaped(made, input.shape[:-1] + (weight.shape[0],))


@operator("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor", namespace="nn.functional",
          forms="function", aliases=("bilinear",))
def bilinear(input1, input2, weight, bias=None):
    """y[..., o] = sum over i, j of x1[..., i] * weight[o, i, j] * x2[..., j] + bias[o].

    Shapes (*, I), (*, J), (O, I, J), (O,) → (*, O). Source: PyTorch, torch.nn.functional.bilinear.
    """
    if input1.ndim != input2.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    for i in range(input1.ndim - 1):
        if input1.shape[i] != input2.shape[i]:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {i}: got {input1.shape[i]} and "
                               f"{input2.shape[i]}")
    for n, v in ((1, input1), (2, input2)):
        if v.shape[-1] != weight.shape[n]:
            raise RuntimeError(f"bilinear(): input{n} size does not match weight size: got {v.shape[-1]} but expected "
                               f"{weight.shape[n]}")
    if not input1.dtype == input2.dtype == weight.dtype:
        raise RuntimeError(f"All tensors must have the same dtype, got input1: {c_name(input1)}, input2: {c_name(input2)}, weight: "
                           f"{c_name(weight)}")
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected "
                           f"{weight.shape[0]}")
    lead = input1.shape[:-1]
    rows = math.prod(lead)
    x1, x2 = shaped(input1, (rows, input1.shape[-1])), shaped(input2, (rows, input2.shape[-1]))
    half = contract(x1, ["n", "i"], weight, ["o", "i", "j"], ["n", "o", "j"])
    made = contract(half, ["n", "o", "j"], x2, ["n", "j"], ["n", "o"])
    if bias is not None:
        made = prims.bias_add(made, bias)
    return shaped(made, lead + (weight.shape[0],))


# ------------------------------------------------------------------------------------------------ others
@operator("kron(Tensor self, Tensor other) -> Tensor", forms=FREE)
def kron(self, other):
    """Kronecker product. Source: PyTorch, torch.kron."""
    a, b = promote(self, other)
    n = max(a.ndim, b.ndim)
    sa, sb = (1,) * (n - a.ndim) + a.shape, (1,) * (n - b.ndim) + b.shape
    left = shaped(a, [s for x in sa for s in (x, 1)])
    right = shaped(b, [s for x in sb for s in (1, x)])
    return shaped(left * right, [x * y for x, y in zip(sa, sb)])


def cross_values(a, b, dim, name):
    for v in (a, b):
        if v.ndim == 0:
            raise RuntimeError(f"{name}: inputs must have at least one dimension")
    if a.ndim != b.ndim:
        raise RuntimeError(f"{name}: inputs must have the same number of dimensions.")
    at = wrap_dim(dim, a.ndim)
    if a.shape[at] != 3 or b.shape[at] != 3:
        raise RuntimeError(f"{name}: inputs dimension {dim} must have length 3. Got {a.shape[at]} and {b.shape[at]}")
    a, b = promote(a, b)
    if a.shape != b.shape:
        try:
            shape = np.broadcast_shapes(a.shape, b.shape)
        except ValueError:
            _batch_mismatch(a.shape, b.shape)
        a, b = expanded(a, shape), expanded(b, shape)
    one, two = constant_index((1, 2, 0)), constant_index((2, 0, 1))

    def take(v, i):
        return prims.gather(v, i, axis=at)

    return take(a, one) * take(b, two) - take(a, two) * take(b, one)


_indices = {}


def constant_index(numbers) -> Value:
    """An int64 Value of these numbers, kept."""
    found = _indices.get(numbers)
    if found is None:
        found = _indices[numbers] = Value((len(numbers),), np.dtype(np.int64), np.array(numbers, np.int64))
    return found


@operator("cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", namespace="linalg", forms="function out",
          saves="self:other other:self")
def linalg_cross(self, other, dim=-1):
    """Cross product of vectors of length 3 along `dim`; others broadcast. Source: PyTorch, torch.linalg.cross."""
    return cross_values(self, other, dim, "linalg.cross")


@operator("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", forms=FREE, saves="self:other other:self")
def cross(self, other, dim=None):
    """Cross product along `dim`, by default the first of size 3. Source: PyTorch, torch.cross."""
    if dim is None:
        for i, n in enumerate(self.shape):
            if n == 3:
                dim = i
                warnings.warn("torch.cross without dim takes the first dimension of size 3; give dim, or use torch.linalg.cross, "
                              "which takes the last.", stacklevel=6)
                break
        else:
            raise RuntimeError("no dimension of size 3 in input")
    return cross_values(self, other, dim, "linalg.cross")


@operator("vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", namespace="linalg", forms="function out")
def vecdot(x, y, dim=-1):
    """Sum of conj(x) * y along `dim`. Source: PyTorch, torch.linalg.vecdot."""
    a, b = promote(x, y)
    made = prims.conj_of(a) * b
    return prims.sum(made, axes=(wrap_dim(dim, made.ndim),), keepdims=False)


def _chain_order(sizes):
    """Where to split each subchain of matrices so that the number of multiplications is least."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))
    return split


@operator("multi_dot(Tensor[] tensors) -> Tensor", namespace="linalg", forms="function out")
def multi_dot(tensors):
    """Product of two or more matrices in the cheapest order; the first and last may be vectors.

    Source: PyTorch, torch.linalg.multi_dot.
    """
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    first, last = tensors[0], tensors[-1]
    for i, v in enumerate(tensors):
        if v.ndim != 2 and not (i in (0, len(tensors) - 1) and v.ndim == 1):
            place = "the first tensor" if i == 0 else "the last tensor" if i == len(tensors) - 1 else f"tensor {i}"
            allowed = "1D or 2D" if i in (0, len(tensors) - 1) else "2D"
            raise RuntimeError(f"multi_dot(): {place} must be {allowed} but got {v.ndim}D")
        if v.dtype != first.dtype:
            raise RuntimeError(f"multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                               f"{dtype_of(first).scalar_name} and tensor {i} {dtype_of(v).scalar_name}")
    mats = list(tensors)
    if first.ndim == 1:
        mats[0] = shaped(first, (1, first.shape[0]))
    if last.ndim == 1:
        mats[-1] = shaped(last, (last.shape[0], 1))
    for i in range(len(mats) - 1):
        if mats[i].shape[1] != mats[i + 1].shape[0]:
            raise RuntimeError(f"multi_dot(): tensors {i} and {i + 1} with shapes {list(tensors[i].shape)} and "
                               f"{list(tensors[i + 1].shape)} cannot be multiplied")
    split = _chain_order([mats[0].shape[0]] + [m.shape[1] for m in mats])

    def chain(i, j):
        if i == j:
            return mats[i]
        k = split[i][j]
        return prims.matmul(chain(i, k), chain(k + 1, j))

    made = chain(0, len(mats) - 1)
    shape = (() if first.ndim == 1 else made.shape[:1]) + (() if last.ndim == 1 else made.shape[1:])
    return shaped(made, shape)


@composite("_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool "
           "use_gelu=False) "
           "-> Tensor", forms="function method out")
def addmm_activation(self, mat1, mat2, beta=1, alpha=1, use_gelu=False):
    """relu or gelu (tanh) of addmm. Source: PyTorch, torch._addmm_activation."""
    made = call("addmm", self, mat1, mat2, beta=beta, alpha=alpha)
    return call("nn.functional.gelu", made, approximate="tanh") if use_gelu else call("relu", made)


# ------------------------------------------------------------------------------------------------ older signatures
def _older(name, first, second):
    """The signatures with the factors before what they scale, which PyTorch still takes (with a warning)."""

    def warn():
        warnings.warn(f"This signature of {name} is deprecated: give beta and alpha by keyword.", stacklevel=8)

    @composite(f"{name}.older_alpha(Scalar beta, Tensor self, Scalar alpha, Tensor {first}, Tensor {second}) -> Tensor",
               forms="function out")
    def both(beta, self, alpha, a, b):
        warn()
        return call(name, self, a, b, beta=beta, alpha=alpha)

    @composite(f"{name}.older(Scalar beta, Tensor self, Tensor {first}, Tensor {second}) -> Tensor", forms="function out")
    def one(beta, self, a, b):
        warn()
        return call(name, self, a, b, beta=beta)

    @composite(f"{name}.older_method_alpha(Tensor self, Scalar beta, Scalar alpha, Tensor {first}, Tensor {second}) -> Tensor",
               forms="method inplace")
    def both_method(self, beta, alpha, a, b):
        warn()
        return call(name, self, a, b, beta=beta, alpha=alpha)

    @composite(f"{name}.older_method(Tensor self, Scalar beta, Tensor {first}, Tensor {second}) -> Tensor", forms="method inplace")
    def one_method(self, beta, a, b):
        warn()
        return call(name, self, a, b, beta=beta)

    for body in (both, one, both_method, one_method):
        body.__doc__ = f"As {name}, with its factors first. Source: PyTorch, torch.{name}."


for _name, _first, _second in (("addmm", "mat1", "mat2"), ("addmv", "mat", "vec"), ("addr", "vec1", "vec2"),
                               ("baddbmm", "batch1", "batch2"), ("addbmm", "batch1", "batch2")):
    _older(_name, _first, _second)
