"""What sparse tensors do besides calling operators: their parts, text, copies; and the methods by which dense tensors become sparse."""

import copy

import numpy as np

from msadapter_hook.tensor import Tensor, from_array, printing
from msadapter_hook.tensor.compound import Compound, recorded_name, refusal
from msadapter_hook.tensor.device import current_device
from msadapter_hook.tensor.sparse import BY_ROW, CompressedTensor, SparseTensor, passed

from .. import arguments
from ..compound import TABLES, implement
from ..devices import place
from ..methods import named_type
from ..registry import plain
from ..tables import METHODS, OPERATORS, call
from . import products
from .construction import empty_sparse
from .conversion import CONVERTERS, coalesce, converted, dense_dims, sparse_mask, to_dense, to_sparse, to_sparse_coo
from .shape import getitem


# ------------------------------------------------------------------------------------------------ parts
def _kind_of(tensor):
    return tensor._kind if isinstance(tensor, Compound) else "Strided"


def _coordinate_part(name, part):
    def get(self):
        if not isinstance(self, SparseTensor):
            raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got {_kind_of(self)}")
        return part(self)

    get.__name__ = name
    return get


def _uncoalesced(name):
    return RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")


def _indices(self):
    if not self._coalesced:
        raise _uncoalesced("indices")
    return self._places.detach()


def values(self):
    """The elements of a coalesced or compressed tensor, with their gradient. Source: PyTorch, Tensor.values."""
    if isinstance(self, CompressedTensor):
        return recorded_name(passed(self._elements, "ValuesBackward0"), "ValuesBackward0")
    if not isinstance(self, SparseTensor):
        if isinstance(self, Compound) and hasattr(self, "_nested_values"):
            return self._nested_values()
        raise RuntimeError(f"values expected sparse tensor layout but got {_kind_of(self)}")
    if not self._coalesced:
        raise _uncoalesced("values")
    return passed(self._elements, "ValuesBackward0")


def _raw(name, part):
    def get(self):
        if not isinstance(self, SparseTensor):
            raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: it is a method of sparse "
                                      "tensors")
        return part(self)

    get.__name__ = name
    return get


def _nnz(self):
    """How many elements are stored. Source: PyTorch, Tensor._nnz."""
    if isinstance(self, SparseTensor):
        return self._places._size[1]
    if isinstance(self, CompressedTensor):
        return self._others._size[-1]
    raise NotImplementedError("Could not run 'aten::_nnz' with arguments from the 'CPU' backend: it is a method of sparse tensors")


def _compressed_part(name, by_row, part):
    kind = "row" if by_row else "column"

    def get(self):
        if not isinstance(self, CompressedTensor) or (self._order in BY_ROW) is not by_row:
            raise RuntimeError(f"{name} expected sparse {kind} compressed tensor layout but got {_kind_of(self)}")
        return getattr(self, part).detach()

    get.__name__ = name
    return get


def sparse_dim(self):
    """How many leading dimensions are sparse: none of a dense tensor. Source: PyTorch, Tensor.sparse_dim."""
    if isinstance(self, CompressedTensor):
        return 2
    return self._places._size[0] if isinstance(self, SparseTensor) else 0


def dense_dim(self):
    """How many trailing dimensions are dense: all of a dense tensor. Source: PyTorch, Tensor.dense_dim."""
    return dense_dims(self) if isinstance(self, (SparseTensor, CompressedTensor)) else self.ndim


METHODS.update({
    "indices": _coordinate_part("indices", _indices), "values": values,
    "coalesce": _coordinate_part("coalesce", coalesce),
    "is_coalesced": _coordinate_part("is_coalesced", lambda self: self._coalesced),
    "_indices": _raw("_indices", lambda self: self._places.detach()),
    "_values": _raw("_values", lambda self: self._elements.detach()), "_nnz": _nnz,
    "crow_indices": _compressed_part("crow_indices", True, "_pointers"),
    "col_indices": _compressed_part("col_indices", True, "_others"),
    "ccol_indices": _compressed_part("ccol_indices", False, "_pointers"),
    "row_indices": _compressed_part("row_indices", False, "_others"),
    "sparse_dim": sparse_dim, "dense_dim": dense_dim, "_dimI": sparse_dim, "_dimV": dense_dim,
    "to_sparse": to_sparse, "to_sparse_coo": to_sparse_coo, "sparse_mask": sparse_mask,
    **{convert.__name__: convert for convert in CONVERTERS},
})


def _copied_part(name):
    def get(input):
        return METHODS[name](input).clone()

    get.__name__ = get.__qualname__ = name + "_copy"
    get.__doc__ = f"A copy of Tensor.{name}(). Source: PyTorch, torch.{name}_copy."
    plain(get)


for _name in ("indices", "values", "crow_indices", "col_indices", "ccol_indices", "row_indices"):
    _copied_part(_name)
