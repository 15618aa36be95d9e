"""torch.fx.immutable_collections: the lists and dicts in a node's arguments, which only the node may change."""

from ..utils import _pytree

__all__ = ["immutable_dict", "immutable_list"]


def _forbid(kind, names):
    def refuse(self, *args, **kwargs):
        raise NotImplementedError(f"'{type(self).__name__}' object does not support mutation. If you are attempting to modify "
                                  f"the kwargs or "
                                  "args of a torch.fx.Node object,\ninstead create a new copy of it and assign the copy to the "
                                  "node:\n    "
                                  "new_args = ... # copy and mutate args\n    node.args = new_args")

    for name in names.split():
        setattr(kind, name, refuse)
    return kind


class immutable_list(list):
    """A list that cannot be changed. Source: PyTorch, torch.fx.immutable_collections.immutable_list."""

    def __reduce__(self):
        return immutable_list, (tuple(self),)

    def __hash__(self):
        return hash(tuple(self))


class immutable_dict(dict):
    """A dict that cannot be changed. Source: PyTorch, torch.fx.immutable_collections.immutable_dict."""

    def __reduce__(self):
        return immutable_dict, (dict(self),)

    def __hash__(self):
        return hash(frozenset(self.items()))


_forbid(immutable_list, "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse sort")
_forbid(immutable_dict, "__delitem__ __ior__ __setitem__ clear pop popitem setdefault update")

_pytree.register_pytree_node(immutable_list, lambda x: (list(x), None), lambda children, _: immutable_list(children))
_pytree.register_pytree_node(immutable_dict, lambda x: (list(x.values()), list(x)), lambda v, k: immutable_dict(zip(k, v)))
