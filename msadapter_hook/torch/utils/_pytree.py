# Trees of Python containers: flatten to leaves and a spec, put together again, map. Lists, tuples, dicts, OrderedDicts,
# defaultdicts, deques and named tuples are nodes; others register themselves.
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = [
    "PyTree",
    "Context",
    "TreeSpec",
    "LeafSpec",
    "register_pytree_node",
    "tree_is_leaf",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_structure",
    "tree_unflatten",
    "tree_map",
    "tree_map_",
    "tree_map_with_path",
    "tree_map_only",
    "tree_map_only_",
    "tree_all",
    "tree_any",
    "tree_all_only",
    "tree_any_only",
    "tree_iter",
    "keystr",
    "key_get",
]

PyTree = Any
Context = Any


class NodeDef(NamedTuple):
    """How a type is taken apart and put together."""

    type: type
    flatten_fn: Any
    unflatten_fn: Any
    flatten_with_keys_fn: Any


@dataclass(frozen=True)
class SequenceKey:
    """An index into a sequence."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        """The element."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """A key of a mapping."""

    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        """The value."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """A field."""

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        """The field's value."""
        return getattr(obj, self.name)


SUPPORTED_NODES = {}
BUILTIN_TYPES = {tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque}


def register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
):
    """Makes a type a node: `flatten_fn(obj) -> (children, context)`, `unflatten_fn(children, context) -> obj`.

    ValueError when the type is one already.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


_register_pytree_node = register_pytree_node


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None):
    """Makes a dataclass a node whose children are its fields."""
    import dataclasses

    dropped = set(drop_field_names or ())
    names = list(field_names or (f.name for f in dataclasses.fields(cls) if f.init and f.name not in dropped))

    def flatten(obj):
        return [getattr(obj, name) for name in names], names

    register_pytree_node(cls, flatten, lambda values, context: cls(**dict(zip(context, values))))


def _sequence_keys(flatten):
    def with_keys(obj):
        values, context = flatten(obj)
        return [(SequenceKey(i), value) for i, value in enumerate(values)], context

    return with_keys


def _mapping_keys(flatten):
    def with_keys(obj):
        values, context = flatten(obj)
        return list(zip([MappingKey(key) for key in obj], values)), context

    return with_keys


def _flatten_mapping(obj):
    return list(obj.values()), list(obj.keys())


def _flatten_defaultdict(obj):
    return list(obj.values()), [obj.default_factory, list(obj.keys())]


def _unflatten_defaultdict(values, context):
    return defaultdict(context[0], zip(context[1], values))


def _flatten_namedtuple(obj):
    return list(obj), type(obj)


def _namedtuple_keys(obj):
    return [(GetAttrKey(name), getattr(obj, name)) for name in obj._fields], type(obj)


def _sequence(cls):
    def flatten(obj):
        return list(obj), None

    register_pytree_node(
        cls, flatten, lambda values, context: cls(values), flatten_with_keys_fn=_sequence_keys(flatten)
    )


def _rebuilt(cls):
    return lambda values, context: cls(zip(context, values))


_sequence(list)
_sequence(tuple)
# Libraries register containers of their own by the functions of dict.
_dict_flatten, _dict_unflatten, _dict_flatten_with_keys = _flatten_mapping, _rebuilt(dict), _mapping_keys(_flatten_mapping)
register_pytree_node(
    deque,
    lambda d: (list(d), d.maxlen),
    lambda values, context: deque(values, maxlen=context),
    flatten_with_keys_fn=_sequence_keys(lambda d: (list(d), d.maxlen)),
)
for _cls in (dict, OrderedDict):
    register_pytree_node(
        _cls,
        _flatten_mapping,
        _rebuilt(_cls),
        flatten_with_keys_fn=_mapping_keys(_flatten_mapping),
    )
register_pytree_node(
    defaultdict,
    _flatten_defaultdict,
    _unflatten_defaultdict,
    flatten_with_keys_fn=_mapping_keys(_flatten_defaultdict),
)
register_pytree_node(
    namedtuple,
    _flatten_namedtuple,
    lambda values, context: context(*values),
    flatten_with_keys_fn=_namedtuple_keys,
)


def is_namedtuple_class(cls):
    """Whether a class was made by namedtuple or NamedTuple."""
    fields = getattr(cls, "_fields", None)
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(fields, tuple) and hasattr(cls, "_make")


def is_namedtuple(obj):
    """Whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def _get_node_type(tree):
    kind = type(tree)
    if kind not in SUPPORTED_NODES and is_namedtuple_class(kind):
        return namedtuple
    return kind


