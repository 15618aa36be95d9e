"""torch.ao.nn.quantized: what a model that could be quantized is written with; nothing quantized."""

from .... import add, cat, matmul, mul, nn
from ...._refusal import refused
from ...quantization import ADVICE


class FloatFunctional(nn.Module):
    """Operations as a module, so that observers could be attached: in floating point the operations themselves. Source: PyTorch,
    torch.ao.nn.quantized.FloatFunctional."""

    def __init__(self):
        super().__init__()
        self.activation_post_process = nn.Identity()

    def forward(self, x):
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x, y):
        return self.activation_post_process(add(x, y))

    add_scalar = add

    def mul(self, x, y):
        return self.activation_post_process(mul(x, y))

    mul_scalar = mul

    def cat(self, x, dim=0):
        return self.activation_post_process(cat(x, dim=dim))

    def add_relu(self, x, y):
        return self.activation_post_process(nn.functional.relu(add(x, y)))

    def matmul(self, x, y):
        return self.activation_post_process(matmul(x, y))


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return refused(f"torch.ao.nn.quantized.{name}", ADVICE)
