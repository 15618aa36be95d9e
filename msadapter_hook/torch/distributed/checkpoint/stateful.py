# torch.distributed.checkpoint.stateful: objects that give and take their state.
from typing import Any, Protocol, runtime_checkable

__all__ = ["Stateful"]


@runtime_checkable
class Stateful(Protocol):
    """What `save` asks for its state, and `load` gives it back to. Source: PyTorch, torch.distributed.checkpoint.stateful.Stateful."""

    def state_dict(self) -> dict[str, Any]:
        """The state, as a dictionary."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""
        ...
