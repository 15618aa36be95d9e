"""Where numbers of two bytes are rounded when several meet at one place: after each step, or once in the end. As PyTorch 2.13."""

import itertools

import pytest
import torch

CASES = [((6,), 0), ((4, 5), 0), ((5, 4), 1), ((3, 4, 2), 1), ((3, 4, 2), 2)]


def combined(x, dim, index, s, multiply, stepwise):
    y = x.clone() if stepwise else x.float()
    for place in itertools.product(*map(range, s.shape)):
        at = list(place)
        at[dim] = index[place[dim]].item()
        at = tuple(at)
        v = s[place] if stepwise else s[place].float()
        y[at] = y[at] * v if multiply else y[at] + v
    return y.to(x.dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size, dim", CASES)
def test_rounding_of_what_meets_at_one_place(size, dim, dtype):
    torch.manual_seed(0)
    n = 12
    many = size[:dim] + (n,) + size[dim + 1:]
    x, s, index = torch.randn(size).to(dtype), torch.randn(many).to(dtype), torch.randint(0, size[dim], (n,))
    places = index.view([n if d == dim else 1 for d in range(len(size))]).expand(many)
    count = 1 + torch.bincount(index, minlength=size[dim]).view([-1 if d == dim else 1 for d in range(len(size))])
    steps, once = (combined(x, dim, index, s, False, stepwise) for stepwise in (True, False))
    assert torch.equal(x.scatter_add(dim, places, s), once)
    assert torch.equal(x.scatter_reduce(dim, places, s, "sum"), once)
    assert torch.equal(x.scatter_reduce(dim, places, s, "mean"), once / count.to(dtype))
    assert torch.equal(x.index_reduce(dim, index, s, "mean"), steps / count.to(dtype))
    assert torch.equal(x.scatter_reduce(dim, places, s, "prod"), combined(x, dim, index, s, True, False))
    assert torch.equal(x.index_reduce(dim, index, s, "prod"), combined(x, dim, index, s, True, True))
    assert torch.equal(x.index_add(dim, index, s), once if len(size) > 1 and dim in (0, len(size) - 1) else steps)
    x.requires_grad_()
    (x.gather(dim, places) * s).sum().backward()
    assert torch.equal(x.grad, combined(torch.zeros_like(x.detach()), dim, index, s, False, False))


def test_alpha_is_rounded_first():
    x, s = torch.zeros(1, dtype=torch.bfloat16), torch.tensor([3.0], dtype=torch.bfloat16)
    index = torch.tensor([0])
    assert x.index_add(0, index, s, alpha=0.3).item() == (s * torch.tensor(0.3, dtype=torch.bfloat16)).item()
