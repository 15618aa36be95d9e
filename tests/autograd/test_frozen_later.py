"""A leaf that is frozen between its use and backward: its gradient ends there, and `.grad` stays as it was."""

import pytest
import torch


def test_grad_stays_as_it_was():
    p, q = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    p.grad = torch.full((2,), 5.0)
    seen = []
    p.register_hook(lambda g: seen.append("hook"))
    p.register_post_accumulate_grad_hook(lambda t: seen.append("after"))
    y = (p * q * 3).sum()
    p.requires_grad_(False)
    y.backward()
    assert p.grad.tolist() == [5.0, 5.0] and q.grad.tolist() == [3.0, 3.0]
    assert seen == ["hook", "after"]
    p.requires_grad_(True)
    (p * 2).sum().backward()
    assert p.grad.tolist() == [7.0, 7.0]


def test_no_grad_appears():
    layer = torch.nn.Linear(2, 2)
    loss = layer(torch.ones(1, 2)).sum()
    layer.requires_grad_(False)
    loss.backward()
    assert layer.weight.grad is None and layer.bias.grad is None
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        torch.autograd.grad(loss, layer.weight)


def test_thawed_before_backward():
    p = torch.nn.Parameter(torch.ones(2))
    y = (p * 3).sum()
    p.requires_grad_(False).requires_grad_(True)
    y.backward()
    assert p.grad.tolist() == [3.0, 3.0]
