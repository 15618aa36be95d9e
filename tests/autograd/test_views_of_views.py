"""Gradients and hooks of a view see what flows through the views taken from it; writes through `.data` change nothing of them."""

import pytest
import torch


@pytest.fixture
def a():
    return torch.ones(2, 2, requires_grad=True)


def test_gradient_of_a_view_counts_views_of_it(a):
    p = a.view(2, 2)
    (g,) = torch.autograd.grad((p + p.mT).sum(), p)
    assert g.tolist() == [[2, 2], [2, 2]]


def test_gradients_of_a_view_and_of_its_view(a):
    p = a.t()
    q = p.t()
    gp, gq = torch.autograd.grad((p * q).sum(), (p, q))
    assert gp.tolist() == [[2, 2], [2, 2]] and gq.tolist() == [[1, 1], [1, 1]]


def test_gradient_of_a_view_that_only_its_view_uses(a):
    p = (a * 1)[0]
    (g,) = torch.autograd.grad((p[:1] * 3).sum(), p)
    assert g.tolist() == [3, 0]


def test_retained_gradient_and_hook_of_a_view_see_its_views(a):
    p = (a * 1)[0]
    seen = []
    before = p[:1]
    p.retain_grad()
    p.register_hook(lambda g: seen.append(g.tolist()))
    (p[:1] * 3 + before).sum().backward()
    assert p.grad.tolist() == [4, 0] and seen == [[4, 0]]


def test_a_write_to_the_base_makes_both_views_of_the_new_base(a):
    b = a * 1
    p = b[0]
    q = p[:1]
    b.mul_(2)
    (q * 3).sum().backward()
    assert a.grad.tolist() == [[6, 0], [0, 0]]


def test_a_write_to_a_view_is_seen_by_views_of_it(a):
    b = a * 1
    p = b[0]
    q = p[:1]
    p.mul_(5)
    (q * 3).sum().backward()
    assert a.grad.tolist() == [[15, 0], [0, 0]]


@pytest.mark.parametrize("write", [lambda p: p.data.add_(1), lambda p: p.detach().add_(1)])
def test_data_written_without_history_leaves_the_place_in_the_graph(a, write):
    p = a * 2
    early = p.sum()
    write(p)
    late = p.exp().sum()
    (g,) = torch.autograd.grad(early + late, p)
    torch.testing.assert_close(g, 1 + torch.full((2, 2), 3.0).exp())


def test_a_write_without_recording_keeps_hooks_and_retained_gradients(a):
    p = a * 2
    p.retain_grad()
    seen = []
    early = p * 1
    with torch.no_grad():
        p.mul_(2)
    p.register_hook(lambda g: seen.append(g.tolist()))
    (early + p * 3).sum().backward()
    assert p.grad.tolist() == [[4, 4], [4, 4]] and seen == [[[4, 4], [4, 4]]]


def test_gradcheck_of_what_is_no_leaf():
    x = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda p: (0.5 * (p + p.mT)).exp(), (x * 2,))
