"""What `import functorch` gives beside the served torch: the older names of torch.func."""

import importlib as _importlib

#: A root of its own cannot reach torch relatively: it asks for the served module by its name.
_NAMES = {
    "torch": "__version__",
    "torch.func": "functionalize grad grad_and_value hessian jacfwd jacrev jvp vjp vmap",
    "torch._functorch.make_functional": "FunctionalModule FunctionalModuleWithBuffers combine_state_for_ensemble make_functional "
                                        "make_functional_with_buffers",
    "torch.fx.experimental.proxy_tensor": "make_fx",
}
for _module, _names in _NAMES.items():
    for _name in _names.split():
        globals()[_name] = getattr(_importlib.import_module(_module), _name)

__all__ = [_name for _names in _NAMES.values() for _name in _names.split()]
