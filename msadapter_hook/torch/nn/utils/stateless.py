# Calls of a module with other parameters and buffers than its own.
import contextlib
import warnings

from ._named_member_accessor import NamedMemberAccessor

__all__ = ["functional_call"]


def _untie_named_tensors_map(module, parameters_and_buffers):
    """`parameters_and_buffers` with every name of a tied tensor, where one of its names was given.

    ValueError when two names of one tensor are given different values.
    """
    names_of = {}
    accessor = NamedMemberAccessor(module)
    for name, tensor in accessor.named_tensors(remove_duplicate=False):
        names_of.setdefault(tensor, set()).add(name)
    group_of = {name: group for group in names_of.values() if len(group) > 1 for name in group}
    untied = dict(parameters_and_buffers)
    for given, value in parameters_and_buffers.items():
        for name in group_of.get(given, ()):
            if name in parameters_and_buffers and parameters_and_buffers[name] is not value:
                given_names = sorted(n for n in group_of[given] if n in parameters_and_buffers)
                raise ValueError(
                    f"functional_call got multiple values for keys {given_names}, which are tied. "
                    "Consider using tie_weights=False"
                )
            untied[name] = value
    return untied


@contextlib.contextmanager
def _reparametrize_module(module, parameters_and_buffers, tie_weights=False, strict=False, stack_weights=False):
    given = parameters_and_buffers  # the caller's dictionary, which sees what the module assigns
    if tie_weights:
        parameters_and_buffers = _untie_named_tensors_map(module, parameters_and_buffers)
    accessor = NamedMemberAccessor(module)
    if strict:
        missing, unexpected = accessor.check_keys(parameters_and_buffers)
        lines = []
        if unexpected:
            lines.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
        if missing:
            lines.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
        if lines:
            raise RuntimeError(
                "Error(s) in reparametrizing for {}:\n\t{}".format(module._get_name(), "\n\t".join(lines))
            )
    before = {}
    try:
        before, _ = accessor.swap_tensors_dict(parameters_and_buffers, allow_missing=True)
        yield
    finally:
        if stack_weights:
            # Last put in, first taken out: tensors with several names go back in order.
            before = dict(reversed(before.items()))
        replaced, _ = accessor.swap_tensors_dict(before, allow_missing=True)
        # What the module wrote into its own buffers while it ran is the caller's to see.
        for name in given:
            if name in replaced:
                given[name] = replaced[name]


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Deprecated spelling of torch.func.functional_call."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def _functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Output of `module(*args, **kwargs)` with the given tensors in place of those of the same names.

    `tie_weights`: tensors the module has under several names are replaced under all of them. `strict`: RuntimeError
    unless the names are exactly those of the module. Source: PyTorch, torch.func.functional_call.
    """
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))