def tree_is_leaf(tree, is_leaf=None):
    """Whether a tree is a single leaf."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


class TreeSpec:
    """The shape of a tree: type, context and the specs of the children (PyTorch, torch.utils._pytree.TreeSpec)."""

    def __init__(self, type, context, children_specs):
        self.type = type
        self.context = context
        self.children_specs = list(children_specs)
        self.num_nodes = 1 + sum(child.num_nodes for child in self.children_specs)
        self.num_leaves = sum(child.num_leaves for child in self.children_specs)
        self.num_children = len(self.children_specs)

    def is_leaf(self):
        """Whether this is a leaf's spec."""
        return self.type is None

    def children(self):
        """The children's specs."""
        return list(self.children_specs)

    def child(self, index):
        """One child's spec."""
        return self.children_specs[index]

    def unflatten(self, leaves):
        """The tree of this shape with the given leaves. ValueError for a wrong number of them."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves):
        if self.type is None:
            return next(leaves)
        values = [child._build(leaves) for child in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(values, self.context)

    def flatten_up_to(self, tree):
        """The subtrees of `tree` at this spec's leaves. ValueError where the shapes differ."""
        out = []
        self._up_to(tree, out)
        return out

    def _up_to(self, tree, out):
        if self.type is None:
            out.append(tree)
            return
        kind = _get_node_type(tree)
        if kind is not self.type:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        values, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(values) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(values)}.")
        if kind in (dict, OrderedDict) and set(context) != set(self.context):
            missing, extra = set(self.context) - set(context), set(context) - set(self.context)
            message = "Node keys mismatch"
            if missing:
                message += f"; missing key(s): {missing}"
            if extra:
                message += f"; extra key(s): {extra}"
            raise ValueError(message + ".")
        if kind in (dict, OrderedDict):
            values = [tree[key] for key in self.context]
        for child, value in zip(self.children_specs, values):
            child._up_to(value, out)

    def __eq__(self, other):
        return (
            isinstance(other, TreeSpec)
            and self.type is other.type
            and self.context == other.context
            and self.children_specs == other.children_specs
        )

    def __hash__(self):
        return hash((self.type, str(self.context), tuple(self.children_specs)))

    def __repr__(self, indent=0):
        if self.type is None:
            return "*"
        name = self.type.__name__
        head = f"TreeSpec({name}, {self.context}, ["
        if not self.children_specs:
            return head + "])"
        inner = indent + 2
        parts = [child.__repr__(inner) for child in self.children_specs]
        return head + (",\n" + " " * inner).join(parts) + "])"


class LeafSpec(TreeSpec):
    """The spec of a leaf."""

    def __init__(self):
        super().__init__(None, None, [])
        self.num_leaves = 1

    def __repr__(self, indent=0):
        return "*"


_LEAF_SPEC = LeafSpec()


def treespec_leaf():
    """The spec of a leaf."""
    return _LEAF_SPEC


def _flatten(tree, leaves, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF_SPEC
    kind = _get_node_type(tree)
    values, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(value, leaves, is_leaf) for value in values])


def tree_flatten(tree, is_leaf=None):
    """(leaves, spec) of a tree."""
    leaves = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves, treespec):
    """The tree of a spec with the given leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_iter(tree, is_leaf=None):
    """Iterates over the leaves."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for value in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(value, is_leaf)


def arg_tree_leaves(*args, **kwargs):
    """The leaves among the arguments of a call, positional ones first. Source: PyTorch, torch.utils._pytree."""
    return [leaf for given in (*args, *kwargs.values()) for leaf in tree_leaves(given)]


def tree_leaves(tree, is_leaf=None):
    """The leaves as a list."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree, is_leaf=None):
    """The spec."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """The tree with `func` applied to its leaves (and those of `rests` at the same places)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves] + [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten([func(*row) for row in zip(*columns)])


def tree_map_(func, tree, *rests, is_leaf=None):
    """Calls `func` on the leaves and returns the tree itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves] + [spec.flatten_up_to(rest) for rest in rests]
    for row in zip(*columns):
        func(*row)
    return tree


def map_only(kinds, func=None):
    """A function that applies `func` to instances of `kinds` and leaves all else alone; or a decorator for one."""
    chosen = kinds if callable(kinds) and not isinstance(kinds, type) else lambda x: isinstance(x, kinds)

    def wrap(func):
        return lambda x: func(x) if chosen(x) else x

    return wrap if func is None else wrap(func)


def tree_map_only(kinds, func, tree, is_leaf=None):
    """tree_map over leaves of given types."""
    return tree_map(map_only(kinds, func), tree, is_leaf=is_leaf)


def tree_map_only_(kinds, func, tree, is_leaf=None):
    """tree_map_ over leaves of given types."""
    return tree_map_(map_only(kinds, func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    """Whether `pred` holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    """Whether `pred` holds for some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(kinds, pred, tree, is_leaf=None):
    """Whether `pred` holds for all leaves of given types."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, kinds))


def tree_any_only(kinds, pred, tree, is_leaf=None):
    """Whether `pred` holds for some leaf of given types."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, kinds))


def _with_path(path, tree, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[_get_node_type(tree)]
    if node.flatten_with_keys_fn is None:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {node.type}.")
    for key, value in node.flatten_with_keys_fn(tree)[0]:
        yield from _with_path((*path, key), value, is_leaf)


def tree_flatten_with_path(tree, is_leaf=None):
    """([(path, leaf), ...], spec) of a tree."""
    return list(_with_path((), tree, is_leaf)), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    """[(path, leaf), ...] of a tree."""
    return list(_with_path((), tree, is_leaf))


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """tree_map whose function gets the path first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [[p for p, _ in pairs], [leaf for _, leaf in pairs]] + [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten([func(*row) for row in zip(*columns)])


def keystr(path):
    """A path as it would be written in Python."""
    return "".join(str(key) for key in path)


def key_get(obj, path):
    """What lies at a path."""
    for key in path:
        obj = key.get(obj)
    return obj


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """Leaves of `tree` repeated to the shape of a spec; None where that cannot be."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _get_node_type(tree) is not treespec.type:
        return None
    values, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(values) != treespec.num_children or context != treespec.context:
        return None
    out = []
    for value, child in zip(values, treespec.children_specs):
        flat = _broadcast_to_and_flatten(value, child, is_leaf)
        if flat is None:
            return None
        out += flat
    return out
