"""Checkpoints that follow one another: shared parameters and inputs count once in each."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint


def chain(wrap):
    torch.manual_seed(0)
    linear = torch.nn.Linear(3, 3, bias=False)
    x = torch.full((1, 3), 1.0, requires_grad=True)
    h = wrap(linear, x)
    h = wrap(lambda a, b: linear(a) * b.sin(), h, x)  # the parameter again, and the first one's input
    h = wrap(lambda a, b: a * b + a.exp(), h, h)  # one value handed in twice
    h = wrap(lambda a: a, h * 1)
    h.sum().backward()
    return linear.weight.grad, x.grad


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_chain_of_checkpoints_has_the_gradients_of_the_plain_chain(reentrant):
    expected = chain(lambda function, *args: function(*args))
    got = chain(lambda function, *args: checkpoint(function, *args, use_reentrant=reentrant))
    for a, b in zip(got, expected):
        torch.testing.assert_close(a, b)
    torch.testing.assert_close(got[1], torch.tensor([[0.0120, 0.1116, 0.2044]]), atol=1e-4, rtol=0)


def test_second_derivatives_through_a_chain():
    def second(wrap):
        torch.manual_seed(0)
        linear = torch.nn.Linear(3, 3, bias=False)
        x = torch.full((1, 3), 1.0, requires_grad=True)
        h = wrap(lambda a, b: linear(a) * b.sin(), wrap(linear, x), x)
        (g,) = torch.autograd.grad(h.sum(), x, create_graph=True)
        return torch.autograd.grad(g.square().sum(), [x, linear.weight])

    expected = second(lambda function, *args: function(*args))
    got = second(lambda function, *args: checkpoint(function, *args, use_reentrant=False))
    for a, b in zip(got, expected):
        torch.testing.assert_close(a, b)


def test_the_loss_may_be_what_was_handed_in():
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    checkpoint(lambda a: a, y, use_reentrant=True).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
