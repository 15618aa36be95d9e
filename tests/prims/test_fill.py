"""A number where a mask holds: of infinities and NaN, for the gradient of the number too, and of tensors without dimensions."""

import math

import pytest
import torch
import torch.nn.functional as F

NAN, INF = math.nan, math.inf
X = [-INF, -4.0, -0.5, -0.0, 0.0, 0.2, 0.7, 4.0, INF, NAN]
#: function, what PyTorch 2.13 gives, its gradient
CASES = {
    "clamp": (lambda x: x.clamp(-0.5, 0.7), [-0.5, -0.5, -0.5, -0.0, 0.0, 0.2, 0.7, 0.7, 0.7, NAN], [0, 0, 1, 1, 1, 1, 1, 0, 0, 0]),
    "hardtanh": (F.hardtanh, [-1, -1, -0.5, -0.0, 0, 0.2, 0.7, 1, 1, NAN], [0, 0, 1, 1, 1, 1, 1, 0, 0, 1]),
    "hardshrink": (F.hardshrink, [-INF, -4, 0, 0, 0, 0, 0.7, 4, INF, NAN], [1, 1, 0, 0, 0, 0, 1, 1, 1, 1]),
    "threshold": (lambda x: F.threshold(x, 0.2, -7.0), [-7, -7, -7, -7, -7, -7, 0.7, 4, INF, NAN], [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]),
    "where": (lambda x: torch.where(x > 0, x, 2.0), [2, 2, 2, 2, 2, 0.2, 0.7, 4, INF, 2], [0, 0, 0, 0, 0, 1, 1, 1, 1, 0]),
    "where, the number first": (lambda x: torch.where(x > 0, 2.0, x), [-INF, -4, -0.5, -0.0, 0, 2, 2, 2, 2, NAN],
                                [1, 1, 1, 1, 1, 0, 0, 0, 0, 1]),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_pytorch(name):
    function, values, slopes = CASES[name]
    for _ in range(2):  # computed at once, then late
        x = torch.tensor(X, requires_grad=True)
        made = function(x)
        made.sum().backward()
    assert list(map(str, made.tolist())) == list(map(str, torch.tensor(values, dtype=torch.float32).tolist()))
    assert x.grad.tolist() == slopes
    alone = torch.tensor(0.7, requires_grad=True)
    function(alone).backward()
    assert alone.grad.item() == slopes[6] and function(alone).item() == made[6].item()


def test_the_number_of_a_choice_has_a_gradient():
    x, number = torch.tensor(X[1:-2], requires_grad=True), torch.tensor(3.0, requires_grad=True)
    for _ in range(2):
        x.grad = number.grad = None
        (torch.where(x > 0, x, number) * torch.arange(7.0)).sum().backward()
    assert number.grad.item() == 0 + 1 + 2 + 3 and x.grad.tolist() == [0, 0, 0, 0, 4, 5, 6]
