"""requires_grad switched off and on again, as programs freeze and thaw parameters."""

import torch


def test_hooks_outlive_a_frozen_time():
    calls = [0, 0]
    p = torch.nn.Parameter(torch.ones(2))
    p.register_hook(lambda g: calls.__setitem__(0, calls[0] + 1))
    p.register_post_accumulate_grad_hook(lambda t: calls.__setitem__(1, calls[1] + 1))
    (p * 2).sum().backward()
    recorded = (p * 3).sum()
    p.requires_grad_(False)
    assert p.grad.tolist() == [2, 2] and p.is_leaf and not (p * 2).requires_grad
    p.requires_grad_(True)
    (p * 2).sum().backward()
    assert calls == [2, 2] and p.grad.tolist() == [4, 4]
    recorded.backward()
    assert calls == [3, 3] and p.grad.tolist() == [7, 7]


def test_a_gradient_cleared_while_frozen_stays_cleared():
    p = torch.ones(2, requires_grad=True)
    (p * 2).sum().backward()
    p.requires_grad = False
    p.grad = None
    p.requires_grad = True
    assert p.grad is None
    (p * 5).sum().backward()
    assert p.grad.tolist() == [5, 5]
