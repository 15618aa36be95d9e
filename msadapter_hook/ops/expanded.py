# In-place operators that PyTorch allows on expanded tensors, where several elements are one number in memory: filling, and, with
# a warning, filling by mask or index and writing at indices. Each runs on the tensor without the repetitions.
import warnings

import numpy as np

from msadapter_hook.tensor import detached, from_array

from .tables import METHODS


def is_expanded(tensor):
    """Whether a dimension of several elements repeats one number."""
    return any(s == 0 and n > 1 for n, s in zip(tensor._size, tensor._stride))


def once(tensor):
    """The view of an expanded tensor with its first element along each repeated dimension."""
    for d, (n, s) in enumerate(zip(tensor._size, tensor._stride)):
        if s == 0 and n > 1:
            tensor = tensor.narrow(d, 0, 1)
    return tensor


def warn(name):
    """PyTorch's warning that writing to an expanded tensor by `name` is deprecated."""
    warnings.warn(f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
                  "This also applies to advanced indexing e.g. tensor[indices] = tensor", UserWarning, stacklevel=4)


def any_place(tensor, mask):
    """For each number in memory, whether the mask holds at one of its places in the expanded tensor."""
    return mask.any(dim=[d for d, (n, s) in enumerate(zip(tensor._size, tensor._stride)) if s == 0 and n > 1], keepdim=True)


def masked_fill_(self, mask, value):
    """A number is filled where the mask holds for one of its places."""
    warn("masked_fill_")
    METHODS["masked_fill_"](once(self), any_place(self, mask.expand(self._size)), value)
    return self


def index_fill_(self, dim, index, value):
    """Along a repeated dimension every index is of the one number."""
    warn("index_fill_")
    d = dim % max(self.dim(), 1)
    if self._stride[d] == 0 and self._size[d] > 1:
        at = detached(index).numpy
        if not (at.size and (at.min() < -self._size[d] or at.max() >= self._size[d])):
            index = index * 0
    METHODS["index_fill_"](once(self), dim, index, value)
    return self


def index_put_(self, indices, values, accumulate=False):
    """Every index becomes that of the number in memory."""
    warn("index_put_")
    target = once(self)
    places = np.arange(target.numel()).reshape(target._size)
    at = from_array(places.copy()).expand(self._size)[tuple([slice(None) if i is None else i for i in indices])]
    where = np.unravel_index(detached(at).numpy, target._size)
    METHODS["index_put_"](target, [from_array(np.ascontiguousarray(w)) for w in where], values, accumulate)
    return self


ON_EXPANDED = {"masked_fill_": masked_fill_, "index_fill_": index_fill_}  # what the registry's in-place methods ask
