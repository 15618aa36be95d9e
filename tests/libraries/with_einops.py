"""rearrange, reduce, repeat, einsum, and a layer, with gradients"""

import torch
from einops import einsum, rearrange, reduce, repeat
from einops.layers.torch import Rearrange

x = torch.arange(24.0).reshape(2, 3, 4).requires_grad_()
print("rearrange:", tuple(rearrange(x, "b c d -> b (c d)").shape))
print("reduce:", reduce(x, "b c d -> b c", "mean").tolist())
print("repeat:", repeat(x, "b c d -> b (r c) d", r=2).sum().item())
print("layer:", tuple(Rearrange("b c d -> (b c) d")(x).shape))
einsum(x, x, "b c d, b e d -> b c e").sum().backward()
print("gradient:", x.grad.flatten()[:4].tolist())
