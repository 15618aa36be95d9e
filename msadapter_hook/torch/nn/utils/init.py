# A module without initial values.
import inspect

from ..modules.module import Module


def skip_init(module_cls, *args, **kwargs):
    """An instance of `module_cls` whose parameters have shapes but no initial values, and nothing is drawn.

    RuntimeError for no Module class or one that takes no `device`. Source: PyTorch, torch.nn.utils.skip_init.
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    kwargs["device"] = "meta"
    return module_cls(*args, **kwargs).to_empty(device=device)