for _name, _function in {"smm": products.smm, "hspmm": products.hspmm, "sspaddmm": products.sspaddmm}.items():
    plain(_function, name=_name)
METHODS.update(smm=products.smm, sspaddmm=products.sspaddmm)


def _matrix_product(name):
    def run(input, mat2):
        return call("mm", input, mat2)

    run.__name__ = run.__qualname__ = name
    run.__doc__ = f"The product of two matrices, one of them sparse. Source: PyTorch, torch.{name}."
    plain(run)


for _name in ("spmm", "dsmm", "hsmm"):
    if _name not in OPERATORS:
        _matrix_product(_name)


def saddmm(input, mat1, mat2, *, beta=1, alpha=1):
    """The old name of torch.addmm for sparse matrices. Source: PyTorch, torch.saddmm."""
    return call("addmm", input, mat1, mat2, beta=beta, alpha=alpha)


plain(saddmm)


# ------------------------------------------------------------------------------------------------ size
def _resize_parts(self, size, sparse, dense, clear):
    size = tuple(arguments.integers(size))
    if sparse + dense != len(size):
        raise RuntimeError(f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse}, "
                           f"dense_dim = {dense}")
    _refuse_leaf(self)
    if clear or not self._places._size[1]:
        elements = from_array(np.zeros((0, *size[sparse:]), self._dtype.numpy), self._dtype)
        self._take(SparseTensor._of(np.zeros((sparse, 0), np.int64), elements, size, True))
        return self
    if sparse != self._places._size[0] or dense != self._elements.ndim - 1:
        raise RuntimeError("changing the number of sparse or dense dimensions on a non-empty sparse tensor is not supported; "
                           "sparse_resize_and_clear_ does it")
    if any(new < old for new, old in zip(size[:sparse], self._size[:sparse])):
        raise RuntimeError("shrinking the size of sparse dimensions on a non-empty sparse tensor is not supported")
    elements = self._elements
    if size[sparse:] != tuple(self._size[sparse:]):
        made = np.zeros((elements._size[0], *size[sparse:]), self._dtype.numpy)
        both = tuple([slice(min(a, b)) for a, b in zip(made.shape, elements._size)])
        made[both] = elements.value.numpy[both]
        elements = from_array(made, self._dtype)
    self._take(SparseTensor._of(self._places, elements, size, self._coalesced))
    return self


def sparse_resize_(self, size, sparse_dim, dense_dim):
    """Another size that keeps the elements. Source: PyTorch, Tensor.sparse_resize_."""
    return _resize_parts(_sparse(self, "sparse_resize_"), size, sparse_dim, dense_dim, False)


def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
    """Another size, without elements. Source: PyTorch, Tensor.sparse_resize_and_clear_."""
    return _resize_parts(_sparse(self, "sparse_resize_and_clear_"), size, sparse_dim, dense_dim, True)


def resize_as_sparse_(self, other):
    """The size of another sparse tensor. Source: PyTorch, Tensor.resize_as_sparse_."""
    other = _sparse(other, "resize_as_sparse_")
    if self._size == other._size:
        return self
    return _resize_parts(_sparse(self, "resize_as_sparse_"), other._size, other._places._size[0], other._elements.ndim - 1, False)


def _sparse(tensor, name):
    if not isinstance(tensor, SparseTensor):
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: it is a method of sparse COO "
                                  "tensors")
    return tensor


for _function in (sparse_resize_, sparse_resize_and_clear_, resize_as_sparse_):
    METHODS[_function.__name__] = _function
plain(resize_as_sparse_)


# ------------------------------------------------------------------------------------------------ text and copies
def _part_text(label, tensor, indent):
    at = indent + len(f"{label}=tensor(")
    array = tensor.detach().value.numpy
    body = printing.format_values(array, at) if array.size else f"[], size={tuple(array.shape)}"
    return f"{label}=tensor({body})"


def _parts(self):
    if isinstance(self, SparseTensor):
        return [("indices", self._places), ("values", self._elements)]
    names = ("crow_indices", "col_indices") if self._order in BY_ROW else ("ccol_indices", "row_indices")
    return [(names[0], self._pointers), (names[1], self._others), ("values", self._elements)]


def text(self, *, tensor_contents=None):
    """As PyTorch prints a sparse tensor: its parts, then size, number of elements, layout."""
    indent = len("tensor(")
    contents = (",\n" + " " * indent).join([_part_text(name, part, indent) for name, part in _parts(self)])
    grad_fn = self.grad_fn
    shown = self.device if self.device.type != current_device().type else None
    return printing.format_tensor(
        None, self._dtype, shape=self._size, requires_grad=self.requires_grad, device=shown,
        grad_fn_name=grad_fn and type(grad_fn).__name__, is_parameter=getattr(self, "_is_param", False),
        contents=contents, facts=(f"size={tuple(self._size)}", f"nnz={_nnz(self)}"), layout=self.layout)


