"""torch.fx.experimental.proxy_tensor: graphs of operators below the public ones, which do not exist here."""

from ..._refusal import refused

make_fx = refused("torch.fx.experimental.proxy_tensor.make_fx",
                  "there is no level of operators below the public ones to trace; use torch.fx.symbolic_trace")


def get_proxy_mode():
    """None: no such trace is being made."""
    return None


def maybe_disable_fake_tensor_mode():
    import contextlib

    return contextlib.nullcontext()
