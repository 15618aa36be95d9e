"""Cells as modules and modules as Cells: shared parameters, optimizers of either side, MindSpore's training wrappers."""

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn, ops

from msadapter_hook.interop import as_cell

torch.manual_seed(0)
X, Y = torch.randn(6, 3), torch.tensor([0, 1, 0, 1, 1, 0])
NATIVE_X, NATIVE_Y = ms.Tensor(X.numpy()), ms.Tensor(Y.numpy().astype(np.int32))


def build():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


def reference(steps=4):
    """The losses and the module after plain PyTorch training."""
    net, criterion = build(), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = criterion(net(X), Y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, net


def assert_trained_alike(net, losses):
    want, other = reference()
    assert losses == pytest.approx(want, abs=1e-5)
    for (name, a), b in zip(net.state_dict().items(), other.state_dict().values()):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6, msg=name)


# ------------------------------------------------------------------------------------------------ a Cell in a module
class WithCell(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 3)
        self.cell = nn.Dense(3, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.cell(torch.tanh(self.first(x))))


def test_a_cell_is_a_submodule():
    net = WithCell()
    assert [n for n, _ in net.named_parameters()] == ["first.weight", "first.bias", "cell.weight", "cell.bias", "norm.gamma",
                                                      "norm.beta"]
    assert list(net.state_dict())[-2:] == ["norm.moving_mean", "norm.moving_variance"]
    assert isinstance(net.cell, torch.nn.Module) and isinstance(net.cell.weight, torch.nn.Parameter)
    assert "Dense(input_channels=3, output_channels=4" in repr(net)
    net.eval()
    assert net.norm.cell.training is False
    net.train()
    assert net.norm.cell.training is True
    assert list(torch.nn.Sequential(nn.Dense(2, 2), torch.nn.ReLU()).state_dict()) == ["0.weight", "0.bias"]
    assert torch.nn.ModuleList([nn.Dense(2, 2)])[0](torch.ones(1, 2)).shape == (1, 2)


def test_a_cell_trains_as_the_module_it_is():
    net = WithCell()
    twin = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh(), torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    with torch.no_grad():
        for p, q in zip(twin.parameters(), net.parameters()):
            p.copy_(q)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (net, twin)]
    for _ in range(3):
        for m, optimizer in zip((net, twin), optimizers):
            optimizer.zero_grad()
            (m(X) * torch.arange(24.0).view(6, 4).sin()).mean().backward()
            optimizer.step()
    for p, q in zip(net.parameters(), twin.parameters()):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(net.cell.cell.weight.asnumpy(), net.cell.weight.detach().numpy())
    torch.testing.assert_close(net.norm.moving_mean, twin[3].running_mean, rtol=1e-4, atol=1e-6)


def test_native_updates_and_replacements_are_seen():
    dense = nn.Dense(2, 2)
    module = torch.nn.Sequential(dense)
    ops.assign(dense.weight, ms.Tensor(np.full((2, 2), 3, np.float32)))
    assert module[0].weight.tolist() == [[3, 3], [3, 3]]
    dense.weight.set_data(ms.Tensor(np.full((2, 2), 4, np.float32)))
    assert module[0].weight.tolist() == [[4, 4], [4, 4]]
    with torch.no_grad():
        module[0].weight.fill_(5)
    np.testing.assert_array_equal(dense.weight.asnumpy(), 5)
    module.load_state_dict({"0.weight": torch.full((2, 2), 6.0), "0.bias": torch.zeros(2)})
    np.testing.assert_array_equal(dense(ms.Tensor([[1.0, 1.0]], ms.float32)).asnumpy(), [[12, 12]])
    module[0].weight.data = torch.full((2, 2), 7.0)  # new memory on our side
    assert module(torch.ones(1, 2)).tolist() == [[14, 14]]


def test_a_native_parameter_as_attribute():
    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = ms.Parameter(ms.Tensor([2.0], ms.float32), name="scale")

        def forward(self, x):
            return x * self.scale

    net = Scale()
    assert [n for n, _ in net.named_parameters()] == ["scale"]
    net(torch.ones(3)).sum().backward()
    assert net.scale.grad.tolist() == [3]


def test_a_cell_with_its_own_gradient():
    class Own(nn.Cell):
        def construct(self, x):
            return x * 2

        def bprop(self, x, out, dout):
            return (dout * 100,)

    x = torch.ones(3, requires_grad=True)
    Own()(x).sum().backward()
    assert x.grad.tolist() == [100, 100, 100]


