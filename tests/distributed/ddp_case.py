"""What the checks of two workers share: models, data, training, and the table of checks."""

import contextlib
import copy

import torch
from torch import nn

CHECKS = {}
STEPS, BATCH, WORLD = 20, 16, 2


def check(function):
    """Put a function of the rank into the table. It is called on both workers at the same time."""
    CHECKS[function.__name__] = function
    return function


def close(a, b, tolerance=1e-5):
    far = (torch.as_tensor(a) - torch.as_tensor(b)).abs().max().item()
    assert far <= tolerance, f"differ by {far}"


@contextlib.contextmanager
def raises(kind, text):
    try:
        yield
    except kind as error:
        assert text in str(error), str(error)
    else:
        raise AssertionError(f"no {kind.__name__} with {text!r}")


def mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 3))


def cnn():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 6, 3, stride=2), nn.BatchNorm2d(6),
                         nn.ReLU(), nn.Flatten(), nn.Linear(54, 3))


def batches(*shape):
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(BATCH, *shape, generator=generator) * 2 + 1, torch.randint(0, 3, (BATCH,), generator=generator))
            for _ in range(STEPS)]


def part(t, rank, parts=WORLD):
    return t.chunk(parts)[rank]


def state_of(model):
    return torch.cat([v.detach().flatten().double() for v in model.state_dict().values()])


def train(model, data, rank=None, make=torch.optim.SGD, **options):
    optimizer = make(model.parameters(), **(options or {"lr": 0.1, "momentum": 0.9}))
    for x, y in data:
        if rank is not None:
            x, y = part(x, rank), part(y, rank)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return state_of(model)


def disturbed(model, rank):
    """A copy whose parameters are another process's own until DistributedDataParallel makes them equal."""
    model = copy.deepcopy(model)
    if rank:
        with torch.no_grad():
            for p in model.parameters():
                p.add_(1)
    return model
