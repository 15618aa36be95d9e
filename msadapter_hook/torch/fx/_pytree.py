"""torch.fx._pytree: containers flattened by a spec that is given, for graphs whose inputs are nested."""

from ..utils._pytree import SUPPORTED_NODES as _NODES
from ..utils._pytree import _get_node_type

SUPPORTED_NODES = {}
SUPPORTED_NODES_EXACT_MATCH = {}


def register_pytree_flatten_spec(cls, flatten_fn_spec, flatten_fn_exact_match_spec=None):
    """How a container of a type gives its children: `flatten_fn_spec(obj, spec) -> list`; the second function tells whether an
    object has exactly the form of a spec. Source: PyTorch, torch.fx._pytree.register_pytree_flatten_spec."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def tree_flatten_spec(pytree, spec):
    """The leaves of `pytree` in the form of `spec`. RuntimeError where a type is not registered. Source: PyTorch,
    torch.fx._pytree.tree_flatten_spec."""
    if spec.is_leaf():
        return [pytree]
    kind = spec.type
    if kind in SUPPORTED_NODES:
        children = SUPPORTED_NODES[kind](pytree, spec)
    elif kind in _NODES and _get_node_type(pytree) is kind:
        children = _NODES[kind].flatten_fn(pytree)[0]
    else:
        raise RuntimeError(f"{type(pytree)} does not have a flatten_fn_spec associated with it. Please register one with "
                           "torch.fx._pytree.register_pytree_flatten_spec.")
    return [leaf for child, below in zip(children, spec.children()) for leaf in tree_flatten_spec(child, below)]
