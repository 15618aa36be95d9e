"""Each recorded kernel has two gradients: MindSpore's by replay, and our own formula that `create_graph` uses. They agree, and
the second derivative agrees with differences of the first."""

import pytest
import torch
import torch.nn.functional as F

POINTS = [-2.7, -1.3, -0.4, 0.35, 0.8, 1.6, 2.9, 3.3]

FUNCTIONS = {
    "exp": torch.exp,
    "expm1": torch.expm1,
    "log": lambda x: (x * x + 0.5).log(),
    "log1p": lambda x: torch.log1p(x * x),
    "sqrt": lambda x: (x * x + 0.5).sqrt(),
    "rsqrt": lambda x: (x * x + 0.5).rsqrt(),
    "reciprocal": lambda x: 1 / (x * x + 0.5),
    "sin": torch.sin,
    "cos": torch.cos,
    "atan": torch.atan,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "erf": torch.erf,
    "abs": torch.abs,
    "square": torch.square,
    "cube": lambda x: x**3,
    "root of a power": lambda x: (x * x + 0.5) ** 0.7,
    "clamp": lambda x: x.clamp(-1, 1),
    "maximum": lambda x: torch.maximum(x, x * x),
    "minimum": lambda x: torch.minimum(x, x * x),
    "where": lambda x: torch.where(x > 0, x * x, torch.tensor(1.0)),
    "lerp": lambda x: torch.lerp(x, x * x, 0.3),
    "relu": F.relu,
    "relu6": lambda x: F.relu6(x * 3),
    "hardtanh": F.hardtanh,
    "leaky_relu": F.leaky_relu,
    "elu": lambda x: F.elu(x, 0.7),
    "selu": F.selu,
    "celu": lambda x: F.celu(x, 1.3),
    "gelu": F.gelu,
    "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "hardswish": F.hardswish,
    "softplus": F.softplus,
    "logsigmoid": F.logsigmoid,
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "threshold": lambda x: F.threshold(x, 0.5, 2),
    "prelu": lambda x: F.prelu(x, torch.tensor([0.3], dtype=x.dtype)),
    "softmax": lambda x: F.softmax(x.reshape(2, 4), 1),
    "softmax of inner axes": lambda x: F.softmax(x.reshape(2, 4), 0),
    "log_softmax": lambda x: F.log_softmax(x.reshape(2, 4), 1),
    "logsumexp": lambda x: x.reshape(2, 4).logsumexp(1),
    "sum": lambda x: x.reshape(2, 4).sum(0).square(),
    "mean": lambda x: x.reshape(2, 4).mean(1).square(),
    "var": lambda x: x.reshape(2, 4).var(1),
    "std": lambda x: x.reshape(2, 4).std(1),
    "norm": lambda x: x.reshape(2, 4).norm(dim=1),
    "amax": lambda x: x.reshape(2, 4).amax(1).square(),
    "cumsum": lambda x: x.cumsum(0).square(),
    "cumprod": lambda x: x.cumprod(0),
    "prod": lambda x: x.reshape(2, 4).prod(1),
    "max": lambda x: x.reshape(2, 4).max(1).values.square(),
    "sort": lambda x: x.sort(descending=True).values * torch.arange(8.0),
}


def _weighted(f, x):
    found = f(x)
    weights = torch.arange(1, found.numel() + 1, dtype=found.dtype).reshape(found.shape)
    return (found * weights).sum()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_replay_and_formula_give_the_same_gradient(name):
    f = FUNCTIONS[name]
    x = torch.tensor(POINTS, requires_grad=True)
    (replayed,) = torch.autograd.grad(_weighted(f, x), x)
    (derived,) = torch.autograd.grad(_weighted(f, x), x, create_graph=True)
    torch.testing.assert_close(replayed, derived.detach(), rtol=1e-5, atol=2e-5)


SMOOTH = [n for n in FUNCTIONS if n not in ("sort",)]


@pytest.mark.parametrize("name", SMOOTH)
def test_second_derivative_is_the_slope_of_the_first(name):
    f, step = FUNCTIONS[name], 1e-5
    points = torch.tensor(POINTS, dtype=torch.float64)
    x = points.clone().requires_grad_()
    (first,) = torch.autograd.grad(_weighted(f, x), x, create_graph=True)
    direction = torch.linspace(-1, 1, 8, dtype=torch.float64)
    second = torch.zeros(8, dtype=torch.float64)
    if first.requires_grad:
        (found,) = torch.autograd.grad((first * direction).sum(), x, allow_unused=True)
        second = torch.zeros_like(second) if found is None else found
    slopes = []
    for sign in (1, -1):
        y = (points + sign * step * direction).requires_grad_()
        slopes.append(torch.autograd.grad(_weighted(f, y), y)[0])
    torch.testing.assert_close(second, (slopes[0] - slopes[1]) / (2 * step), rtol=1e-5, atol=1e-5)
