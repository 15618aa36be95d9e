"""How gradients lie in memory and how often they were written to: PyTorch's values."""

import pytest
import torch
import torch.nn.functional as F

GRADIENTS = [  # expression, (version, strides) of the gradients of a and b, None where there is none
    ("a + b", (0, (4, 1)), (0, (4, 1))),
    ("a + a", (0, (4, 1)), None),
    ("a * a", (1, (4, 1)), None),
    ("a + a + a", (1, (4, 1)), None),
    ("a * a * a", (2, (4, 1)), None),
    ("a + a * 2", (0, (4, 1)), None),
    ("a * 2 + a", (0, (4, 1)), None),
    ("a.sum()", (0, (0, 0)), None),
    ("a.sum(0)", (0, (0, 1)), None),
    ("a.sum(1)", (0, (1, 0)), None),
    ("a.sum(1, keepdim=True)", (0, (1, 0)), None),
    ("a.mean()", (0, (4, 1)), None),
    ("a.mean(0)", (0, (4, 1)), None),
    ("a.sum() + a.sum()", (0, (4, 1)), None),
    ("a.sum() + (a * a).sum()", (2, (4, 1)), None),
    ("(a * a).sum() + a.sum()", (1, (4, 1)), None),
    ("a.t()", (0, (1, 3)), None),
    ("a.t() * 2", (0, (1, 3)), None),
    ("a.view(12)", (0, (4, 1)), None),
    ("a.expand(2, 3, 4)", (0, (4, 1)), None),
    ("a[1:]", (0, (4, 1)), None),
    ("a[1]", (0, (4, 1)), None),
    ("a[torch.tensor([0, 1])]", (1, (4, 1)), None),
    ("a[a > 0]", (1, (4, 1)), None),
    ("a - b", (0, (4, 1)), (0, (4, 1))),
    ("1 - a", (0, (4, 1)), None),
    ("a.exp()", (0, (4, 1)), None),
    ("a ** 2", (0, (4, 1)), None),
    ("a.clone()", (0, (4, 1)), None),
    ("torch.add(a, b, alpha=2)", (0, (4, 1)), (0, (4, 1))),
    ("a.max()", (1, (4, 1)), None),
    ("a.max(1)[0]", (2, (4, 1)), None),
    ("a.min(0)[0]", (2, (4, 1)), None),
    ("a.cummax(1)[0]", (2, (4, 1)), None),
    ("a.sort()[0]", (2, (4, 1)), None),
    ("a.topk(2)[0]", (2, (4, 1)), None),
    ("a.kthvalue(2)[0]", (2, (4, 1)), None),
    ("a.median()", (1, (4, 1)), None),
    ("a.median(1)[0]", (2, (4, 1)), None),
    ("a.gather(1, torch.zeros(3, 2, dtype=torch.long))", (1, (4, 1)), None),
    ("torch.maximum(a, b)", (1, (4, 1)), (1, (4, 1))),
    ("torch.where(a > 0, a, b)", (0, (4, 1)), (0, (4, 1))),
    ("a @ b.t()", (0, (4, 1)), (0, (4, 1))),
    ("a @ b.t().contiguous()", (0, (4, 1)), (0, (1, 3))),
    ("a.t() @ b", (0, (4, 1)), (0, (4, 1))),
    ("a.norm()", (0, (4, 1)), None),
    ("a.logsumexp(1)", (0, (4, 1)), None),
    ("a.sum(0).sum()", (0, (0, 0)), None),
    ("a.unsqueeze(1)", (0, (4, 1)), None),
    ("a.squeeze()", (0, (4, 1)), None),
    ("a.repeat(2, 1)", (0, (4, 1)), None),
    ("a.split(2, 1)[0]", (0, (4, 1)), None),
    ("torch.cat(a.split(2, 1), 0)", (0, (4, 1)), None),
    ("sum(a.unbind(0))", (0, (4, 1)), None),
    ("a / b", (0, (4, 1)), (0, (4, 1))),
    ("a.t().reshape(12)", (0, (1, 3)), None),
    ("a.t().contiguous()", (0, (1, 3)), None),
    ("a.double()", (0, (4, 1)), None),
    ("(a * 1).add_(1)", (0, (4, 1)), None),
    ("(a * 1).mul_(a)", (1, (4, 1)), None),
    ("a.take(torch.tensor([0, 1]))", (1, (4, 1)), None),
    ("a.index_select(0, torch.tensor([0]))", (1, (4, 1)), None),
    ("F.relu(a) + a", (0, (4, 1)), None),
    ("a.softmax(1) * a", (1, (4, 1)), None),
    ("F.mse_loss(a, b)", (0, (4, 1)), (0, (4, 1))),
    ("(a.exp() + a).sum()", (0, (4, 1)), None),
    ("a.transpose(0, 1).sum(0)", (0, (1, 0)), None),
    ("a.diagonal()", (0, (4, 1)), None),
    ("a.abs() * b", (0, (4, 1)), (0, (4, 1))),
    ("(a.T * b.T).sum(1)", (0, (4, 1)), (0, (4, 1))),
]


