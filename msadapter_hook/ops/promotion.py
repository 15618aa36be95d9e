"""Type promotion of operands, as PyTorch does it: tensors with dimensions outweigh zero-dim tensors, and those numbers."""

from msadapter_hook import prims
from msadapter_hook.tape import Value, constant
from msadapter_hook.tensor import dtypes
from msadapter_hook.tensor.core import DTYPE_OF
from msadapter_hook.tensor.geometry import broadcast_shapes


def dtype_of(value) -> "dtypes.dtype":
    """Our dtype of a Value."""
    return DTYPE_OF[value.dtype]


def result_type(*operands):
    """The dtype (ours) of an operation over Values and Python numbers."""
    typed = []
    for x in operands:
        if isinstance(x, Value):
            typed.append((DTYPE_OF[x.dtype], dtypes.DIMENSIONED if x.shape else dtypes.ZERO_DIM))
        else:
            typed.append((dtypes.scalar_dtype(x), dtypes.WRAPPED))
    return dtypes.result_dtype(typed)


def to(value, dtype) -> Value:
    """A Value or number as a Value of `dtype` (ours)."""
    if isinstance(value, Value):
        return value if value.dtype == dtype.numpy else prims.cast(value, dtype=dtype.numpy)
    return constant(value, dtype.numpy)


def promote(*operands):
    """The operands as Values of their common dtype."""
    a = operands[0]
    if len(operands) == 2:
        b = operands[1]
        if isinstance(a, Value):
            if isinstance(b, Value):
                if a.dtype == b.dtype:
                    return a, b
            elif a.dtype.kind == "f" and type(b) in (float, int):
                return a, constant(b, a.dtype)
    dtype = result_type(*operands)
    return tuple([to(x, dtype) for x in operands])


def promote_floating(*operands):
    """As `promote`, integers and booleans becoming the default floating dtype."""
    dtype = result_type(*operands)
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = dtypes.get_default_dtype()
    return tuple([to(x, dtype) for x in operands])


def align(*operands):
    """As `promote`, for elementwise operators: RuntimeError in PyTorch's words where the shapes do not broadcast."""
    _check_shapes(operands)
    return promote(*operands)


def align_floating(*operands):
    """As `promote_floating`, for elementwise operators: RuntimeError where the shapes do not broadcast."""
    _check_shapes(operands)
    return promote_floating(*operands)


def _check_shapes(operands):
    shape = None
    for x in operands:
        if isinstance(x, Value):
            if shape is None:
                shape = x.shape
            elif x.shape != shape:
                shape = broadcast_shapes(shape, x.shape)


def floating(value: Value) -> Value:
    """`value`, integers and booleans as the default floating dtype."""
    if value.dtype.kind in "biu":
        return prims.cast(value, dtype=dtypes.get_default_dtype().numpy)
    return value


def is_floating(value: Value) -> bool:
    return DTYPE_OF[value.dtype].is_floating_point


def is_complex(value: Value) -> bool:
    return value.dtype.kind == "c"


def is_integral(value: Value, boolean=True) -> bool:
    return value.dtype.kind in ("biu" if boolean else "iu")
