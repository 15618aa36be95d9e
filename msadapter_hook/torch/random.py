"""torch.random: seeds and the state of the default generator."""

import contextlib as _contextlib

from msadapter_hook.tensor.generator import default_generator

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


def manual_seed(seed):
    """Seed the default generator; gives the generator. Source: PyTorch, torch.manual_seed."""
    return default_generator.manual_seed(int(seed))


def seed():
    """Seed from the system's randomness; gives the seed. Source: PyTorch, torch.seed."""
    return default_generator.seed()


def initial_seed():
    """The seed in use. Source: PyTorch, torch.initial_seed."""
    return default_generator.initial_seed()


def get_rng_state():
    """The state of the default generator, a uint8 tensor of 5,056 bytes. Source: PyTorch, torch.get_rng_state."""
    return default_generator.get_state()


def set_rng_state(new_state):
    """Restore a state. Source: PyTorch, torch.set_rng_state."""
    default_generator.set_state(new_state)


@_contextlib.contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cuda"):
    """Random numbers drawn inside leave the state outside as it was. Source: PyTorch, torch.random.fork_rng."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
