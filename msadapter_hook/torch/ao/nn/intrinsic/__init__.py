"""torch.ao.nn.intrinsic: modules fused for quantization. Importing works; using one refuses."""

from ...._refusal import refused
from ...quantization import ADVICE


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return refused(f"torch.ao.nn.intrinsic.{name}", ADVICE)
