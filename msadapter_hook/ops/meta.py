"""Tensors of the device "meta": shapes, dtypes and strides without data. How factories make them, how others become them."""

import functools

import numpy as np

from msadapter_hook.tape import Node, Primitive, no_grad, value_of
from msadapter_hook.tape.abstract import NO_DATA, Meta
from msadapter_hook.tape.recording import state
from msadapter_hook.tensor import Tensor, dtypes, geometry
from msadapter_hook.tensor.device import cpu, current_device
from msadapter_hook.tensor.formats import like_geometry
from msadapter_hook.tensor.geometry import wrap_dim


def without_data(size, dtype, stride=None):
    """A new tensor of the device "meta". RuntimeError for a negative dimension."""
    size = tuple(size)
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    return Tensor._make(Meta(size, dtype.numpy), dtype, stride)


def _no_way_back(grads, outs, needs, *inputs):
    raise NotImplementedError(NO_DATA)


_moved = Primitive("to_meta", lambda a: a, joint_vjp=_no_way_back, uses_output=False)


def moved(tensor):
    """`tensor` on the device "meta": its geometry, no data."""
    value = Meta(tuple(tensor._size), tensor._dtype.numpy)
    if state.enabled and tensor.requires_grad:
        node = Node(_moved, {}, (tensor.value,), False)
        node.operator = "ToCopyBackward0"
        value.node, value.requires_grad = node, True
        node.bind([value])
    dense = geometry.is_dense(tensor._size, tensor._stride) and not geometry.overlaps(tensor._size, tensor._stride)
    return Tensor._make(value, tensor._dtype, tensor._stride if dense else None)


def asked(overload, bound):
    """Whether a factory is to make a tensor without data."""
    device = bound[overload.positions["device"]]
    if device is None:
        first = bound[0] if bound else None
        device = first.device if isinstance(first, Tensor) and overload.tensors[:1] == (0,) else current_device()
    return device.type == "meta"


def aware(overload, body):
    """The body of a factory that also makes tensors without data."""

    @functools.wraps(body)
    def made(*bound):
        return factory(overload, body, bound) if asked(overload, bound) else body(*bound)

    return made


def factory(overload, body, bound):
    """What a factory gives for the device "meta". Nothing is drawn from the generator."""
    given = {name: bound[at] for name, at in overload.positions.items()}
    name = overload.schema.name
    like = bound[0] if overload.tensors[:1] == (0,) else None
    size = given.get("size")
    if name == "randperm":
        size = (given["n"],)
    elif name == "eye":
        size = (given["n"], given["n"] if given.get("m") is None else given["m"])
    elif size is None and name.endswith("_like"):
        size = like._size
    if size is None:  # ranges and the like: small, and their lengths follow from numbers
        at = overload.positions["device"]
        return moved(body(*bound[:at], cpu, *bound[at + 1:]))
    dtype = given["dtype"]
    if dtype is None:
        if like is not None:
            dtype = like._dtype
        elif name == "full":
            dtype = dtypes.scalar_dtype(given["fill_value"])
        else:
            dtype = dtypes.int64 if name in ("randint", "randperm") else dtypes.get_default_dtype()
    made = without_data(size, dtype, _stride(name, size, given, like))
    return made.requires_grad_() if given.get("requires_grad") else made


def _stride(name, size, given, like):
    if "stride" in given:
        return tuple(given["stride"])
    if "physical_layout" in given:
        return geometry.permuted_stride(size, given["physical_layout"])
    memory_format = given.get("memory_format")
    if like is not None and name.endswith("_like"):
        return like_geometry(like, memory_format)
    if memory_format in (dtypes.channels_last, dtypes.channels_last_3d):
        return geometry.channels_last_stride(size)
    return None



# ------------------------------------------------------------------------------------------------ operators that read data
_FEW = 1 << 22  # elements of zeros that an operator may be run on to learn what its results look like
_BY_DATA = frozenset(  # operators whose results' shapes, or very results, only the data could tell
    "allclose argwhere bincount combinations equal histc histogram histogramdd is_nonzero linalg.matrix_rank masked_scatter "
    "masked_select nonzero nonzero_static repeat_interleave take_along_dim unique unique_consecutive unique_dim _unique2 "
    "_sorting._distinct nn.functional.one_hot".split())


def _reduced(shape, dim, keepdim):
    if dim is None:
        return (1,) * len(shape) if keepdim else ()
    d = wrap_dim(dim, len(shape))
    return shape[:d] + ((1,) if keepdim else ()) + shape[d + 1:]


def _resized(shape, dim, n):
    if not shape:
        return shape
    d = wrap_dim(dim, len(shape))
    return shape[:d] + (n,) + shape[d + 1:]


