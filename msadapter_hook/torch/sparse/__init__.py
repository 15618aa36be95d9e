"""torch.sparse: products, sums and softmaxes of sparse tensors, and the check of what they must satisfy."""

from msadapter_hook.errors import unsupported
from msadapter_hook.ops.sparse import products as _products
from msadapter_hook.ops.sparse.construction import invariants as _invariants
from msadapter_hook.ops.sparse.construction import (
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from msadapter_hook.ops.sparse.conversion import compress as _compress
from msadapter_hook.ops.sparse.legacy import SPARSE_TYPES as _TYPES
from msadapter_hook.ops.sparse.reductions import softmax as _softmax
from msadapter_hook.ops.tables import call as _call
from msadapter_hook.tensor.sparse import SparseTensor as _SparseTensor

from ._gradcheck import as_sparse_gradcheck
from .semi_structured import (
    SparseSemiStructuredTensor,
    SparseSemiStructuredTensorCUSPARSELT,
    SparseSemiStructuredTensorCUTLASS,
    to_sparse_semi_structured,
)

globals().update(_TYPES)
__all__ = [
    "addmm", "check_sparse_tensor_invariants", "mm", "sum", "softmax", "solve", "log_softmax", "SparseSemiStructuredTensor",
    "SparseSemiStructuredTensorCUTLASS", "SparseSemiStructuredTensorCUSPARSELT", "to_sparse_semi_structured", "as_sparse_gradcheck",
]


def _written(out, result):
    """`result` into `out`, where one is given."""
    if out is None:
        return result
    if out._compound:
        out._take(result)
        return out
    return out.copy_(result.to_dense() if result._compound else result)


def mm(mat1, mat2, reduce=None, *, out=None):
    """The product of two matrices, one of them sparse (the result is dense) or both (it is sparse), with gradients to both.

    `reduce` ("sum", "mean", "amax", "amin"; a CSR matrix times a dense one): how the terms are put together.
    Source: PyTorch, torch.sparse.mm.
    """
    return _written(out, _products.sparse_mm(mat1, mat2, reduce))


def addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0, out=None):
    """beta * mat + alpha * (mat1 @ mat2) with a sparse `mat1` (n, m), dense `mat2` (m, p) and `mat` (n, p).

    Source: PyTorch, torch.sparse.addmm.
    """
    return _written(out, _products.sparse_addmm(mat, mat1, mat2, beta=beta, alpha=alpha))


sampled_addmm = _products.sampled_addmm


def sum(input, dim=None, dtype=None):
    """The sum of a COO tensor over dimensions (all): dense where no sparse dimension is left, else sparse.

    Source: PyTorch, torch.sparse.sum.
    """
    if not isinstance(input, _SparseTensor):
        if not input._compound:
            raise NotImplementedError("torch.sparse.sum: the input is strided; torch.sum takes it")
        raise RuntimeError(f"coalesce expected sparse coordinate tensor layout but got {input._kind}")
    return _call("sum", input, dtype=dtype) if dim is None else _call("sum", input, dim, dtype=dtype)


def softmax(input, dim, *, dtype=None):
    """Softmax along `dim` over the elements that are there. Source: PyTorch, torch.sparse.softmax."""
    return _softmax(input, dim, dtype)


def log_softmax(input, dim, *, dtype=None):
    """The logarithm of the softmax along `dim` over the elements that are there. Source: PyTorch, torch.sparse.log_softmax."""
    return _softmax(input, dim, dtype, True)


def spdiags(diagonals, offsets, shape, layout=None):
    """A matrix whose diagonals are the rows of `diagonals`, at `offsets`: element j of a row lies in column j.

    Source: PyTorch, torch.sparse.spdiags (as scipy.sparse.spdiags).
    """
    from .. import arange, cat, int64, sparse_coo, sparse_csc, sparse_csr, stack

    diagonals = diagonals.unsqueeze(0) if diagonals.dim() == 1 else diagonals
    offsets = offsets.reshape(-1)
    if diagonals.dim() != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if offsets.dtype is not int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {offsets.dtype.scalar_name}")
    if offsets.numel() != diagonals.size(0):
        raise RuntimeError(f"Number of diagonals ({diagonals.size(0)}) does not match the number of offsets ({offsets.numel()})")
    if offsets.unique().numel() != offsets.numel():
        raise RuntimeError("Offset tensor contains duplicate values")
    if layout not in (None, sparse_coo, sparse_csr, sparse_csc):
        raise RuntimeError(f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {layout}")
    rows, columns, values = [], [], []
    for diagonal, offset in zip(diagonals, offsets.tolist()):
        first = max(offset, 0)
        last = min(shape[1], shape[0] + offset, diagonals.size(1))
        column = arange(first, max(first, last))
        rows.append(column - offset)
        columns.append(column)
        values.append(diagonal[first:max(first, last)])
    made = sparse_coo_tensor(stack([cat(rows), cat(columns)]), cat(values), shape)
    return made if layout in (None, sparse_coo) else _compress(made, layout)


def solve(*args, **kwargs):
    """Refused, as PyTorch's CPU build has no sparse solver either. Source: PyTorch, torch.sparse.spsolve."""
    raise unsupported("torch.sparse.solve", "make the matrix dense and use torch.linalg.solve")


spsolve = solve


class check_sparse_tensor_invariants:
    """Whether sparse tensors are checked when they are made: a switch, a context and a decorator.

    Source: PyTorch, torch.sparse.check_sparse_tensor_invariants.
    """

    @staticmethod
    def is_enabled():
        return _invariants.enabled

    @staticmethod
    def enable():
        _invariants.enabled = True

    @staticmethod
    def disable():
        _invariants.enabled = False

    def __init__(self, enable=True):
        self.state = enable
        self.saved_state = None

    def __enter__(self):
        if self.saved_state is not None:
            raise RuntimeError("This context manager instance is already activated. Use a different context manager instance for "
                               "context nesting.")
        self.saved_state = self.is_enabled()
        _invariants.enabled = self.state

    def __exit__(self, type, value, traceback):
        _invariants.enabled, self.saved_state = self.saved_state, None

    def __call__(self, mth):
        def checked(*args, **kwargs):
            with type(self)(self.state):
                return mth(*args, **kwargs)

        return checked


