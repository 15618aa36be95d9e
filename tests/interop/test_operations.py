"""MindSpore's operations and primitives called with our tensors: on the tape, with PyTorch's gradients, results ours."""

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import mint, ops

# d/dx and d/dw of tanh(relu(x) @ w).sum(), x and w drawn after manual_seed(3): recorded from PyTorch
GRAD_X = [[-0.38147321343421936, 0.2445726990699768, 1.4490692615509033, 0.0],
          [-0.20605924725532532, 0.0, 1.3397785425186157, 0.12481187283992767],
          [0.0, -0.0033296793699264526, 0.9643930196762085, -0.072486013174057]]
GRAD_W = [[0.6354944109916687, 0.7811272740364075], [0.30709129571914673, 1.1174530982971191],
          [0.35606247186660767, 0.9252495765686035], [0.8064687848091125, 2.20845627784729]]

MIXTURES = {
    "ops": lambda x, w: torch.tanh(ops.matmul(ops.relu(x), w)),
    "mint": lambda x, w: mint.tanh(mint.matmul(torch.relu(x), w)),
    "mint.nn.functional": lambda x, w: torch.tanh(mint.nn.functional.relu(x) @ w),
    "primitives": lambda x, w: ops.Tanh()(ops.MatMul()(ops.ReLU()(x), w)),
    "numpy": lambda x, w: torch.tanh(ms.numpy.matmul(torch.relu(x), w)),
    "one call": lambda x, w: ops.tanh(ops.matmul(ops.relu(x), w)),
}


def leaves():
    torch.manual_seed(3)
    return torch.randn(3, 4, requires_grad=True), torch.randn(4, 2, requires_grad=True)


@pytest.mark.parametrize("name", MIXTURES)
def test_gradients_flow_through(name):
    x, w = leaves()
    y = MIXTURES[name](x, w)
    assert type(y) is torch.Tensor and y.requires_grad and y.grad_fn is not None
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), GRAD_X, rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(w.grad.numpy(), GRAD_W, rtol=2e-5, atol=2e-6)


def test_results_without_history_are_ours():
    x, _ = leaves()
    with torch.no_grad():
        y = ops.relu(x)
    assert type(y) is torch.Tensor and not y.requires_grad
    assert torch.equal(y, torch.relu(x).detach())
    assert not ops.relu(x.detach()).requires_grad


def test_several_results_and_integers():
    x = torch.tensor([[3.0, 1.0, 2.0]], requires_grad=True)
    values, places = ops.topk(x, 2)
    assert places.tolist() == [[0, 2]] and not places.requires_grad
    (values * torch.tensor([10.0, 1.0])).sum().backward()
    assert x.grad.tolist() == [[10.0, 0.0, 1.0]]


def test_tensors_in_lists_and_by_keyword():
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    (ops.cat([a, b * 2]) * torch.arange(4.0)).sum().backward()
    assert a.grad.tolist() == [0, 1] and b.grad.tolist() == [4, 6]
    x = torch.ones(2, requires_grad=True)
    ops.pow(input=x * 3, exponent=2).sum().backward()
    assert x.grad.tolist() == [18, 18]


def test_random_calls_are_differentiated_as_drawn():
    x = torch.ones(1000, requires_grad=True)
    y = ops.dropout(x, p=0.5, training=True)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())  # 0 where dropped, 2 where kept
    assert 300 < int((y == 0).sum()) < 700


def test_second_backward_needs_retain_graph():
    x = torch.ones(3, requires_grad=True)
    y = ops.square(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4, 4, 4]
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_gradient_of_the_gradient_is_refused_by_name():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(NotImplementedError, match=r"square.*create_graph=True"):
        torch.autograd.grad(ops.square(x).sum(), x, create_graph=True)