def test_a_cell_that_holds_served_modules():
    class Mixed(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net = build()
            self.head = nn.Dense(2, 2)

        def construct(self, x):
            return self.head(torch.tanh(self.net(x)))

    cell = Mixed()
    assert len(cell.trainable_params()) == 8
    result = cell(X)
    assert isinstance(result, torch.Tensor)
    loss, grads = ms.value_and_grad(lambda x: cell(x).sum(), None, cell.trainable_params())(X)
    head, inner = cell.head, cell.net.module
    w, b = (torch.tensor(p.asnumpy()) for p in (head.weight, head.bias))
    want = torch.autograd.grad((torch.tanh(inner(X)) @ w.t() + b).sum(), list(inner.parameters()))
    by_name = dict(zip([p.name for p in cell.trainable_params()], grads))
    for (name, _), g in zip(inner.named_parameters(), want):
        torch.testing.assert_close(by_name["net." + name], g, rtol=1e-4, atol=1e-5)


# ------------------------------------------------------------------------------------------------ a module as a Cell
def test_as_cell_shares_parameters():
    net = build()
    cell = as_cell(net)
    assert isinstance(cell, nn.Cell) and as_cell(net) is cell and as_cell(cell) is cell
    assert [p.name for p in cell.trainable_params()] == [n for n, _ in net.named_parameters()]
    ops.assign(cell.trainable_params()[1], ms.Tensor(np.full(8, 2, np.float32)))
    assert net[0].bias.tolist() == [2] * 8
    with torch.no_grad():
        net[0].bias.zero_()
    assert cell.trainable_params()[1].asnumpy().tolist() == [0] * 8
    native = cell(NATIVE_X)
    assert type(native) is ms.Tensor
    cell.set_train(False)
    assert not net.training
    np.testing.assert_allclose(cell(NATIVE_X).asnumpy(), net(X).detach().numpy(), rtol=1e-6)
    assert isinstance(cell(X), torch.Tensor)
    with pytest.raises(TypeError, match="torch.nn.Module"):
        as_cell(3)


@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss, torch.nn.CrossEntropyLoss], ids=["native loss", "served loss"])
@pytest.mark.parametrize("explicit", [True, False], ids=["as_cell", "by itself"])
def test_train_one_step_cell(loss, explicit):
    net = build()
    given = as_cell(net) if explicit else net
    step = nn.TrainOneStepCell(nn.WithLossCell(given, loss()), nn.SGD(given.trainable_params(), 0.1))
    step.set_train()
    assert_trained_alike(net, [float(step(NATIVE_X, NATIVE_Y)) for _ in range(4)])


@pytest.mark.parametrize("sink", [False, True])
def test_model_train(sink):
    net = build()
    rows = [(X.numpy(), Y.numpy().astype(np.int32))] * 4
    dataset = ms.dataset.GeneratorDataset(rows, ["data", "label"], shuffle=False)
    losses = []

    class Keep(ms.train.Callback):
        def step_end(self, run_context):
            losses.append(float(run_context.original_args().net_outputs))

    model = ms.train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1), metrics={"acc"})
    model.train(1, dataset, callbacks=[Keep()], dataset_sink_mode=sink)
    if sink:  # one callback for the whole sink
        losses = reference()[0][:3] + losses[-1:]
    assert_trained_alike(net, losses)
    accuracy = model.eval(dataset, dataset_sink_mode=False)["acc"]
    net.eval()
    assert accuracy == pytest.approx((net(X).argmax(1) == Y).float().mean().item())


def test_native_gradients_through_a_served_cell():
    cell, loss = as_cell(build()), nn.CrossEntropyLoss()
    grad = ms.ops.GradOperation(get_by_list=True)
    weights = ms.ParameterTuple(cell.trainable_params())
    cell.set_train()
    network = nn.WithLossCell(cell, loss)
    grads = grad(network, weights)(NATIVE_X, NATIVE_Y)
    net = build()
    want = torch.autograd.grad(torch.nn.CrossEntropyLoss()(net(X), Y), list(net.parameters()))
    for g, w in zip(grads, want):
        np.testing.assert_allclose(g.asnumpy(), w.numpy(), rtol=1e-4, atol=1e-6)


def test_autograd_function_inside_a_served_cell():
    class Triple(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g * 50

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(3))

        def forward(self, x):
            return Triple.apply(x * self.w)

    net = Net()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss("sum")), nn.SGD(net.trainable_params(), 0.001))
    step(ms.Tensor([[1.0, 1.0, 1.0]], ms.float32), ms.Tensor([[2.0, 2.0, 2.0]], ms.float32))
    np.testing.assert_allclose(net.w.detach().numpy(), 1 - 0.001 * 2 * (3 - 2) * 50, rtol=1e-6)


