"""max() and min() of all elements: ties share the gradient, several NaN too. Right values: PyTorch 2.13."""

import pytest
import torch

nan = float("nan")
CASES = [([nan, 1.0, nan], [0.5, 0, 0.5]), ([nan, 2.0, 2.0], [1, 0, 0]), ([nan, nan], [0.5, 0.5]), ([nan], [1]),
         ([[nan, 1], [nan, 3]], [[0.5, 0], [0.5, 0]]), ([2.0, 2.0, 2.0, 2.0], [0.25] * 4), (5.0, 1.0), (nan, 1.0)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("values, gradient", CASES)
@pytest.mark.parametrize("name", ["max", "min"])
def test_gradient_of_the_extreme_of_all(name, values, gradient, dtype):
    x = torch.tensor(values, dtype=dtype, requires_grad=True)
    for _ in range(3):  # the later steps are computed late
        x.grad = None
        y = getattr(x * 1, name)()
        y.backward()
        assert torch.equal(x.grad, torch.tensor(gradient, dtype=dtype))
        assert torch.isnan(y).item() == torch.isnan(x).any().item()


@pytest.mark.parametrize("sign", [1, -1])
def test_extreme_of_all_with_infinities(sign):
    inf = float("inf")
    x = torch.tensor([-inf, inf, inf, 0.0], requires_grad=True)
    y = (x * sign).max() if sign > 0 else (x * sign).min() * -1
    y.backward()
    assert y == inf and x.grad.tolist() == [0, 0.5, 0.5, 0]


def test_amax_loses_the_gradient_among_nan():
    x = torch.tensor([nan, 1.0, nan], requires_grad=True)
    x.amax().backward()
    assert torch.isnan(x.grad).all()


def test_extreme_of_all_twice():
    x = torch.tensor([1.0, 3.0, 3.0], dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad((x**2).max(), x, create_graph=True)
    g.sum().backward()
    assert g.tolist() == [0, 3, 3] and x.grad.tolist() == [0, 1, 1]
