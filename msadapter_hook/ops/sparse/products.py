"""Products of sparse matrices with dense ones and with each other, with gradients to both sides."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import value_of
from msadapter_hook.tensor import dtypes
from msadapter_hook.tensor.compound import recorded_name, refusal
from msadapter_hook.tensor.sparse import BLOCKED, CompressedTensor, SparseTensor, gathered, scattered

from ..compound import implement
from ..tables import OPERATORS, call
from .conversion import coalesce, compress, plain_tensor, to_coordinates, to_dense
from .origin import recorded

BOTH = (SparseTensor, CompressedTensor)
_UNMASKED = ("MmBackward0", "MvBackward0", "AddmmBackward0")


def _coordinates(matrix):
    return matrix if isinstance(matrix, SparseTensor) else to_coordinates(matrix)


def _same_dtype(one, other, names=("mat1", "mat2")):
    if one._dtype is not other._dtype:
        raise RuntimeError(f"addmm: expected '{names[0]}' and '{names[1]}' to have the same dtype, but got {one._dtype.scalar_name} and "
                           f"{other._dtype.scalar_name}")


def _check_matrix(one):
    if isinstance(one, SparseTensor) and (one._places._size[0] != 2 or one._elements.ndim != 1):
        dims = one._places._size[0], one._elements.ndim - 1
        raise RuntimeError(f"addmm: matrices expected, got {dims[0]}D tensor" if dims[0] != 2 else
                           f"addmm: a matrix with two sparse dimensions and no dense ones is expected, but it has {dims[0]} and {dims[1]}")
    if one.ndim != 2:
        raise RuntimeError(f"addmm: matrices expected, got {one.ndim}D tensor")


def _times_dense(self, dense):
    """Sparse (n, k) times dense (k, m), as a Value."""
    _check_matrix(self)
    if dense.ndim != 2:
        raise RuntimeError(f"addmm: matrices expected, got {dense.ndim}D tensor")
    if self._size[1] != dense._size[0]:
        raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {self._size[1]}, got {dense._size[0]}")
    _same_dtype(self, dense)
    one = _coordinates(self)
    return prims.sparse_product(value_of(one._at), one._elements.value, dense.value, rows=self._size[0])


def _dense_times(dense, self):
    """Dense (m, n) times sparse (n, k), as a Value."""
    _check_matrix(self)
    if dense.ndim != 2:
        raise RuntimeError(f"addmm: matrices expected, got {dense.ndim}D tensor")
    if dense._size[1] != self._size[0]:
        if isinstance(self, SparseTensor):
            raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {self._size[0]}, got {dense._size[1]}")
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({dense._size[0]}x{dense._size[1]} and {self._size[0]}x"
                           f"{self._size[1]})")
    _same_dtype(dense, self)
    one = _coordinates(self)
    turned = np.ascontiguousarray(one._at[::-1])
    made = prims.sparse_product(value_of(turned), one._elements.value, prims.transpose(dense.value, axes=(1, 0)), rows=self._size[1])
    return prims.transpose(made, axes=(1, 0))


def _times_sparse(self, other):
    """The product of two sparse matrices, sparse and coalesced."""
    for one in (self, other):
        _check_matrix(one)
    if self._size[1] != other._size[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({self._size[0]}x{self._size[1]} and {other._size[0]}x"
                           f"{other._size[1]})")
    _same_dtype(self, other)
    one, two = coalesce(_coordinates(self)), coalesce(_coordinates(other))
    left, right = one._at, two._at
    low = np.searchsorted(right[0], left[1], "left")
    counts = np.searchsorted(right[0], left[1], "right") - low
    first = np.repeat(np.arange(left.shape[1]), counts)
    second = np.arange(first.size) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(low, counts)
    flat = left[0][first] * other._size[1] + right[1][second]
    places, target = np.unique(flat, return_inverse=True)
    terms = call("mul", plain_tensor(gathered(one._elements.value, first), one._dtype),
                 plain_tensor(gathered(two._elements.value, second), two._dtype))
    elements = plain_tensor(scattered(terms.value, target.reshape(-1), places.size), one._dtype)
    at = np.stack([places // max(other._size[1], 1), places % max(other._size[1], 1)])
    made = SparseTensor._of(at, elements, (self._size[0], other._size[1]), True)
    if isinstance(self, CompressedTensor) and self.layout in (dtypes.sparse_csr, dtypes.sparse_csc):
        return compress(made, dtypes.sparse_csr)
    return made


def product(self, other, name):
    """The product of two matrices at least one of which is sparse."""
    if self._compound and other._compound:
        return recorded_name(_times_sparse(self, other), "SparseSparseMatmulBackward0")
    value = _times_dense(self, other) if self._compound else _dense_times(self, other)
    if name in _UNMASKED:
        value = recorded(value, OPERATORS["mm"], self, other)
    return recorded_name(plain_tensor(value), name)


# ------------------------------------------------------------------------------------------------ operators
@implement(*BOTH, names="mm spmm")
def mm(self, mat2):
    return product(self, mat2, "MmBackward0")


@implement(*BOTH, names="mv")
def mv(self, vec):
    if not self._compound:
        raise refusal("mv", vec)
    if vec.ndim != 1 or self._size[1:] != vec._size:
        raise RuntimeError(f"mv: Expected the vector to have size {self._size[-1]}, but got {list(vec._size)}")
    return recorded_name(product(self, vec.unsqueeze(1), "MvBackward0").squeeze(1), "MvBackward0")


@implement(*BOTH, names="matmul")
def matmul(self, other):
    if self._compound and not other._compound and other.ndim == 1:
        return mv(self, other)
    if self._compound and self.ndim == 3 and other.ndim == 3:
        return bmm(self, other)
    if self.ndim == 2 and other.ndim == 2:
        return product(self, other, "MmBackward0")
    if not self._compound and self.ndim == 1 and other.ndim == 2:
        return product(self.unsqueeze(0), other, "MmBackward0").squeeze(0)
    if not self._compound and self.ndim > 2 and other.ndim == 2:
        flat = product(self.reshape((-1, self._size[-1])), other, "MmBackward0")
        return flat.reshape((*self._size[:-1], other._size[1]))
    raise RuntimeError("expand is unsupported for Sparse tensors")


@implement(*BOTH, names="addmm")
def addmm(self, mat1, mat2, beta=1, alpha=1, name="AddmmBackward0"):
    if self._compound:
        if isinstance(self, CompressedTensor) and mat1._compound and mat2._compound:
            total = _times_sparse(mat1, mat2)
            return call("add", call("mul", self, beta), call("mul", total, alpha))
        raise RuntimeError(f"addmm_sparse_dense: expected strided result tensor, got tensor with layout {self._kind}")
    if not mat1._compound:
        if isinstance(mat2, CompressedTensor):
            made = product(mat1, mat2, name)
        else:
            raise RuntimeError("addmm_sparse_dense: expected either 'mat1' to have sparse layout and 'mat2' to have strided layout, got "
                               "'mat1' with layout Strided and 'mat2' with layout Sparse")
    elif mat2._compound:
        made = to_dense(_times_sparse(mat1, mat2))
    else:
        made = product(mat1, mat2, name)
    made = made if alpha == 1 else call("mul", made, alpha)
    return recorded_name(call("add", made, self if beta == 1 else call("mul", self, beta)), name)


@implement(*BOTH, names="addmv")
def addmv(self, mat, vec, beta=1, alpha=1):
    made = mv(mat, vec)
    made = made if alpha == 1 else call("mul", made, alpha)
    return recorded_name(call("add", made, self if beta == 1 else call("mul", self, beta)), "AddmvBackward0")


@implement(SparseTensor, names="bmm")
def bmm(self, mat2):
    if not self._compound or mat2._compound:
        raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense" if mat2._compound and self._compound else
                           "bmm: a dense batch times a sparse one is not supported; transpose both")
    if self.ndim != 3 or mat2.ndim != 3 or self._places._size[0] != 3:
        raise RuntimeError("bmm_sparse: Tensor 'self' must be 3D and 'mat2' must be 3D, and all dimensions of 'self' sparse")
    count, rows, inner = self._size
    if mat2._size[0] != count:
        raise RuntimeError(f"bmm_sparse: 'self.size(0)' and 'mat2.size(0)' must match, but got {count} and {mat2._size[0]}")
    if mat2._size[1] != inner:
        raise RuntimeError(f"bmm_sparse: 'self.size(2)' and 'mat2.size(1)' must match, but got {inner} and {mat2._size[1]}")
    at = self._at
    blocks = np.stack([at[0] * rows + at[1], at[0] * inner + at[2]])
    dense = prims.reshape(mat2.value, shape=(count * inner, mat2._size[2]))
    made = prims.sparse_product(value_of(blocks), self._elements.value, dense, rows=count * rows)
    made = recorded(prims.reshape(made, shape=(count, rows, mat2._size[2])), OPERATORS["bmm"], self, mat2)
    return recorded_name(plain_tensor(made), "BmmBackward0")


@implement(*BOTH, names="nn.functional.linear linear")
def linear(input, weight, bias=None):
    if input._compound:
        made = matmul(input, weight.t() if not weight._compound else call("t", weight))
    else:
        if bias is not None and isinstance(weight, SparseTensor):
            raise RuntimeError("addmm_sparse_dense: expected either 'mat1' to have sparse layout and 'mat2' to have strided layout, got "
                               "'mat1' with layout Strided and 'mat2' with layout Sparse")
        flat = input.reshape((-1, input._size[-1]))
        made = product(flat, call("t", weight), "MmBackward0").reshape((*input._size[:-1], weight._size[0]))
    return made if bias is None else call("add", made, bias)


# ------------------------------------------------------------------------------------------------ names of torch.sparse and old ones
def sparse_mm(sparse, dense, reduce=None):
    """The product of two matrices of which one is sparse, or both: then the result is sparse. `reduce` ("sum", "mean", "amax", "amin",
    of a CSR matrix times a dense one) says how the terms are put together. Source: PyTorch, torch.sparse.mm."""
    if reduce is not None:
        return _reduced(sparse, dense, reduce)
    if not (sparse._compound or dense._compound):
        return call("mm", sparse, dense)
    if sparse._compound and not dense._compound and dense.ndim != 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)" if dense.ndim == 1 else
                         f"addmm: matrices expected, got {dense.ndim}D tensor")
    return product(sparse, dense, "SparseAddmmBackward0")


def _reduced(sparse, dense, reduce):
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, mean, amax or amin, got {reduce}.")
    if not isinstance(sparse, CompressedTensor) or sparse.layout is not dtypes.sparse_csr or dense._compound:
        raise refusal("_sparse_mm_reduce_impl", sparse if sparse._compound else dense, "torch.sparse.mm reduces over a CSR matrix times a "
                      "dense one") if sparse._compound or dense._compound else RuntimeError(
            f"torch.sparse.mm: Expect self to be SparseCsr, got {sparse.layout}")
    _check_matrix(sparse)
    if sparse._size[1] != dense._size[0]:
        raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {sparse._size[1]}, got {dense._size[0]}")
    one = to_coordinates(sparse)
    at, rows = one._at, sparse._size[0]
    counts = np.bincount(at[0], minlength=rows)
    if reduce in ("sum", "mean"):
        made = product(sparse, dense, "SparseMmReduceImplBackward0")
        if reduce == "sum":
            return made
        share = value_of((1.0 / np.maximum(counts, 1)).astype(dense._dtype.numpy)[:, None])
        return recorded_name(plain_tensor(made.value * share), "SparseMmReduceImplBackward0")
    values = one._elements.value
    terms = gathered(dense.value, at[1]) * prims.reshape(values, shape=(values.shape[0], 1))
    array = terms.numpy
    best = np.full((rows, dense._size[1]), -1, np.int64)
    for e, row in enumerate(at[0]):
        mine = best[row]
        better = mine < 0
        old = array[np.maximum(mine, 0), np.arange(mine.size)]
        better |= array[e] > old if reduce == "amax" else array[e] < old
        mine[better] = e
    padded = prims.concat(terms, value_of(np.zeros((1, dense._size[1]), terms.dtype)), axis=0)
    chosen = np.where(best < 0, terms.shape[0], best)
    return recorded_name(plain_tensor(prims.take_along(padded, value_of(chosen), axis=0)), "SparseMmReduceImplBackward0")


def sparse_addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0):
    """beta * mat + alpha * (mat1 @ mat2) with a sparse `mat1`. Source: PyTorch, torch.sparse.addmm."""
    if not mat1._compound:
        return call("addmm", mat, mat1, mat2, beta=beta, alpha=alpha)
    return addmm(mat, mat1, mat2, beta, alpha, "SparseAddmmBackward0")


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0, out=None):
    """beta * input + alpha * (mat1 @ mat2) at the places of `input`, a CSR matrix. Source: PyTorch, torch.sparse.sampled_addmm."""
    if not isinstance(input, CompressedTensor) or input._order in BLOCKED or mat1._compound or mat2._compound:
        raise RuntimeError(f"sampled_addmm(): Expected self to have layout sparse_csr, but got {input.layout}"
                           if not isinstance(input, CompressedTensor) else
                           "sampled_addmm(): Expected mat1 and mat2 to have strided layout and self to have layout sparse_csr")
    if mat1.ndim < 2 or mat2.ndim < 2 or mat1._size[-1] != mat2._size[-2]:
        raise RuntimeError(f"sampled_addmm(): mat1 and mat2 shapes cannot be multiplied ({'x'.join(map(str, mat1._size))} and "
                           f"{'x'.join(map(str, mat2._size))})")
    if tuple(input._size) != (*mat1._size[:-1], mat2._size[-1]):
        raise RuntimeError(f"sampled_addmm(): self has size {list(input._size)}, but the product of mat1 and mat2 has size "
                           f"{[*mat1._size[:-1], mat2._size[-1]]}")
    _same_dtype(mat1, mat2)
    if input._batch:
        made = input._sampled(call("matmul", mat1, mat2))
    else:
        made = plain_tensor(prims.sampled_product(value_of(input._lines()), mat1.value, prims.transpose(mat2.value, axes=(1, 0))))
    made = made if alpha == 1 else call("mul", made, alpha)
    if beta:
        made = call("add", made, call("mul", input._elements, beta))
    result = recorded_name(input._like(made), "SparseSampledAddmmBackward0")
    if out is not None:
        out._take(result)
        return out
    return result


def smm(input, mat2):
    """A sparse matrix times a dense one, with a sparse result. Source: PyTorch, torch.smm."""
    return sspaddmm(None, input, mat2, beta=0)


def hspmm(mat1, mat2):
    """A sparse matrix times a dense one, as rows at sparse places: one sparse dimension, one dense. Source: PyTorch, torch.hspmm."""
    if not isinstance(mat1, SparseTensor) or mat2._compound:
        raise RuntimeError("hspmm: a sparse matrix and a dense one are expected")
    one = coalesce(mat1)
    rows = np.unique(one._at[0])
    found = gathered(_times_dense(one, mat2), rows)
    return recorded_name(SparseTensor._of(rows[None].copy(), plain_tensor(found), (mat1._size[0], mat2._size[1]), True), "HspmmBackward0")


def sspaddmm(input, mat1, mat2, *, beta=1, alpha=1):
    """beta * input + alpha * (mat1 @ mat2), all but `mat2` sparse, with a sparse result. Source: PyTorch, torch.sspaddmm."""
    if not isinstance(mat1, SparseTensor) or mat2._compound:
        raise RuntimeError("sspaddmm: expected 'mat1' to be sparse and 'mat2' dense")
    if mat1._size[1] != mat2._size[0]:
        raise RuntimeError(f"sspaddmm: Argument #3: Expected dim 0 size {mat1._size[1]}, got {mat2._size[0]}")
    rows = np.unique(mat1._at[0])
    width = mat2._size[1]
    found = gathered(_times_dense(mat1, mat2), rows)
    values = prims.reshape(found, shape=(rows.size * width,))
    values = values if alpha == 1 else call("mul", plain_tensor(values), alpha).value
    at = np.stack([np.repeat(rows, width), np.tile(np.arange(width), rows.size)])
    size = (mat1._size[0], width)
    if input is None:
        return recorded_name(SparseTensor._of(at, plain_tensor(values), size), "SspaddmmBackward0")
    if tuple(input._size) != size:
        raise RuntimeError(f"sspaddmm: Argument #1: Expected size {list(size)}, got {list(input._size)}")
    mine = input._elements if beta == 1 else call("mul", input._elements, beta)
    joined = prims.concat(mine.value, values, axis=0)
    return recorded_name(SparseTensor._of(np.concatenate([input._at, at], 1), plain_tensor(joined), size), "SspaddmmBackward0")
