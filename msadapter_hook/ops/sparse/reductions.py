"""Sums, norms and softmaxes of sparse tensors."""

import numpy as np

from msadapter_hook import prims
from msadapter_hook.tape import value_of
from msadapter_hook.tape.sparse import flat_places
from msadapter_hook.tensor import Tensor, cast_value, dtypes
from msadapter_hook.tensor.compound import recorded_name, refusal
from msadapter_hook.tensor.geometry import wrap_dim
from msadapter_hook.tensor.sparse import CompressedTensor, SparseTensor, gathered, passed, scattered

from ..compound import implement
from ..tables import call
from .conversion import coalesce, compress, plain_tensor, to_coordinates, wrapped_dims
from .origin import recorded


def _sum_dtype(self, dtype):
    if dtype is not None:
        return dtype
    return self._dtype if self._dtype.is_floating_point or self._dtype.is_complex else dtypes.int64


@implement(SparseTensor, names="sum")
def sum(self, dim=None, keepdim=False, dtype=None):
    """The sum over dimensions: dense where no sparse dimension is left, else sparse and coalesced."""
    wanted = _sum_dtype(self, dtype)
    if dim is None or isinstance(dim, tuple) and not dim:
        total = call("sum", self._elements, dtype=wanted)
        total = plain_tensor(recorded(total.value, lambda a: call("sum", a, dtype=wanted), self))
        return recorded_name(total.reshape((1,) * self.ndim) if keepdim else total, "SumBackward0")
    dims = wrapped_dims(dim, self.ndim)
    sparse = self._places._size[0]
    dense = tuple([d - sparse + 1 for d in dims if d >= sparse])
    gone = [d for d in dims if d < sparse]
    elements = call("sum", self._elements, dense, keepdim, dtype=wanted) if dense else self._elements.to(wanted)
    size = [1 if d in dims else n for d, n in enumerate(self._size) if keepdim or d not in dims]
    if len(gone) == sparse:
        total = call("sum", elements, (0,), dtype=wanted)
        return recorded_name(total.reshape(size), "SumBackward1")
    at = self._places.value.numpy
    if keepdim:
        at = at.copy()
        at[gone] = 0
    else:
        at = np.delete(at, gone, 0)
    made = SparseTensor._of(at, passed(elements, "SumBackward1"), size)
    return recorded_name(coalesce(made), "SumBackward1")


@implement(CompressedTensor, names="sum")
def compressed_sum(self, dim=None, keepdim=False, dtype=None):
    if dim is None or isinstance(dim, tuple) and not dim:
        wanted = _sum_dtype(self, dtype)
        total = call("sum", self._elements, dtype=wanted)
        return recorded_name(plain_tensor(recorded(total.value, lambda a: call("sum", a, dtype=wanted), self)), "SumBackward0")
    if not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    if self._batch or self.layout is not dtypes.sparse_csr:
        raise refusal("sum.dim_IntList", self)
    dims = wrapped_dims(dim, self.ndim)
    found = sum(to_coordinates(self), dims, True, dtype)
    if not found._compound:
        found = call("to_sparse", found)
    return recorded_name(compress(found, self.layout), "SumBackward1")


@implement(SparseTensor, names="any")
def any_(self, dim=None, keepdim=False):
    if dim is not None:
        raise refusal("any.dim", self)
    return call("any", self._elements)


@implement(SparseTensor, names="norm native_norm")
def norm(self, p="fro", dim=None, keepdim=False, dtype=None):
    if dim is not None and len(wrapped_dims(dim, self.ndim)) != self.ndim:
        raise RuntimeError("norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all dimensions "
                           "of the input")
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True")
    return recorded_name(call("norm", coalesce(self)._elements, 2.0 if p in (None, "fro") else p, dtype=dtype), "NormBackward0")


# ------------------------------------------------------------------------------------------------ softmax
def softmax(self, dim, dtype=None, logarithm=False):
    """Softmax over the elements that are there along `dim`: what is absent counts as minus infinity.

    Source: PyTorch, torch.sparse.softmax and log_softmax.
    """
    name = "SparseLogSoftmaxBackward0" if logarithm else "SparseSoftmaxBackward0"
    if not isinstance(self, SparseTensor):
        kind = "log_softmax" if logarithm else "softmax"
        if self._compound:
            raise refusal(f"_sparse_{kind}", self)
        raise NotImplementedError(f"torch.sparse.{kind}: the input is strided; torch.{kind} takes it")
    if dtype is not None:
        self = self.to(dtype)
    if not self._dtype.is_floating_point:
        raise NotImplementedError(f'"softmax" not implemented for \'{self._dtype.scalar_name}\'')
    dim, one = wrap_dim(dim, self.ndim), coalesce(self)
    sparse = one._places._size[0]
    value = one._elements.value
    if dim >= sparse:
        kernel = prims.log_softmax if logarithm else prims.softmax
        return recorded_name(one._like(plain_tensor(kernel(value, axis=dim - sparse + 1), self._dtype)), name)
    others = np.delete(one._places.value.numpy, dim, 0)
    size = [n for d, n in enumerate(self._size[:sparse]) if d != dim]
    groups, group = np.unique(flat_places(size, others), return_inverse=True)
    group = group.reshape(-1)
    low = value.dtype.name in ("float16", "bfloat16")
    value = cast_value(value, dtypes.float32) if low else value
    highest = np.full((groups.size, *value.shape[1:]), -np.inf, value.dtype)
    np.maximum.at(highest, group, value.numpy)
    shifted = value - value_of(highest[group])
    raised = prims.exp(shifted)
    total = gathered(scattered(raised, group, groups.size), group)
    made = shifted - prims.log(total) if logarithm else raised / total
    made = cast_value(made, self._dtype)
    return recorded_name(one._like(Tensor._make(made, self._dtype)), name)
