"""Calls in which more than plain tensors take part: who is asked, in which order.

`__torch_function__` of subclasses first, then the tables of compound tensors (sparse, nested), then `__torch_dispatch__`.
"""

from msadapter_hook.tensor import Tensor

from . import compound, dispatch, overrides
from .tables import interceptors
from .writing import check_inplace, write_inplace


def _all(overload, bound):
    every = [t for i in overload.tensors for t in [bound[i]] if isinstance(t, Tensor)]
    return every + [t for i in overload.lists for t in bound[i] if t is not None]


NOBODY = object()  # nobody has a say: the call goes on as with plain tensors


def _intercepted(entry, overload, bound):
    for interceptor in interceptors:
        bound = interceptor(entry, overload, bound) or bound
    return bound


def call(entry, overload, bound, args, kwargs):
    """An operator's result where one of its arguments is of a subclass that may want a say."""
    every = _all(overload, bound)
    if not overrides.state.disabled and any(t._asks for t in every):
        return overrides.call_override(entry.function, every, args, kwargs)
    found = [t for t in every if t._compound]
    if found:
        return compound.run(entry, overload, bound, found)
    if dispatch.active(every):
        return dispatch.operator(entry, overload, _intercepted(entry, overload, bound))
    return NOBODY


def call_inplace(method, entry, overload, bound, args, kwargs):
    """The same for the in-place form."""
    every = _all(overload, bound)
    if not overrides.state.disabled and any(t._asks for t in every):
        return overrides.call_override(method, every, args, kwargs)
    if any(t._compound for t in every):
        return compound.run_inplace(entry, overload, bound, check_inplace, write_inplace)
    if dispatch.active(every):
        return dispatch.operator(entry, overload, bound, inplace=True)
    return NOBODY
