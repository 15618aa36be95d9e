# A module without initial values.
import inspect

from ... import get_rng_state, set_rng_state
from ..init import _without_drawing
from ..modules.module import Module


def skip_init(module_cls, *args, **kwargs):
    """An instance of `module_cls` whose parameters have shapes but no initial values, and nothing is drawn.

    RuntimeError for no Module class or one that takes no `device`. Source: PyTorch, torch.nn.utils.skip_init.
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    state = get_rng_state()
    try:
        # What the class draws past torch.nn.init is taken back.
        with _without_drawing():
            return module_cls(*args, **kwargs)
    finally:
        set_rng_state(state)