def test_native_tensors_as_constants_and_operands():
    x = torch.ones(2, 3, requires_grad=True)
    m = ms.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert isinstance(ops.mul(x, m), torch.Tensor)
    y = x * m + torch.add(m, x)
    y.sum().backward()
    assert x.grad.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_native_parameter_as_argument_gets_its_gradient():
    w = ms.Parameter(ms.Tensor(np.full((3, 2), 2.0, np.float32)), name="w")
    x = torch.ones(1, 3, requires_grad=True)
    (loss, grads) = ms.value_and_grad(lambda a: ops.matmul(torch.relu(a), w).sum(), 0, [w])(x)
    assert float(loss) == 12 and grads[0].tolist() == [[4, 4, 4]] and grads[1][0].tolist() == [[1, 1]] * 3


@pytest.mark.parametrize("function, expected", [(ops.assign, 5.0), (ops.assign_add, 6.0), (ops.assign_sub, -4.0)])
def test_native_writes_reach_our_tensor(function, expected):
    x = torch.ones(2)
    view = x[:1]
    function(x, torch.full((2,), 5.0))
    assert x.tolist() == [expected] * 2 and view.tolist() == [expected]


def test_stop_gradient():
    x = torch.ones(3, requires_grad=True)
    (x * ops.stop_gradient(x * 2)).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_bfloat16_crosses():
    x = torch.ones(3, dtype=torch.bfloat16)
    native = ms.Tensor(np.ones(3, np.float32)).astype(ms.bfloat16)
    assert torch.cast_to_adapter_tensor(native).dtype is torch.bfloat16
    assert torch.equal(torch.cast_to_adapter_tensor(native), x)


def test_cast_to_adapter_tensor_takes_anything():
    native = ms.Tensor(np.ones(3, np.float32))
    a, (b, c), d = torch.cast_to_adapter_tensor((native, [native, 3], {"k": native}))
    assert isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and c == 3 and isinstance(d["k"], torch.Tensor)
    ours = torch.ones(2)
    assert torch.cast_to_adapter_tensor(ours) is ours


def test_forward_mode_is_refused_by_name():
    with pytest.raises(NotImplementedError, match="relu"):
        torch.func.jvp(lambda x: ops.relu(x), (torch.ones(3),), (torch.ones(3),))


NATIVE = np.array([1.0, 2.0], np.float32)


@pytest.mark.parametrize(
    "use",
    [
        lambda t: torch.tensor(t), lambda t: torch.as_tensor(t), lambda t: torch.nn.Parameter(t), lambda t: torch.zeros(2) + t,
        lambda t: t + torch.zeros(2), lambda t: torch.zeros(2).copy_(t), lambda t: torch.stack([t, t])[0],
        lambda t: torch.nn.Identity()(t) * 1, lambda t: torch.nn.functional.relu(t), lambda t: torch.ones(2).mul(t),
    ],
)
def test_native_tensors_are_taken_where_ours_are(use):
    made = use(ms.Tensor(NATIVE))
    assert isinstance(made, torch.Tensor) and made.tolist() == [1, 2]


def test_native_tensors_into_modules_and_slices():
    x = ms.Tensor(np.ones((2, 1, 3), np.float32))
    torch.manual_seed(0)
    for module in (torch.nn.LSTM(3, 4), torch.nn.TransformerEncoderLayer(3, 1, 4).eval(), torch.nn.Linear(3, 2)):
        ours, same = module(x), module(torch.ones(2, 1, 3))
        ours, same = (ours[0], same[0]) if isinstance(ours, tuple) else (ours, same)
        assert torch.equal(ours, same)
    t = torch.zeros(3)
    t[1:] = ms.Tensor(NATIVE)
    assert t.tolist() == [0, 1, 2]
    assert torch.nn.Embedding(4, 3)(ms.Tensor([1, 2])).shape == (2, 3)


def test_metrics_take_our_tensors():
    metric = ms.train.Accuracy()
    metric.update(torch.eye(2, requires_grad=True), torch.tensor([0, 0]))
    assert metric.eval() == 0.5