def deep_copy(self, memo):
    """A copy with parts of its own. Source: PyTorch, Tensor.__deepcopy__."""
    if not self.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.")
    if id(self) in memo:
        return memo[id(self)]
    made = call("clone", self.detach())
    if self.requires_grad:
        made.requires_grad_()
    if self.grad is not None:
        made.grad = copy.deepcopy(self.grad, memo)
    memo[id(self)] = made
    return made


def convert(self, dtype=None, device=None, copied=False):
    """`Tensor.to` of sparse tensors."""
    made = self if dtype is None or dtype is self._dtype else converted(self, dtype)
    if copied and made is self:
        made = call("clone", self)
    if device is not None and device != made.device:
        made = made._like(place(made._elements, device))
    return made


def type_name(self, dtype=None, non_blocking=False, **kwargs):
    """The type's name, or the tensor in another type. Source: PyTorch, Tensor.type."""
    if dtype is None:
        if isinstance(self, CompressedTensor):
            raise RuntimeError(f"Unimplemented backend {self._backend}")
        return f"torch.sparse.{self._dtype.scalar_name}Tensor"
    return convert(self, named_type(dtype))


def _caster(dtype):
    def cast(self, memory_format=None):
        return convert(self, dtype)

    return cast


def item(self):
    """The one element as a Python number. Source: PyTorch, Tensor.item."""
    if self.numel() != 1:
        raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
    return to_dense(self).item()


def setitem(self, key, new):
    raise refusal("index_put_", self, "sparse tensors are not written to by index; build them anew")


def copy_(self, src, non_blocking=False):
    """The data of another sparse tensor of the same layout. Source: PyTorch, Tensor.copy_."""
    if not isinstance(src, type(self)):
        names = [t.type() if isinstance(t, (SparseTensor,)) or not t._compound else repr(t.layout) for t in (self, src)]
        raise RuntimeError(f"copy_() between dense and sparse Tensors is not implemented! Found self type = {names[0]} and src type = "
                           f"{names[1]}")
    _refuse_leaf(self)
    if self._size != src._size and self._size.numel():
        raise RuntimeError(f"copy_(): the sizes {list(self._size)} and {list(src._size)} differ")
    made = convert(call("clone", src), self._dtype)
    self._take(made)
    return self


def coalesced_(self, coalesced):
    """Say whether the indices are sorted and each there once. Source: PyTorch, Tensor._coalesced_."""
    self._coalesced = bool(coalesced)
    return self


def _new(name, refused=False):
    def new(self, *size, dtype=None, device=None, layout=None, pin_memory=False, requires_grad=False):
        if refused:
            raise refusal("fill_.Scalar", self)
        size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        return empty_sparse(tuple(arguments.integers(size)), dtype or self._dtype, layout or self.layout, device, requires_grad)

    new.__name__ = name
    return new


def fill_(self, value):
    raise refusal("fill_.Scalar", self)


def resize_(self, *size, memory_format=None):
    raise refusal("resize_", self, "sparse_resize_ changes the size of a sparse tensor")


def zero_(self):
    """No elements, or those of a compressed tensor set to zero. Source: PyTorch, Tensor.zero_."""
    _refuse_leaf(self)
    return TABLES[type(self)]["zero_"](self=self)


def fill_elements_(self, value):
    """Every element that is there set to one number. Source: PyTorch, Tensor.fill_."""
    _refuse_leaf(self)
    self._elements.fill_(value)
    return self


def _refuse_leaf(self):
    if self.requires_grad and self.is_leaf:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def no_strides(self, dim=None):
    raise RuntimeError("Sparse CSR tensors do not have strides")


_SHARED = {
    "__repr__": text, "__deepcopy__": deep_copy, "type": type_name, "item": item, "copy_": copy_, "to_dense": to_dense,
    "__getitem__": getitem, "__setitem__": setitem, "new_zeros": _new("new_zeros"), "new_empty": _new("new_empty"),
    "new_ones": _new("new_ones", True), "new_full": _new("new_full", True), "_converted": convert,
    "fill_": fill_, "zero_": zero_, "resize_": resize_, "share_memory_": lambda self: self._history,
    "cuda": lambda self, device=None, non_blocking=False, memory_format=None: convert(self, device=arguments.device("cuda")),
}


def _transposed(self):
    return call("permute", self, tuple(range(self.ndim))[::-1])


def install():
    """Attach all this to the classes."""
    for cls in (SparseTensor, CompressedTensor):
        for name, function in _SHARED.items():
            setattr(cls, name, function)
    SparseTensor._coalesced_ = coalesced_
    SparseTensor.T = property(_transposed)
    CompressedTensor.stride = no_strides
    CompressedTensor.fill_ = fill_elements_
    Tensor.is_sparse_csr = False


implement(SparseTensor, CompressedTensor, names="numel")(lambda self: self._size.numel())
install()
