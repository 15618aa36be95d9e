"""Names that exist so that programs can be imported, and that say what to do instead when they are used."""

from msadapter_hook.errors import unsupported


def refused(api, advice):
    """A callable named like `api` that raises NotImplementedError naming it, with the advice."""

    def refuse(*args, **kwargs):
        raise unsupported(api, advice)

    refuse.__name__ = refuse.__qualname__ = api.rpartition(".")[2]
    refuse.__module__ = api.rpartition(".")[0]
    refuse.__doc__ = f"Raises NotImplementedError: {advice}."
    return refuse


def refuse_all(namespace, module, names, advice):
    """Put a refusing callable for each of the names (words of one string) into a module's namespace."""
    for name in names.split():
        namespace[name] = refused(f"{module}.{name}", advice)
