"""Programs are written anew before they are replayed: fewer steps, the same numbers."""

import random

import pytest
import torch
import torch.nn.functional as F

from msadapter_hook.tape import Program, late

pytestmark = pytest.mark.skipif(not late.state.enabled, reason="MSADAPTER_EAGER=1 leaves nothing pending")


@pytest.fixture
def sources(monkeypatch):
    """The sources of the programs that backward passes run."""
    seen, run = [], Program.run

    def noting(self, *args):
        seen.append(self.source)
        return run(self, *args)

    monkeypatch.setattr(Program, "run", noting)
    return seen


def last_program(sources, step):
    for _ in range(2):
        step()
    return [line.rpartition("# ")[2] for line in sources[-1].splitlines() if "#" in line]


def test_elementwise_operations_take_the_shape_at_hand(sources):
    w, b = torch.randn(6, 8, requires_grad=True), torch.randn(6, requires_grad=True)
    x = torch.randn(4, 5, 8)

    def step():
        F.gelu(F.linear(x, w, b)).view(20, 6).sum().backward()

    assert last_program(sources, step) == ["matmul", "bias_add", "gelu", "sum"]


def test_residual_sums_stay_in_the_shape_of_the_products(sources):
    w = torch.randn(8, 8, requires_grad=True)
    x = torch.randn(4, 5, 8)

    def step():
        h = x * w[0]
        for _ in range(3):
            h = h + F.linear(h, w)
        h.sum().backward()

    names = last_program(sources, step)
    assert names.count("reshape") == 3  # of w[0], of h before the loop, and of the h that is still held
    assert names.count("matmul") == 3


def test_slices_of_the_last_axis_are_one_split_of_the_rows(sources):
    w = torch.randn(12, 8, requires_grad=True)
    x = torch.randn(2, 3, 8)

    def loss():
        q, k, v = F.linear(x, w).split(4, dim=2)
        return (q * k + v).sum()

    def step():
        loss().backward()

    assert last_program(sources, step) == ["matmul", "split", "mul", "add", "reshape", "sum"]


def test_views_and_copies_that_are_kept_are_results_of_their_own():
    for _ in range(3):
        w = torch.arange(6.0).requires_grad_()
        y = torch.tanh(w)
        kept = [y, y.view(2, 3), y.clone(), y.view(3, 2).clone().view(-1), w.view(2, 3), w.clone()]
        (y.view(3, 2) * 2).sum().backward()
        expected = torch.tanh(torch.arange(6.0))
        for k, e in zip(kept, [expected, expected.view(2, 3), expected, expected, torch.arange(6.0).view(2, 3), torch.arange(6.0)]):
            assert torch.equal(k, e) or torch.allclose(k, e, rtol=1e-5)
        torch.testing.assert_close(w.grad, 2 * (1 - expected ** 2), rtol=1e-4, atol=1e-6)


SHAPES = [(24,), (4, 6), (6, 4), (2, 12), (2, 3, 4), (4, 3, 2), (1, 24), (2, 2, 6)]


def made_up(seed, w, x):
    """A program of reshapes, copies, slices, transposes, products and elementwise operations."""
    draw = random.Random(seed)
    values = [w * 1, x * w]
    for _ in range(14):
        a = draw.choice(values)
        kind = draw.randrange(8)
        if kind == 0:
            a = a.reshape(draw.choice(SHAPES)) if a.numel() == 24 else a.reshape(-1)
        elif kind == 1:
            a = torch.tanh(a) * 1.5 + 0.25
        elif kind == 2:
            b = draw.choice(values)
            a = a + b.reshape(a.shape) if a.numel() == b.numel() else a * b.mean()
        elif kind == 3 and a.dim() > 1 and a.shape[-1] % 2 == 0:
            p, q = a.chunk(2, -1)
            a = torch.cat([q * 2, p], -1)
        elif kind == 4 and a.dim() > 1:
            a = a.transpose(-1, -2)
        elif kind == 5 and a.dim() > 1:
            a = (a @ a.transpose(-1, -2).clone()) * 0.1
        elif kind == 6:
            a = a.clone().view(a.shape)
        else:
            a = F.relu(a) - a[..., :1]
        values.append(a)
    return sum((v * v).mean() for v in values[-4:]), values


@pytest.mark.parametrize("seed", range(30))
def test_made_up_programs_have_the_gradients_of_single_steps(seed):
    torch.manual_seed(seed)
    w, x = torch.randn(4, 6, requires_grad=True), torch.randn(4, 6)
    for _ in range(2):  # the first time every value is computed at once, then late
        loss, values = made_up(seed, w, x)
        loss.backward()
        got, w.grad = w.grad, None
        single, again = made_up(seed, w, x)
        expected, = torch.autograd.grad(single, w, create_graph=True)
        torch.testing.assert_close(got, expected.detach(), rtol=1e-4, atol=1e-5)
        for v, e in zip(values, again):
            torch.testing.assert_close(v.detach(), e.detach(), rtol=1e-5, atol=1e-6)
