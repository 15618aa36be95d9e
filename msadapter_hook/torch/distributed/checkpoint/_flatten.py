# Nested dictionaries and lists as one flat dictionary of dotted keys, and values put back into their places.
from collections.abc import Mapping

from ... import Tensor

__all__ = ["flatten", "set_element"]


def flatten(state_dict):
    """({dotted key: value}, {dotted key: path}). Dictionaries are entered, and lists that hold tensors or dictionaries; a list of other
    values stays whole. ValueError where two paths have the same key."""
    flat, paths = {}, {}

    def enter(path, value):
        if isinstance(value, Mapping):
            for key, item in value.items():
                enter((*path, str(key)), item)
        elif isinstance(value, list) and _holds_more(value):
            for i, item in enumerate(value):
                enter((*path, i), item)
        else:
            name = ".".join(map(str, path))
            if name in flat:
                raise ValueError(f"duplicated flatten key {name}")
            flat[name], paths[name] = value, path

    enter((), state_dict)
    return flat, paths


def _holds_more(values):
    return any(isinstance(v, (Tensor, Mapping)) or isinstance(v, list) and _holds_more(v) for v in values)


def set_element(root, path, value):
    """Put `value` where `path` leads; what is missing on the way is made, and keys that are numbers stand for their strings."""
    here = root
    for key, following in zip(path, path[1:]):
        if isinstance(here, list):
            _lengthen(here, key, {} if isinstance(following, str) else [])
        else:
            key = _own_key(here, key)
            if key not in here:
                here[key] = {} if isinstance(following, str) else []
        here = here[key]
    last = path[-1]
    if isinstance(here, list):
        _lengthen(here, last, None)
    else:
        last = _own_key(here, last)
    here[last] = value


def _own_key(mapping, key):
    """The key as the dictionary has it: flattened keys are strings, an optimizer's are numbers."""
    if key in mapping:
        return key
    return next((own for own in mapping if str(own) == key), key)


def _lengthen(values, index, filler):
    while len(values) <= index:
        values.append(filler)
