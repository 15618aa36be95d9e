# Options of the chunked linear cross entropy.
import dataclasses
from typing import Any, Optional

__all__ = ["LinearCrossEntropyOptions"]


@dataclasses.dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """How linear cross entropy splits the batch so that the logits never exist as a whole. Source: PyTorch,
    torch.nn.LinearCrossEntropyOptions.

    The options concern memory and accumulation only; the value is that of the unsplit computation.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: Optional[int] = None
    chunking_method: Optional[str] = "auto"
    acc_policy: str = "auto"
    acc_dtype: Optional[Any] = None
