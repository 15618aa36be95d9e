"""MindSpore's tensors and ours in each other's operators, indices and methods, and made from each other."""

import builtins
import operator

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn, ops

from msadapter_hook.interop.natives import OPERATORS
from msadapter_hook.interop.patches import OPERATOR_METHODS

A = np.array([[4.0, 1.0, 2.0], [3.0, 5.0, 7.0]], np.float32)
B = np.array([[2.0, 3.0, 2.0], [1.0, 2.0, 4.0]], np.float32)


# ------------------------------------------------------------------------------------------------ operators
BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "ne", "lt", "le", "gt", "ge"]


@pytest.mark.parametrize("name", BINARY)
def test_operators_over_both(name):
    compute = getattr(operator, name)
    want = compute(A, B)
    for made in (compute(torch.tensor(A), ms.Tensor(B)), compute(ms.Tensor(A), torch.tensor(B))):
        assert isinstance(made, torch.Tensor) and (made.dtype is torch.bool) == (want.dtype == bool)
        np.testing.assert_allclose(made.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("name", ["and_", "or_", "xor"])
def test_bitwise_operators_over_both(name):
    compute, a, b = getattr(operator, name), A.astype(np.int32), B.astype(np.int32)
    for made in (compute(torch.tensor(a), ms.Tensor(b)), compute(ms.Tensor(a), torch.tensor(b))):
        assert isinstance(made, torch.Tensor) and made.tolist() == compute(a, b).tolist()


def test_products_over_both():
    for made in (torch.tensor(A) @ ms.Tensor(B.T), ms.Tensor(A) @ torch.tensor(B.T)):
        assert isinstance(made, torch.Tensor) and made.tolist() == (A @ B.T).tolist()


def test_promotion_over_both_is_that_of_pytorch():
    for made in (torch.arange(3) + ms.Tensor(np.ones(3, np.float16)), ms.Tensor(np.arange(3)) + torch.ones(3, dtype=torch.float16)):
        assert made.dtype is torch.float16


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv"])
def test_in_place_operators_keep_the_kind_of_the_left_side(name):
    update, want = getattr(operator, name), getattr(operator, name)(A.copy(), B)
    ours, native = torch.tensor(A), ms.Tensor(A)
    assert update(ours, ms.Tensor(B)) is ours
    np.testing.assert_allclose(ours.numpy(), want, rtol=1e-6)
    native = update(native, torch.tensor(B))  # MindSpore's own is another object
    assert type(native) is ms.Tensor
    np.testing.assert_allclose(native.asnumpy(), want, rtol=1e-6)


def test_every_operator_is_thought_of():
    assert set(OPERATOR_METHODS) - set(OPERATORS) == {"__setitem__", *[m for m in OPERATOR_METHODS if m.startswith("__i")]}


def test_membership():
    assert torch.tensor(5.0) in ms.Tensor(A) and ms.Tensor(5.0) in torch.tensor(A) and torch.tensor(9.0) not in ms.Tensor(A)


def test_gradients_of_operators_over_both():
    w = ms.Parameter(ms.Tensor(A), name="w")
    x = torch.tensor(B, requires_grad=True)
    grads = ms.grad(lambda x: (w * x / (x + ms.Tensor(A))).sum(), 0, [w])(x)
    a, b = torch.tensor(A, requires_grad=True), torch.tensor(B, requires_grad=True)
    want = torch.autograd.grad((a * b / (b + torch.tensor(A))).sum(), [b, a])
    torch.testing.assert_close(grads[0], want[0])
    torch.testing.assert_close(grads[1][0], want[1])
    (w * x).sum().backward()
    assert x.grad.tolist() == A.tolist()


# ------------------------------------------------------------------------------------------------ indices
KEYS = {
    "positions": lambda t: t(np.array([1, 0])),
    "positions in the second dimension": lambda t: (slice(None), t(np.array([2, 0]))),
    "pairs": lambda t: (t(np.array([1, 0])), t(np.array([2, 0]))),
    "mask": lambda t: t(A > 2),
    "number": lambda t: t(np.array(1)),
    "number in a slice": lambda t: slice(t(np.array(1)), None),
    "list": lambda t: (0, [t(np.array(1)), t(np.array(2))]),
}


@pytest.mark.parametrize("name", KEYS)
def test_indices_of_the_other_side(name):
    want = torch.tensor(A)[KEYS[name](torch.tensor)]
    assert torch.equal(torch.tensor(A)[KEYS[name](ms.Tensor)], want)
    written, expected = torch.tensor(A), torch.tensor(A)
    written[KEYS[name](ms.Tensor)], expected[KEYS[name](torch.tensor)] = -1.0, -1.0
    assert torch.equal(written, expected)
    if name not in ("number in a slice", "list"):
        found = ms.Tensor(A)[KEYS[name](torch.tensor)]
        assert isinstance(found, torch.Tensor) and torch.equal(found, want)


def test_writes_into_a_native_tensor():
    native = ms.Tensor(A)
    native[0] = torch.tensor(B[1])
    native[torch.tensor([1])] = torch.tensor([[9.0, 8.0, 7.0]])
    assert type(native) is ms.Tensor and native.asnumpy().tolist() == [[1, 2, 4], [9, 8, 7]]
    given = torch.ones(2, 3)
    native.copy_(given)
    given.zero_()
    assert native.asnumpy().tolist() == [[1, 1, 1]] * 2


def test_a_history_is_not_lost_in_a_native_tensor():
    native, x = ms.Tensor(A), torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="detach"):
        native[0] = x
    with torch.no_grad():
        native[0] = x
    native[1] = x.detach()
    assert native.asnumpy().tolist() == [[1, 1, 1]] * 2


