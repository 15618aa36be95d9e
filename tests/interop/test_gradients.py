"""mindspore.value_and_grad and its kin over functions of our tensors: positions, weights, has_aux, ids, sensitivities."""

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn, ops


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))


X = torch.tensor([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]])
Y = torch.tensor([1, 0])


def expected(net, loss):
    return torch.autograd.grad(loss, list(net.parameters()))


@pytest.mark.parametrize("where", [ms.value_and_grad, ms.ops.value_and_grad], ids=["mindspore", "ops"])
def test_weights_of_an_optimizer_with_aux(where):
    net, criterion = model(), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def forward_fn(data, label):
        logits = net(data)
        return criterion(logits, label), logits

    want = expected(net, criterion(net(X), Y))
    (loss, logits), grads = where(forward_fn, None, optimizer.parameters, has_aux=True)(X, Y)
    assert isinstance(loss, torch.Tensor) and isinstance(logits, torch.Tensor) and isinstance(grads, tuple)
    assert not loss.requires_grad and loss.numpy() == loss.asnumpy() == criterion(net(X), Y).item()
    assert all(torch.equal(a, b) for a, b in zip(grads, want))
    assert all(p.grad is None for p in net.parameters())
    before = [p.detach().clone() for p in net.parameters()]
    optimizer(grads)
    for p, b, g in zip(net.parameters(), before, grads):
        torch.testing.assert_close(p.detach(), b - 0.1 * g)
    assert all(p.grad is None for p in net.parameters())


def test_without_the_tape_variable(checkout):
    program = (
        "import msadapter_hook; msadapter_hook.install()\n"
        "import torch, mindspore as ms\n"
        "w = torch.nn.Parameter(torch.ones(2))\n"
        "value, grads = ms.value_and_grad(lambda x: (w * x).sum(), None, [w])(torch.arange(2.))\n"
        "print(value.item(), grads[0].tolist())\n"
        "try: (w * 2).sum().backward()\n"
        "except RuntimeError as error: print('ENABLE_BACKWARD=1' in str(error))\n"
    )
    assert checkout.output("-c", program) == "1.0 [0.0, 1.0]\nTrue\n"


def test_positions():
    f = lambda a, b: (a * b * b).sum()  # noqa: E731
    a, b = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    assert ms.grad(f)(a, b).tolist() == [9, 16]
    assert ms.grad(f, 1)(a, b).tolist() == [6, 16]
    both = ms.grad(f, (0, 1))(a, b)
    assert isinstance(both, tuple) and [g.tolist() for g in both] == [[9, 16], [6, 16]]
    assert ms.grad(f, (1,))(a, b).tolist() == [6, 16]
    with pytest.raises(ValueError, match="can not be None at the same time"):
        ms.grad(f, None)


def test_positions_and_weights_together_and_one_weight():
    w = torch.nn.Parameter(torch.tensor([2.0, 3.0]))
    x = torch.tensor([5.0, 7.0])
    f = lambda x: (w * x).sum()  # noqa: E731
    value, (by_x, by_w) = ms.value_and_grad(f, 0, [w])(x)
    assert value.item() == 31 and by_x.tolist() == [2, 3] and by_w[0].tolist() == [5, 7]
    assert ms.grad(f, None, w)(x).tolist() == [5, 7]  # one weight, one gradient


def test_all_outputs_are_summed_unless_aux():
    f = lambda x: (x * 2, x * 3)  # noqa: E731
    x = torch.ones(2)
    assert ms.grad(f)(x).tolist() == [5, 5]
    grads, aux = ms.grad(f, has_aux=True)(x)
    assert grads.tolist() == [2, 2] and aux[0].tolist() == [3, 3]
    assert ms.grad(lambda x: (x * 2, ops.stop_gradient(x * 3)))(x).tolist() == [2, 2]
    with pytest.raises(ValueError, match="more than one output"):
        ms.grad(lambda x: x * 2, has_aux=True)(x)


def test_unused_weights_get_zeros():
    used, unused = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))
    grads = ms.grad(lambda x: (used * x).sum(), None, [used, unused])(torch.ones(2))
    assert grads[0].tolist() == [1, 1] and grads[1].tolist() == [0, 0, 0]


def test_ids_and_get_grad():
    w = torch.nn.Parameter(torch.tensor([2.0]))
    x = torch.tensor([3.0])
    _, grads = ms.value_and_grad(lambda x: (w * x).sum(), 0, [w], return_ids=True)(x)
    assert grads[0][0] == 0 and grads[1][0][0] is w
    assert ms.get_grad(grads, 0).tolist() == [2] and ms.get_grad(grads, w).tolist() == [3]


def test_sensitivity():
    f = ms.value_and_grad(lambda x: x * x, sens_param=True)
    value, grads = f(torch.tensor([1.0, 2.0]), torch.tensor([10.0, 100.0]))
    assert value.tolist() == [1, 4] and grads.tolist() == [20, 400]
    assert f(torch.tensor([1.0, 2.0]), sens=torch.tensor([1.0, 0.0]))[1].tolist() == [2, 0]


def test_second_order():
    cube = ms.grad(ms.grad(lambda x: (x**3).sum()))
    assert cube(torch.tensor([2.0, 3.0])).tolist() == [12, 18]


