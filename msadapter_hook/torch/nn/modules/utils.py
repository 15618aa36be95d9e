# Small helpers of the modules: tuples from numbers, padding order, prefixes of state dictionaries.
import collections
from itertools import repeat

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n, name="parse"):
    def parse(x):
        return tuple(x) if isinstance(x, collections.abc.Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t, n):
    # Convolutions name padding from the first dimension on, F.pad from the last one and twice for each.
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size, defaults):
    if isinstance(out_size, (int, float)):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    tail = defaults[len(defaults) - len(out_size) :]
    return [default if size is None else size for size, default in zip(out_size, tail)]


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Strip `prefix` from the keys of `state_dict` (and of its metadata) in place.

    Source: PyTorch, torch.nn.modules.utils.consume_prefix_in_state_dict_if_present.
    """
    for key in list(state_dict.keys()):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)

    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata.keys()):
        # The module that carried the prefix itself is listed without the closing dot.
        if key and (key == prefix.rstrip(".") or key.startswith(prefix)):
            metadata[key[len(prefix) :]] = metadata.pop(key)