# ------------------------------------------------------------------------------------------------ methods
METHODS = {
    "matmul": (lambda n, t: n.matmul(t(B.T)), lambda a: a @ B.T),
    "add": (lambda n, t: n.add(t(B)), lambda a: a + B),
    "where": (lambda n, t: n.where(t(A > 2), t(B)), lambda a: np.where(A > 2, a, B)),
    "index_select": (lambda n, t: n.index_select(0, t(np.array([1, 0]))), lambda a: a[[1, 0]]),
    "gather": (lambda n, t: n.gather(t(np.array([1])), 0), lambda a: a[[1]]),
    "masked_fill": (lambda n, t: n.masked_fill(t(A > 2), 0.0), lambda a: np.where(A > 2, 0, a)),
    "expand_as": (lambda n, t: n[:1].expand_as(t(B)), lambda a: a[[0, 0]]),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_native_tensors(name):
    call, want = METHODS[name]
    made = call(ms.Tensor(A), torch.tensor)
    assert isinstance(made, torch.Tensor)
    np.testing.assert_allclose(made.numpy(), want(A), rtol=1e-6)


def test_gradients_of_methods_of_native_parameters():
    w = ms.Parameter(ms.Tensor(A), name="w")
    x = torch.tensor(B.T, requires_grad=True)
    w.matmul(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), A.sum(0)[:, None].repeat(2, 1), rtol=1e-6)
    (grad,) = ms.grad(lambda x: w.T.matmul(x.t()).sum(), None, [w])(x)
    np.testing.assert_allclose(grad.numpy(), B.sum(1)[:, None].repeat(3, 1), rtol=1e-6)


# ------------------------------------------------------------------------------------------------ made from ours
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int16, torch.int32,
                                   torch.int64, torch.uint8, torch.bool, torch.complex64, torch.complex128])
def test_native_tensors_from_ours(dtype):
    ours = torch.tensor([[0, 1, 2], [3, 0, 1]]).to(dtype)
    for made in (ms.Tensor(ours), ms.tensor(ours), ms.Tensor(ours.t()).T, ms.Parameter(ours, name="p")):
        assert isinstance(made, ms.Tensor) and torch.equal(torch.tensor(made), ours) and torch.tensor(made).dtype is dtype