def _class_loss(a):
    shape = a["input"]
    return [(shape[:1] * (len(shape) > 1) + shape[2:] if a["reduction"] == "none" else (), None)]


def _ordered(a):
    return [(a["self"], None), (a["self"], np.int64)]


def _picked(a):
    shape = _reduced(a["self"], a.get("dim"), a.get("keepdim", False))
    return [(shape, None)] if a.get("dim") is None else [(shape, None), (shape, np.int64)]


_LOOKS = {  # (shape, dtype; None: that of the first input) of each result, from the shapes of tensors and the other arguments
    "sort": _ordered, "cummax": _ordered, "cummin": _ordered,
    "msort": lambda a: [(a["self"], None)], "argsort": lambda a: [(a["self"], np.int64)],
    "max": _picked, "min": _picked, "median": _picked, "nanmedian": _picked, "mode": _picked, "kthvalue": _picked,
    "argmax": lambda a: [(_reduced(a["self"], a["dim"], a["keepdim"]), np.int64)],
    "argmin": lambda a: [(_reduced(a["self"], a["dim"], a["keepdim"]), np.int64)],
    "topk": lambda a: [(_resized(a["self"], a["dim"], a["k"]), None), (_resized(a["self"], a["dim"], a["k"]), np.int64)],
    "gather": lambda a: [(a["index"], None)],
    "index_select": lambda a: [(_resized(a["self"], a["dim"], int(np.prod(a["index"], dtype=np.int64))), None)],
    "take": lambda a: [(a["index"], None)],
    "embedding": lambda a: [(a["indices"] + a["weight"][1:], None)],
    "bernoulli": lambda a: [(a["self"], None)], "poisson": lambda a: [(a["self"], None)],
    "nn.functional.cross_entropy": _class_loss, "nn.functional.nll_loss": _class_loss,
    "multinomial": lambda a: [(a["self"][:-1] + (a["num_samples"],), np.int64)],
}


def _opaque(grads, outs, needs, *inputs):
    return [Meta(v.shape, v.dtype) if need else None for v, need in zip(inputs, needs)]


_shaped = Primitive("shaped", lambda *a: a[0], joint_vjp=_opaque, uses_output=False, outputs=None)


def inferred(overload, bound, error):
    """The results of an operator that asked for data it does not have: without data too, where their shapes can be told.

    `error` is what it met. NotImplementedError where they cannot.
    """
    name = overload.schema.name
    if name in _BY_DATA:
        raise NotImplementedError(f"aten::{name}: attempted to run this operator with Meta tensors, but there is no Meta kernel: "
                                  "what it gives depends on the data") from None
    values = [t.value for i in overload.tensors for t in [bound[i]] if isinstance(t, Tensor)]
    values += [t.value for i in overload.lists for t in bound[i] if t is not None]
    if not any(v.abstract and not v.wrapped for v in values):
        raise error
    rule = _LOOKS.get(name)
    if rule is not None:
        given = {name: tuple(bound[at]._size) if isinstance(bound[at], Tensor) else bound[at]
                 for name, at in overload.positions.items()}
        first = bound[overload.positions["weight"] if name == "embedding" else 0]
        looks = [(tuple(shape), np.dtype(dtype or first._dtype.numpy)) for shape, dtype in rule(given)]
    else:
        looks = _on_zeros(overload, bound, values, error)
    requires = state.enabled and any(v.requires_grad for v in values)
    node = Node(_shaped, {}, tuple(values), False) if requires else None
    made = [Meta(shape, dtype, None, None, node, i, requires and dtype.kind in "fcV") for i, (shape, dtype) in enumerate(looks)]
    if node is not None:
        node.bind(made)
        node.operator = overload.name_of(made[0], bound)
    tensors = [Tensor._make(v) for v in made]
    if len(tensors) == 1:
        return tensors[0]
    return overload.results(*tensors) if overload.results is not None else tuple(tensors)


def _on_zeros(overload, bound, values, error):
    """What the results look like when the operator is run on zeros."""
    if sum([v.size for v in values]) > _FEW:
        raise NotImplementedError(f"aten::{overload.schema.name}: its results' shapes are not known without data for inputs of this "
                                  "size") from None

    def dummy(t):
        if isinstance(t, Tensor) and t.is_meta:
            return Tensor._make(value_of(np.zeros(t._size, t._dtype.numpy)), t._dtype)
        return [dummy(x) for x in t] if isinstance(t, (list, tuple)) and any(isinstance(x, Tensor) for x in t) else t

    with no_grad():
        found = overload.run(tuple([dummy(b) for b in bound]))
    found = found if isinstance(found, (tuple, list)) else (found,)
    if not all(isinstance(t, Tensor) for t in found):
        raise error
    return [(tuple(t._size), t._dtype.numpy) for t in found]
