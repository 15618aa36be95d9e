"""The old constructors of sparse tensors: `torch.sparse.FloatTensor(indices, values, size)` and its kin."""

from msadapter_hook.tensor import Size, Tensor, dtypes
from msadapter_hook.tensor.sparse import SparseTensor

from .. import arguments
from ..legacy import TYPES, tensortype
from .construction import empty_sparse, sparse_coo_tensor


def construct(args, dtype):
    """(indices, values[, size]), (size) or sizes as numbers; a tensor of size [0] from nothing."""
    if not args:
        return empty_sparse((0,), dtype)
    if isinstance(args[0], Tensor) and len(args) > 1:
        values = args[1]
        if isinstance(values, Tensor) and values._dtype is not dtype:
            values = values.to(dtype)
        return sparse_coo_tensor(args[0], values, *args[2:], dtype=dtype)
    if len(args) == 1 and isinstance(args[0], SparseTensor):
        return args[0].detach()
    size = args[0] if len(args) == 1 and isinstance(args[0], (Size, tuple, list)) else args
    return empty_sparse(arguments.integers(tuple(size)), dtype)


class sparse_tensortype(tensortype):
    """The class of `torch.sparse.FloatTensor` and its kin: COO tensors of the dtype are their instances."""

    __module__ = "torch"

    def __init__(cls, name, dtype, module):
        super().__init__(name, dtype, module)
        cls.layout, cls.is_sparse = dtypes.sparse_coo, True

    def __call__(cls, *args, device=None):
        made = construct(args, cls.dtype)
        return made if device is None else made.to(device)

    def __instancecheck__(cls, x):
        return isinstance(x, SparseTensor) and x._dtype is cls.dtype


SPARSE_TYPES = {name: sparse_tensortype(name, kind.dtype, "torch.sparse") for name, kind in TYPES.items() if name != "BoolTensor"}


def new(self, *args, device=None):
    """A sparse tensor of this one's dtype, by the old constructor. Source: PyTorch, Tensor.new."""
    made = construct(args, self._dtype)
    return made if device is None else made.to(device)


SparseTensor.new = new
