"""torch._refs.nn.functional: the functions of torch.nn.functional."""

from ...nn import functional as _functional

globals().update({name: value for name, value in vars(_functional).items() if callable(value) and not name.startswith("__")})
