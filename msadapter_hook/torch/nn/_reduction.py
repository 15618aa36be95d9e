# The `reduction` argument of losses: its numbers, and the two deprecated flags that came before it.
import warnings

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction):
    """Number of a reduction name (none 0, mean 1, sum 2); ValueError for any other name."""
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2)
    try:
        return _NUMBERS[reduction]
    except (KeyError, TypeError):
        raise ValueError(f"{reduction} is not a valid value for reduction") from None


def legacy_get_string(size_average, reduce, emit_warning=True):
    """Reduction name that the deprecated `size_average` and `reduce` flags stand for; None counts as True."""
    averaged = True if size_average is None else size_average
    reduced = True if reduce is None else reduce
    name = "none" if not reduced else ("mean" if averaged else "sum")
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.", stacklevel=2
        )
    return name


def legacy_get_enum(size_average, reduce, emit_warning=True):
    """Number of the reduction that the deprecated flags stand for."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
