"""Errors that belong to the adapter itself, built in one place. PyTorch's are built where they arise."""

from msadapter_hook import report


class HookError(RuntimeError):
    """The hook cannot be installed as asked."""


class SettingsError(ValueError):
    """A variable of the environment has a value that means nothing."""


def another_torch(name, module):
    """HookError: a module that is not ours already answers to the name we serve."""
    version = getattr(module, "__version__", None)
    where = getattr(module, "__file__", None)
    what = f"{name} {version}" if version else name
    return HookError(
        f"another {what} is already imported"
        + (f" (from {where})" if where else "")
        + "; msadapter_hook never replaces it. "
        f"Call msadapter_hook.install() before the first `import {name}`, or start with `python -m msadapter_hook`."
    )


def unsupported(api, advice):
    """NotImplementedError that names the API and says what to do; counted in the report as missing.

    api: the public name, as `torch.linalg.eig`. advice: a sentence or half of one.
    """
    report.missing(api)
    return NotImplementedError(f"{api} is not supported by msadapter_hook: {advice}")


def missing_attribute(module, name, counted=True):
    """AttributeError for a name that a served module lacks, so `hasattr` works; counted in the report as missing."""
    if not counted or (name.startswith("__") and name.endswith("__")):  # what Python itself asks for
        return AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
    report.missing(f"{module}.{name}")
    return AttributeError(
        f"module {module!r} has no attribute {name!r} (msadapter_hook does not provide it)", name=name
    )