@pytest.mark.parametrize("expression, first, second", GRADIENTS, ids=[row[0] for row in GRADIENTS])
def test_gradients_lie_in_memory_as_pytorch_leaves_them(expression, first, second):
    torch.manual_seed(0)
    a, b = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    out = eval(expression, {"torch": torch, "F": F, "a": a, "b": b})
    grads = torch.autograd.grad(out, (a, b), torch.ones(out.shape, dtype=out.dtype), allow_unused=True)
    assert [None if g is None else (g._version, g.stride()) for g in grads] == [first, second]


def test_expanded_gradient_holds_its_numbers():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    (g,) = torch.autograd.grad(x.sum(0), x, torch.tensor([1.0, 2, 3]))
    assert g.stride() == (0, 1) and g.tolist() == [[1, 2, 3], [1, 2, 3]] and g.numpy().tolist() == g.tolist()
    (h,) = torch.autograd.grad((x * x).sum(), x, create_graph=True)
    (k,) = torch.autograd.grad(h.sum(), x)
    assert k.tolist() == [[2, 2, 2], [2, 2, 2]]


def test_expanded_gradient_can_be_differentiated():
    x = torch.tensor([1.0, 2, 3], requires_grad=True)
    (g,) = torch.autograd.grad(x.sum() ** 2, x, create_graph=True)
    assert g.stride() == (0,)
    (second,) = torch.autograd.grad((g * torch.tensor([1.0, 10, 100])).sum(), x)
    assert second.tolist() == [222, 222, 222]


def test_grad_lies_as_its_leaf_does():
    w = torch.randn(4, 3).t().requires_grad_()
    (w * 2).sum().backward()
    assert w.grad.stride() == w.stride() == (1, 3)
    loose = torch.randn(4, 6)[:, ::2].detach().requires_grad_()
    (loose * 2).sum().backward()
    assert loose.grad.stride() == (3, 1)


def test_grad_counts_the_sums_taken_in_place():
    x = torch.ones(3, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad._version == 1
    (x * 2).sum().backward()
    assert x.grad._version == 2
    y = torch.ones(3, requires_grad=True)
    y.sum().backward()
    assert y.grad._version == 1 and y.grad.stride() == (1,)  # copied, since the gradient of a sum is expanded
    z = torch.ones(3, requires_grad=True)
    (z * 2).backward(torch.ones(3))
    assert z.grad._version == 0


def test_vector_times_matrix_was_squeezed_in_place():
    v, m = torch.randn(3), torch.randn(3, 2)
    assert [(v @ m)._version, (m.t() @ v)._version] == [1, 0]
    assert [F.linear(v, m.t())._version, F.linear(v, m.t(), torch.zeros(2))._version] == [1, 0]


def test_factors_lie_column_by_column():
    a = torch.randn(2, 3, 3)
    a = a @ a.mT + torch.eye(3)
    for made in (torch.linalg.inv(a), torch.linalg.cholesky(a), torch.linalg.solve(a, a), *torch.linalg.qr(a), torch.linalg.eigh(a)[1],
                 torch.linalg.lu_factor(a)[0], torch.cholesky_solve(a, a)):
        assert made.stride() == (9, 1, 3)
    assert torch.linalg.solve(a, torch.randn(2, 3)).stride() == (1, 2)
    assert torch.linalg.solve(a, a, left=False).stride() == torch.linalg.pinv(a).stride() == (9, 3, 1)
    assert torch.linalg.inv(a).numpy().tolist() == torch.linalg.inv(a).tolist()


def test_einsum_that_only_moves_axes_is_a_view():
    a = torch.randn(2, 3)
    moved = torch.einsum("ij->ji", a)
    assert moved._base is a and moved.stride() == (1, 3)
    b = torch.randn(2, 3, 3)
    assert torch.einsum("...ii->...i", b).stride() == (9, 4) and torch.einsum("bij", b)._base is b
    torch.einsum("ij->ji", a)[0, 0] = 5.0
    assert a[0, 0] == 5
