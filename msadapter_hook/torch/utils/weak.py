# torch.utils.weak: dictionaries whose keys are objects by identity, held weakly; tensors compare by elements, so == cannot serve.
import weakref
from collections.abc import MutableMapping

from .. import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary", "WeakTensorRefKey"]


class WeakIdRef(weakref.ref):
    """A weak reference that hashes and compares by the identity of what it refers to. Source: PyTorch, torch.utils.weak.WeakIdRef."""

    __slots__ = ["_id"]

    def __init__(self, key, callback=None):
        self._id = id(key)
        super().__init__(key, callback)

    def __hash__(self):
        return self._id

    def __eq__(self, other):
        mine, theirs = self(), other()
        return mine is theirs if mine is not None and theirs is not None else self is other


WeakTensorRefKey = WeakIdRef


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary by the identity of its keys, which it does not keep alive. Source: PyTorch, torch.utils.weak."""

    def __init__(self, dict=None, ref_type=WeakIdRef):
        self.data = {}
        self.ref_type = ref_type
        home = weakref.ref(self)

        def forget(ref):
            alive = home()
            if alive is not None:
                alive.data.pop(ref, None)

        self._forget = forget
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key):
        return self.data[self.ref_type(key)]

    def __setitem__(self, key, value):
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key):
        del self.data[self.ref_type(key)]

    def __contains__(self, key):
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def __iter__(self):
        return iter([key for ref in list(self.data) for key in [ref()] if key is not None])

    def __len__(self):
        return len(self.data)

    def __repr__(self):
        return f"<{type(self).__name__} at {id(self):#x}>"

    def keyrefs(self):
        """The weak references to the keys."""
        return list(self.data)

    def copy(self):
        """Another dictionary with the same keys and values."""
        made = type(self)(ref_type=self.ref_type)
        for key in self:
            made[key] = self[key]
        return made

    __copy__ = copy

    def __ior__(self, other):
        self.update(other)
        return self


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor. Source: PyTorch, torch.utils.weak.TensorWeakRef."""

    def __init__(self, tensor):
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}")
        self.ref = weakref.ref(tensor)

    def __call__(self):
        return self.ref()