def test_products():
    x = torch.tensor([3.0])
    value, pull = ms.vjp(lambda a: a**2, x)
    assert value.tolist() == [9] and pull(torch.tensor([2.0]))[0].tolist() == [12] and pull(torch.tensor([1.0]))[0].tolist() == [6]
    values, tangents = ms.jvp(lambda a: (a**2, a * 3), x, torch.tensor([2.0]))
    assert [v.tolist() for v in values] == [[9], [9]] and [t.tolist() for t in tangents] == [[12], [6]]
    w = torch.nn.Parameter(torch.tensor([5.0]))
    _, pull = ms.vjp(lambda a: a * w, x, weights=[w])
    by_x, by_w = pull(torch.tensor([1.0]))
    assert by_x[0].tolist() == [5] and by_w[0].tolist() == [3]


def test_native_data_is_taken_in():
    net, criterion = model(), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    grad_fn = ms.value_and_grad(lambda d, t: criterion(net(d), t), None, optimizer.parameters)
    loss, grads = grad_fn(ms.Tensor(X.numpy()), ms.Tensor(Y.numpy()))
    same, same_grads = grad_fn(X, Y)
    assert torch.equal(loss, same) and all(torch.equal(a, b) for a, b in zip(grads, same_grads))


def test_served_modules_are_found_wherever_they_hide():
    net = model()
    x = ms.Tensor(X.numpy())
    want = torch.autograd.grad(net(X.clone().requires_grad_()).sum(), net.parameters())  # the module works
    assert len(want) == 4
    hidden = {"net": net}

    class Callable:
        def __init__(self):
            self.inner = hidden

        def __call__(self, x):
            return self.inner["net"](x).sum()

    import builtins

    builtins.a_hiding_place = net  # nothing in the function refers to it in a way that can be seen
    try:
        results = [ms.grad(f)(x) for f in (lambda x: net(x).sum(), Callable(), lambda x: a_hiding_place(x).sum())]  # noqa: F821
    finally:
        del builtins.a_hiding_place
    leaf = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(net(leaf).sum(), leaf)
    for found in results:
        assert isinstance(found, torch.Tensor)
        torch.testing.assert_close(found, gradient)


def test_a_function_of_both_histories():
    """A native Cell, a served loss and a native penalty on native weights, computed without any tensor of ours."""
    dense = nn.Dense(3, 2)
    criterion = torch.nn.CrossEntropyLoss()

    def forward_fn(data, label):
        return criterion(dense(torch.tanh(data)), label) + 0.1 * ops.reduce_sum(dense.weight * dense.weight)

    loss, grads = ms.value_and_grad(forward_fn, None, dense.trainable_params())(X, Y)
    w, b = (torch.tensor(p.asnumpy(), requires_grad=True) for p in (dense.weight, dense.bias))
    want = criterion(torch.tanh(X) @ w.t() + b, Y) + 0.1 * (w * w).sum()
    want.backward()
    torch.testing.assert_close(loss, want.detach())
    torch.testing.assert_close(grads[0], w.grad)
    torch.testing.assert_close(grads[1], b.grad)


def test_native_optimizer_takes_our_gradients():
    net = model()
    native = nn.SGD(net.trainable_params(), 0.5)
    before = [p.detach().clone() for p in net.parameters()]
    grads = ms.grad(lambda x: net(x).sum(), None, list(net.parameters()))(X)
    native(grads)
    for p, b, g in zip(net.parameters(), before, grads):
        torch.testing.assert_close(p.detach(), b - 0.5 * g)


def test_clip_by_global_norm():
    grads = (torch.tensor([3.0]), torch.tensor([4.0]))
    clipped = ops.clip_by_global_norm(grads, 1.0)
    assert all(isinstance(g, torch.Tensor) for g in clipped)
    np.testing.assert_allclose([g.item() for g in clipped], [0.6, 0.8], rtol=1e-6)


def test_custom_gradient_of_ours_inside():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 100

    assert ms.grad(lambda x: Double.apply(x).sum())(torch.ones(2)).tolist() == [100, 100]


def test_grad_operation():
    a, b = torch.ones(2), torch.full((2,), 3.0)
    assert [g.tolist() for g in ops.GradOperation(get_all=True)(lambda a, b: (a * b).sum())(a, b)] == [[3, 3], [1, 1]]
    assert ops.GradOperation()(lambda a, b: (a * b).sum())(a, b).tolist() == [3, 3]
    assert ops.GradOperation(sens_param=True)(lambda a: a * 2)(a, b).tolist() == [6, 6]
    w = torch.nn.Parameter(torch.ones(2))
    grads = ops.GradOperation(get_by_list=True)(lambda a: (w * a).sum(), [w])(b)
    assert [g.tolist() for g in grads] == [[3, 3]]
    by_input, by_weight = ops.GradOperation(get_all=True, get_by_list=True)(lambda a: (w * a).sum(), [w])(b)
    assert by_input[0].tolist() == [1, 1] and by_weight[0].tolist() == [3, 3]


def test_jacobians_and_vmap():
    x = torch.tensor([1.0, 2.0])
    for transform in (ms.jacrev, ms.jacfwd):
        assert transform(lambda a: a**2)(x).tolist() == [[2, 0], [0, 4]]
    assert ms.vmap(lambda a: (a * 2).sum())(torch.ones(2, 3)).tolist() == [6, 6]
    assert ms.vmap(lambda a, b: a + b, in_axes=(0, None))(torch.ones(2, 3), torch.ones(3)).shape == (2, 3)