def test_checkpoints_of_mindspore(tmp_path):
    _, net = reference()
    path = str(tmp_path / "net.ckpt")
    ms.save_checkpoint(net, path)
    values = ms.load_checkpoint(path)
    assert set(values) >= {n for n, _ in net.named_parameters()} | {"1.running_mean", "1.running_var"}
    other = build()
    assert ms.load_param_into_net(other, values) == ([], [])
    for (name, a), b in zip(net.named_parameters(), other.parameters()):
        assert torch.equal(a, b), name
    assert torch.equal(net[1].running_var, other[1].running_var)


def test_a_module_changed_afterwards_is_followed():
    net = build()
    cell = as_cell(net)
    net.double()
    assert cell(ms.Tensor(X.numpy().astype(np.float64))).dtype == ms.float64
    assert cell.trainable_params()[0].dtype == ms.float64


def test_containers_of_both():
    net = build()
    both = nn.SequentialCell(net, nn.ReLU(), torch.nn.Linear(2, 1))
    assert len(both.trainable_params()) == 8
    both.set_train(False)
    native, ours = both(NATIVE_X), both(X)
    assert type(native) is ms.Tensor and isinstance(ours, torch.Tensor)
    np.testing.assert_allclose(native.asnumpy(), ours.detach().numpy(), rtol=1e-5)


def test_native_optimizers_take_generators_and_groups():
    net = build()
    optimizer = nn.Momentum([{"params": net[0].parameters(), "lr": 0.5}, {"params": list(net[3].parameters())}], 0.1, 0.0)
    before = [p.detach().clone() for p in (*net[0].parameters(), *net[3].parameters())]
    optimizer(tuple(torch.ones_like(p) for p in before))
    for p, b, rate in zip((*net[0].parameters(), *net[3].parameters()), before, (0.5, 0.5, 0.1, 0.1)):
        torch.testing.assert_close(p.detach(), b - rate)


def test_model_train_in_graph_mode():
    net = build()
    dataset = ms.dataset.GeneratorDataset([(X.numpy(), Y.numpy().astype(np.int32))] * 4, ["data", "label"], shuffle=False)
    losses = []

    class Keep(ms.train.Callback):
        def step_end(self, run_context):
            losses.append(float(run_context.original_args().net_outputs))

    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        model = ms.train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.1))
        model.train(1, dataset, callbacks=[Keep()], dataset_sink_mode=False)
        predicted = model.predict(NATIVE_X)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert_trained_alike(net, losses)
    assert type(predicted) is ms.Tensor and predicted.shape == (6, 2)


def test_bfloat16_parameters_are_shared(tmp_path):
    net = build().bfloat16()
    cell = as_cell(net)
    assert all(p.dtype == ms.bfloat16 for p in cell.trainable_params())
    with torch.no_grad():
        net[0].bias.fill_(2)
    bias = cell.trainable_params()[1]
    assert bias.asnumpy().astype(np.float32).tolist() == [2] * 8
    bias.set_data(ms.Tensor(np.arange(8, dtype=np.float32)).astype(ms.bfloat16))
    assert net[0].bias.tolist() == list(range(8))
    x = X.bfloat16()
    native = cell(ms.Tensor(x))
    assert native.dtype == ms.bfloat16
    cell.set_train(False)
    assert torch.equal(torch.tensor(cell(ms.Tensor(x))), net(x).detach())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    grads = ms.grad(lambda x: net(x).sum(), None, optimizer.parameters)(x)
    before = net[3].bias.detach().clone()
    optimizer(grads)
    assert torch.equal(net[3].bias.detach(), before - 0.5 * grads[5]) and grads[5].dtype is torch.bfloat16
    path = str(tmp_path / "net.ckpt")
    ms.save_checkpoint(net, path)
    other = build().bfloat16()
    assert ms.load_param_into_net(other, ms.load_checkpoint(path)) == ([], [])
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), other.state_dict().values()) if a.dim())


def test_a_native_bfloat16_parameter_gets_its_gradient():
    w = ms.Parameter(ms.Tensor(np.ones((3, 2), np.float32)).astype(ms.bfloat16), name="w")
    (grad,) = ms.grad(lambda x: (x @ w).sum(), None, [w])(torch.ones(4, 3, dtype=torch.bfloat16))
    assert grad.dtype is torch.bfloat16 and grad.tolist() == [[4, 4]] * 3


def test_dtypes_that_mindspore_lacks_are_refused_by_name():
    net = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(2).to(torch.float8_e4m3fn), requires_grad=False)])
    with pytest.raises(NotImplementedError, match="float8_e4m3fn"):
        as_cell(net)
