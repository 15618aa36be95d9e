# Trees and hook handles.
import pickle
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
from torch.utils import _pytree as pytree
from torch.utils.hooks import RemovableHandle

Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "tree, leaves",
    [
        (5, [5]),
        ([1, (2, 3)], [1, 2, 3]),
        ({"b": 1, "a": [2, {}]}, [1, 2]),
        (Point(1, [2]), [1, 2]),
        (OrderedDict([("z", 1), ("a", 2)]), [1, 2]),
        (defaultdict(list, {"k": 1}), [1]),
        (deque([1, 2], maxlen=3), [1, 2]),
        (None, [None]),
    ],
)
def test_flatten_and_back(tree, leaves):
    got, spec = pytree.tree_flatten(tree)
    assert got == leaves and spec.num_leaves == len(leaves)
    again = pytree.tree_unflatten(got, spec)
    assert again == tree and type(again) is type(tree)
    assert spec == pytree.tree_structure(again)


def test_map_over_several_trees():
    got = pytree.tree_map(lambda a, b: a + b, {"x": 1, "y": [2]}, {"y": [20], "x": 10})
    assert got == {"x": 11, "y": [22]}
    assert pytree.tree_map_only(int, lambda n: n * 2, [1, "a", (3,)]) == [2, "a", (6,)]
    with pytest.raises(ValueError, match="Node type mismatch"):
        pytree.tree_map(lambda a, b: a, [1], (1,))


def test_wrong_number_of_leaves():
    spec = pytree.tree_structure([1, 2])
    with pytest.raises(ValueError, match="`leaves` has length 1 but the spec refers to a pytree that holds 2 items"):
        spec.unflatten([1])


def test_paths_and_repr():
    tree = {"a": [1, Point(2, 3)]}
    paths = [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(tree)]
    assert paths == ["['a'][0]", "['a'][1].x", "['a'][1].y"]
    assert repr(pytree.tree_structure([1, {"a": 2}])) == "TreeSpec(list, None, [*,\n  TreeSpec(dict, ['a'], [*])])"


def test_registered_type_is_a_node():
    class Box:
        def __init__(self, inside):
            self.inside = inside

    pytree.register_pytree_node(Box, lambda b: ([b.inside], None), lambda values, _: Box(values[0]))
    try:
        assert pytree.tree_map(lambda n: n + 1, Box(1)).inside == 2
        with pytest.raises(ValueError, match="already registered"):
            pytree.register_pytree_node(Box, None, None)
    finally:
        del pytree.SUPPORTED_NODES[Box]


def test_handle_removes_once_and_as_a_context():
    hooks, extra = OrderedDict(), OrderedDict()
    handle = RemovableHandle(hooks, extra_dict=extra)
    hooks[handle.id] = extra[handle.id] = print
    handle.remove()
    handle.remove()
    assert not hooks and not extra
    with RemovableHandle(hooks) as handle:
        hooks[handle.id] = print
    assert not hooks


def test_handle_survives_pickling():
    hooks = OrderedDict()
    handle = RemovableHandle(hooks)
    again = pickle.loads(pickle.dumps(handle))
    assert again.id == handle.id
    assert RemovableHandle(hooks).id > again.id