def test_native_tensors_from_ours_are_copies_without_history():
    ours = torch.ones(3, requires_grad=True)
    native, parameter = ms.Tensor(ours), ms.Parameter(torch.nn.Parameter(torch.ones(3)), name="p")
    with torch.no_grad():
        ours.zero_()
    assert native.asnumpy().tolist() == [1, 1, 1] and parameter.name == "p" and parameter.requires_grad
    assert ms.Tensor(torch.ones(2), ms.float16).dtype == ms.float16
    assert ms.Tensor([torch.ones(2), torch.zeros(2)]).asnumpy().tolist() == [[1, 1], [0, 0]]
    assert ms.Tensor([torch.tensor(1.5, requires_grad=True), 2.0]).asnumpy().tolist() == [1.5, 2]
    parameter.set_data(torch.full((3,), 4.0))
    assert parameter.asnumpy().tolist() == [4, 4, 4]
    parameter.assign_value(torch.full((3,), 5.0))
    assert parameter.asnumpy().tolist() == [5, 5, 5]


def test_our_tensors_from_native_ones():
    assert torch.tensor(ms.Tensor(A)).tolist() == A.tolist()
    assert torch.tensor([ms.Tensor(1.0), 2.0]).tolist() == [1, 2]


def test_parameter_tuple_of_ours():
    net = torch.nn.Linear(3, 1)
    weights = ms.ParameterTuple(net.parameters())
    assert all(isinstance(p, ms.Parameter) for p in weights) and len({p.name for p in weights}) == 2
    (by_weight, by_bias) = ms.grad(lambda x: net(x).sum(), None, weights)(torch.tensor(A))
    assert by_weight.tolist() == [A.sum(0).tolist()] and by_bias.tolist() == [2]
    ops.assign(weights[1], ms.Tensor([7.0], ms.float32))  # the memory is one
    assert net.bias.item() == 7
    assert len(ms.ParameterTuple([*weights, *ms.ParameterTuple(torch.nn.Linear(2, 2).parameters())])) == 4


# ------------------------------------------------------------------------------------------------ where histories would be lost
class Hiding(nn.Cell):
    """A Cell with tensors of ours that nobody sees from outside."""

    def __init__(self, scale):
        super().__init__()
        self.w = ms.Parameter(ms.Tensor([1.0, 1.0, 1.0], ms.float32), name="w")
        self.scales = [scale]

    def construct(self, x):
        return ops.mul(self.w * x, self.scales[0]).sum()


@pytest.mark.parametrize("use", [lambda x, t: ops.mul(x, t), lambda x, t: x * t, lambda x, t: t * x, lambda x, t: x.mul(t),
                                 lambda x, t: torch.mul(x, t)])
def test_a_hidden_tensor_in_a_native_gradient(use):
    builtins.hidden = torch.full((3,), 2.0)
    try:
        found = ms.grad(lambda x: use(x, hidden))(ms.Tensor([1.0, 2.0, 3.0], ms.float32))  # noqa: F821
    finally:
        del builtins.hidden
    assert found.asnumpy().tolist() == [2, 2, 2]


def test_a_hidden_tensor_in_a_cell():
    scale = torch.full((3,), 3.0, requires_grad=True)
    cell, x = Hiding(scale), torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    cell(x).backward()
    assert x.grad.tolist() == [3, 3, 3] and scale.grad.tolist() == [1, 2, 3]
    for data in (x, ms.Tensor(x.detach())):
        (found,) = ms.grad(Hiding(scale.detach()), None, cell.trainable_params())(data)
        assert found.tolist() == [0, 0, 0]  # the weights of another Cell
        other = Hiding(scale.detach())
        (found,) = ms.grad(other, None, other.trainable_params())(data)
        assert found.tolist() == [3, 6, 9]
        assert ops.GradOperation()(Hiding(scale.detach()))(data).tolist() == [3, 3, 3]
    assert Hiding(scale)(x.detach()).requires_grad


def test_a_hidden_tensor_in_a_graph_of_mindspores_own_is_an_error():
    cell = Hiding(torch.full((3,), 3.0))
    step = nn.TrainOneStepCell(cell, nn.SGD(cell.trainable_params(), 0.1))
    with pytest.raises(RuntimeError, match="convert_tensor"):
        step(ms.Tensor([1.0, 2.0, 3.0], ms.float32))
