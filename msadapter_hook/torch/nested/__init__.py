"""torch.nested: batches of tensors whose sizes differ."""

from importlib import import_module as _import_module

from msadapter_hook.ops.nested.jagged import JaggedTensor as _Jagged
from msadapter_hook.ops.nested.jagged import jagged_of_list as _jagged_of_list
from msadapter_hook.ops.nested.jagged import offsets_of as _offsets_of
from msadapter_hook.ops.nested.strided import nested_of_list as _nested_of_list

_torch = _import_module("..", __package__)  # the root that this tree is served under
_internal = _import_module("._internal", __package__)

__all__ = ["to_padded_tensor", "as_nested_tensor", "nested_tensor", "nested_tensor_from_jagged", "narrow", "masked_select"]


def _wrong_layout(name, layout):
    return RuntimeError(f"Specified layout is unsupported for nested tensors: {layout} ({name})")


def _tensors(tensor_list, dtype):
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    made = [t if isinstance(t, _torch.Tensor) else _torch.as_tensor(t, dtype=dtype) for t in tensor_list]
    return [t if dtype is None else t.to(dtype) for t in made]


def nested_tensor(tensor_list, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A nested tensor with a copy of the tensors (or data) in the list, a leaf. `layout`: torch.strided, the default, or torch.jagged,
    whose tensors differ in their first dimension only. TypeError and RuntimeError where the list cannot be one.

    Source: PyTorch, torch.nested.nested_tensor.
    """
    layout = layout or _torch.strided
    if layout is _torch.strided:
        return _nested_of_list(tensor_list, dtype, device, requires_grad, False)
    if layout is not _torch.jagged:
        raise _wrong_layout("nested_tensor", layout)
    pieces = [t.detach() for t in _tensors(tensor_list, dtype)]
    return _jagged_of_list([t.to(device) for t in pieces] if device is not None else pieces, False, requires_grad)


def as_nested_tensor(ts, dtype=None, device=None, layout=None):
    """A nested tensor of a list of tensors, or of the rows of a dense one, that keeps their history.

    Source: PyTorch, torch.nested.as_nested_tensor.
    """
    if isinstance(ts, _torch.Tensor):
        layout = layout or _torch.strided
        if ts.is_nested:
            if layout is not ts.layout:
                raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
            return ts.to(device=device, dtype=dtype)
        if ts.dim() < 1:
            raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 0")
        ts = list(ts.unbind(0))
    elif not isinstance(ts, (list, tuple)):
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    if isinstance(ts, (list, tuple)) and not all(isinstance(t, _torch.Tensor) for t in ts):
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    layout = layout or _torch.strided
    if layout is _torch.strided:
        return _nested_of_list(list(ts), dtype, device, False, True)
    if layout is not _torch.jagged:
        raise _wrong_layout("as_nested_tensor", layout)
    return _jagged_of_list([t.to(device=device, dtype=dtype) for t in ts], True)


def to_padded_tensor(input, padding, output_size=None, out=None):
    """A dense tensor of the largest sizes (or `output_size`), filled up with `padding`. Source: PyTorch, torch.nested.to_padded_tensor."""
    made = input.to_padded_tensor(padding, output_size)
    return made if out is None else out.copy_(made)


def nested_tensor_from_jagged(values, offsets=None, lengths=None, jagged_dim=None, min_seqlen=None, max_seqlen=None):
    """A jagged tensor over `values`: rows `offsets[i]` to `offsets[i + 1]` (or the next `lengths[i]`) are its tensor i.

    Source: PyTorch, torch.nested.nested_tensor_from_jagged.
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets, lengths = _offsets_of(lengths.tolist()), None
    if lengths is not None and lengths.tolist() != offsets.diff().tolist():
        raise NotImplementedError("torch.nested.nested_tensor_from_jagged: tensors with gaps between them (lengths beside offsets) are not "
                                  "supported; leave the gaps out of values")
    return _Jagged._of(values, offsets, 1 if jagged_dim is None else jagged_dim)


def narrow(tensor, dim, start, length, layout=None):
    """The nested tensor of the parts `start[i]` to `start[i] + length[i]` along dimension 1 of each row of a dense tensor.

    Source: PyTorch, torch.nested.narrow.
    """
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    starts, lengths = (x.tolist() if isinstance(x, _torch.Tensor) else [x] * tensor.size(0) for x in (start, length))
    pieces = [row.narrow(0, s, n) for row, s, n in zip(tensor, starts, lengths)]
    if layout is _torch.jagged:
        return _jagged_of_list(pieces, True)
    if layout in (None, _torch.strided):
        return as_nested_tensor(pieces)
    raise _wrong_layout("narrow", layout)


def masked_select(tensor, mask):
    """The jagged tensor of the elements of each row of a dense tensor that a boolean mask chooses. Source: PyTorch,
    torch.nested.masked_select."""
    if tensor.layout is not _torch.strided or tensor.is_nested:
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}")
    if mask.layout is not _torch.strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided mask, given: {mask.layout}")
    spread = mask.expand(tensor.shape)
    lengths = spread.reshape(tensor.size(0), -1).sum(1) if tensor.dim() > 1 else spread.sum(0, keepdim=True)
    return _Jagged._of(tensor.masked_select(mask), _offsets_of(lengths.tolist()))
