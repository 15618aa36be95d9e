"""Structures of lists, tuples and dicts: what is in them, and the same structure around other things."""


def tree_map(function, x, kinds):
    """`x` with `function` applied to every instance of `kinds` in its lists, tuples and dicts."""
    if isinstance(x, kinds):
        return function(x)
    if isinstance(x, (list, tuple)):
        made = [tree_map(function, item, kinds) for item in x]
        return type(x)(*made) if hasattr(x, "_fields") else type(x)(made)
    if isinstance(x, dict):
        made = {key: tree_map(function, item, kinds) for key, item in x.items()}
        return made if type(x) is dict else type(x)(made)
    return x


def instances(x, kinds):
    """The instances of `kinds` in lists, tuples and dicts, in order."""
    found = []
    tree_map(found.append, x, kinds)
    return found


class Place:
    """Stands for what was taken out of a structure."""


def apart(x, kinds):
    """(`x` with a Place for every instance of `kinds`, the instances in order)."""
    found = []

    def place(item):
        found.append(item)
        return Place()

    return tree_map(place, x, kinds), found


def filled(x, items, kinds=Place):
    """`x` with these items in the places of the instances of `kinds`, in order."""
    items = iter(items)
    return tree_map(lambda _: next(items), x, kinds)
