"""Numerical derivatives of samples, after torch.gradient."""

from msadapter_hook.tensor import Tensor, dtypes
from msadapter_hook.tensor.geometry import wrap_dim

from .arguments import is_number
from .registry import composite
from .tables import call


def _dims(tensor, dim):
    if dim is None:
        return list(range(tensor.dim()))
    dims = [dim] if isinstance(dim, int) else list(dim)
    wrapped = [wrap_dim(d, tensor.dim()) for d in dims]
    for d in wrapped:
        if wrapped.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return wrapped


def _spacings(spacing, dims, asked):
    """One spacing (a number or a 1-D tensor of positions) for each dimension."""
    if spacing is None:
        return [1.0] * len(dims)
    if is_number(spacing) or isinstance(spacing, Tensor) and spacing.dim() == 0:
        return [spacing] * len(dims)
    found = [spacing] if isinstance(spacing, Tensor) else list(spacing)
    if len(found) != len(dims):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar or a list of length {len(dims)}, but got a list "
            f"of length {len(found)}"
            if not isinstance(spacing, Tensor)
            else f"torch.gradient expected spacing to be unspecified, a scalar, or it's spacing and dim arguments to have "
            f"the same length, but got a spacing argument of length {len(found)} and a dim argument of length "
            f"{len(dims)}."
        )
    return found


def _along(y, axis, spacing, edge_order):
    n = y._size[axis]

    def part(start, length):
        return y.narrow(axis, start, length)

    if isinstance(spacing, Tensor) and spacing.dim():
        steps = spacing.narrow(0, 1, n - 1) - spacing.narrow(0, 0, n - 1)
        shape = [-1 if i == axis else 1 for i in range(y.dim())]
        before, after = steps.narrow(0, 0, n - 2).reshape(shape), steps.narrow(0, 1, n - 2).reshape(shape)
        a = -after / (before * (before + after))
        b = (after - before) / (before * after)
        c = before / (after * (before + after))
        middle = part(0, n - 2) * a + part(1, n - 2) * b + part(2, n - 2) * c
        first, last = steps.narrow(0, 0, 1).reshape(shape), steps.narrow(0, n - 2, 1).reshape(shape)
        if edge_order == 1:
            left = (part(1, 1) - part(0, 1)) / first
            right = (part(n - 1, 1) - part(n - 2, 1)) / last
        else:
            second, earlier = steps.narrow(0, 1, 1).reshape(shape), steps.narrow(0, n - 3, 1).reshape(shape)
            left = (
                part(0, 1) * (-(first * 2 + second) / (first * (first + second)))
                + part(1, 1) * ((first + second) / (first * second))
                + part(2, 1) * (-first / (second * (first + second)))
            )
            right = (
                part(n - 3, 1) * (last / (earlier * (earlier + last)))
                + part(n - 2, 1) * (-(last + earlier) / (earlier * last))
                + part(n - 1, 1) * ((last * 2 + earlier) / (last * (earlier + last)))
            )
    else:
        middle = (part(2, n - 2) - part(0, n - 2)) / (spacing * 2)
        if edge_order == 1:
            left, right = (part(1, 1) - part(0, 1)) / spacing, (part(n - 1, 1) - part(n - 2, 1)) / spacing
        else:
            left = (part(0, 1) * -1.5 + part(1, 1) * 2 - part(2, 1) * 0.5) / spacing
            right = (part(n - 1, 1) * 1.5 - part(n - 2, 1) * 2 + part(n - 3, 1) * 0.5) / spacing
    return call("cat", [left, middle, right], axis)


@composite("gradient(Tensor self, *, any spacing=None, any dim=None, int edge_order=1) -> Tensor[]", forms="function")
def gradient(self, spacing=None, dim=None, edge_order=1):
    """Derivatives along dimensions by central differences, a list of tensors. Source: PyTorch, torch.gradient."""
    if self._dtype in (dtypes.uint8,):
        raise RuntimeError("torch.gradient does not support uint8 input.")
    dims = _dims(self, dim)
    spacings = _spacings(spacing, dims, dim)
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    for d in dims:
        if self._size[d] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple([_along(self, d, s, edge_order) for d, s in zip(dims, spacings)])
