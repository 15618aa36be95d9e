"""Dense tensors that were made sparse, and their gradients. Where PyTorch's gradient does not keep to the places of the elements (sums,
products by mm, sums with dense tensors) it reaches the zeros of the dense tensor too; so what was made of a dense tensor that requires
grad remembers it, and these operators record the dense form under the numbers of the sparse one."""

from msadapter_hook import prims
from msadapter_hook.tensor import Tensor


def origin_of(tensor):
    """The dense tensor that a sparse one is another form of, where it requires grad; else None."""
    return tensor.__dict__.get("_origin") if isinstance(tensor, Tensor) and tensor._compound else None


def remember(made, origin):
    """`made` as another form of the dense `origin`."""
    if origin is not None and origin.requires_grad:
        made.__dict__["_origin"] = origin
    return made


def follow(made, function, *operands):
    """`made`, computed from sparse operands, as another form of `function` of their dense forms."""
    if any(origin_of(t) is not None for t in operands):
        remember(made, function(*[dense_form(t) for t in operands]))
    return made


def dense_form(tensor):
    """The dense tensor behind a sparse one, made where there is none; any other operand itself."""
    if not (isinstance(tensor, Tensor) and tensor._compound):
        return tensor
    origin = origin_of(tensor)
    return tensor.to_dense() if origin is None else origin


def recorded(value, function, *operands):
    """The Value of a dense result, recorded as `function` of the dense forms where one of the operands has an origin."""
    if not value.requires_grad or all(origin_of(t) is None for t in operands):
        return value
    return prims.graft(function(*[dense_form(t) for t in operands]).value, value.detach())
