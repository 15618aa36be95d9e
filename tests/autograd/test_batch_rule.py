"""The `vmap` staticmethod of a Function: called by mapped calls, with batches of one sample."""

import pytest
import torch
from torch.func import grad, jacrev, vmap


class Sort(torch.autograd.Function):
    calls = []

    @staticmethod
    def forward(x, dim):
        order = torch.argsort(x, dim)
        return torch.take_along_dim(x, order, dim), torch.argsort(order, dim)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.dim = inputs[1]
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx, grad, _):
        (inverse,) = ctx.saved_tensors
        return torch.take_along_dim(grad, inverse, ctx.dim), None

    @staticmethod
    def vmap(info, in_dims, x, dim):
        Sort.calls.append((info.batch_size, info.randomness, in_dims, tuple(x.shape)))
        x = x.movedim(in_dims[0], 0)
        return Sort.apply(x, (dim if dim >= 0 else dim + x.dim() - 1) + 1), (0, 0)


X = torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
WEIGHTS = torch.arange(3.0)


@pytest.fixture(autouse=True)
def no_calls():
    Sort.calls.clear()


def test_the_rule_computes_and_its_gradient_flows():
    out = vmap(lambda t: Sort.apply(t * 2, -1)[0] * 2, randomness="same")(X)
    assert out.tolist() == [[4.0, 8.0, 12.0], [0.0, 16.0, 20.0]]
    assert Sort.calls == [(1, "same", (0, None), (1, 3))] * 2
    w = X.clone().requires_grad_()
    (vmap(lambda t: Sort.apply(t, 0)[0])(w) * WEIGHTS).sum().backward()
    assert w.grad.tolist() == [[2.0, 0.0, 1.0], [0.0, 2.0, 1.0]]


def test_gradients_inside_and_outside_are_those_of_samples():
    def loss(t):
        return (Sort.apply(t, 0)[0] * WEIGHTS).sum()

    want = [[2.0, 0.0, 1.0], [0.0, 2.0, 1.0]]
    assert vmap(grad(loss))(X).tolist() == want and len(Sort.calls) == 2
    assert grad(lambda x: vmap(loss)(x).sum())(X).tolist() == want
    assert torch.equal(vmap(jacrev(lambda t: Sort.apply(t, 0)[0]))(X).sum(1), torch.ones(2, 3))


class Times(torch.autograd.Function):
    seen = []

    @staticmethod
    def forward(a, b):
        return a * b

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b, grad * a

    @staticmethod
    def vmap(info, in_dims, a, b):
        Times.seen.append(in_dims)
        a, b = (t if d is not None else t.unsqueeze(0) for t, d in zip((a, b), in_dims))
        while a.dim() < b.dim():
            a = a.unsqueeze(-1)
        while b.dim() < a.dim():
            b = b.unsqueeze(-1)
        return Times.apply(a, b), 0


def test_only_what_depends_on_the_sample_is_a_batch():
    Times.seen.clear()
    assert vmap(Times.apply, (0, None))(WEIGHTS, torch.tensor(2.0)).tolist() == [0.0, 2.0, 4.0]
    assert vmap(lambda a: Times.apply(torch.tensor(3.0), a))(WEIGHTS).tolist() == [0.0, 3.0, 6.0]
    assert Times.seen == [(0, None)] * 3 + [(None, 0)] * 3
    Times.seen.clear()
    assert vmap(lambda a: Times.apply(torch.tensor(3.0), torch.tensor(2.0)) + a)(WEIGHTS).tolist() == [6.0, 7.0, 8.0]
    assert Times.seen == []
    nested = vmap(lambda a: vmap(lambda b: Times.apply(a, b))(torch.arange(2.0)))(WEIGHTS)
    assert nested.tolist() == [[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]]
    assert Times.seen[:2] == [(None, 0), (0, None)]  # the inner call's rule first, then the outer one's


@pytest.mark.parametrize("rule,message", [
    (lambda a: a, "to have two returns, an output and out_dims .* Got a <class 'torch.Tensor'> instead"),
    (lambda a: (a,), "Got 1 returns instead"),
    (lambda a: (a, 0, 0), "Got 3 returns instead"),
    (lambda a: (a, (0, 0)), r"incompatible \(output, out_dims\) tuple. Expected out_dims=\(0, 0\)"),
    (lambda a: ((a, a), (0,)), r"incompatible \(output, out_dims\) tuple. Expected out_dims=\(0,\)"),
])
def test_rules_that_give_something_else(rule, message):
    class Wrong(torch.autograd.Function):
        forward = staticmethod(lambda a: a * 1)
        setup_context = staticmethod(lambda ctx, inputs, output: None)
        backward = staticmethod(lambda ctx, grad: grad)
        vmap = staticmethod(lambda info, in_dims, a: rule(a))

    with pytest.raises(RuntimeError, match=message):
        vmap(Wrong.apply)(WEIGHTS)


def test_several_outputs_share_one_dimension_or_have_their_own():
    class Both(torch.autograd.Function):
        forward = staticmethod(lambda a: (a * 1, a * 2))
        setup_context = staticmethod(lambda ctx, inputs, output: None)
        backward = staticmethod(lambda ctx, g, h: g + 2 * h)
        vmap = staticmethod(lambda info, in_dims, a: ((a, (a * 2).unsqueeze(0)), (0, 1)) if in_dims == (0,) else None)

    first, second = vmap(Both.apply)(WEIGHTS)
    assert first.tolist() == [0.0, 1.0, 2.0] and second.tolist() == [[0.0], [2.0], [4.0]]
