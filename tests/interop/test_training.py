"""MindSpore's ways to train, in every mixture: optimizers, wrappers, Model, datasets, jit of either side, one and the same losses."""

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn

from msadapter_hook.interop import as_cell

X = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
Y = np.array([0, 1, 2, 0, 1, 2, 0, 1])
OURS, NATIVE = (torch.tensor(X), torch.tensor(Y)), (ms.Tensor(X), ms.Tensor(Y.astype(np.int32)))
# of `build` trained on OURS by SGD(0.1, momentum=0.9) under PyTorch 2.13
LOSSES = [1.1297327280044556, 1.105531930923462, 1.0643519163131714, 1.0150915384292603]
# of `Involved` trained on OURS by Adam(0.05), random numbers from seed 5, under PyTorch 2.13
INVOLVED = [1.1386154890060425, 0.853693962097168, 0.7527182102203369, 0.5635668635368347, 0.4468402564525604, 0.5076432824134827]


def build():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))


def sgd(net):
    return torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


def momentum(net):
    return nn.Momentum(net.trainable_params(), 0.1, 0.9)


class Keep(ms.train.Callback):
    def __init__(self):
        self.losses, self.epochs = [], 0

    def on_train_step_end(self, run_context):
        self.losses.append(float(run_context.original_args().net_outputs))

    def on_train_epoch_end(self, run_context):
        self.epochs += 1


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["dynamic", "graph"])
def mode(request):
    ms.set_context(mode=request.param)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.parametrize("data", [OURS, (NATIVE[0], ms.Tensor(Y))], ids=["our data", "native data"])
@pytest.mark.parametrize("make", [sgd, momentum], ids=["our optimizer", "native optimizer"])
@pytest.mark.parametrize("jit", [False, True], ids=["plain", "jit"])
def test_functional_loops(data, make, jit, mode):
    net, criterion = build(), torch.nn.CrossEntropyLoss()
    optimizer = make(net)
    grad_fn = ms.value_and_grad(lambda x, y: criterion(net(x), y), None, optimizer.parameters)

    def train_step(x, y):
        loss, grads = grad_fn(x, y)
        optimizer(grads)
        return loss

    step = ms.jit(train_step) if jit else train_step
    losses = [step(*data) for _ in range(4)]
    assert all(isinstance(loss, torch.Tensor) for loss in losses)
    assert [loss.item() for loss in losses] == pytest.approx(LOSSES, abs=1e-5)


@pytest.mark.parametrize("make", [sgd, momentum], ids=["our optimizer", "native optimizer"])
@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss, torch.nn.CrossEntropyLoss], ids=["native loss", "our loss"])
@pytest.mark.parametrize("jit", [False, True], ids=["plain", "jit"])
def test_train_one_step_cell(make, loss, jit, mode):
    net = build()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss()), make(net))
    step.set_train()
    run = ms.jit(step) if jit else step
    assert [float(run(*NATIVE)) for _ in range(4)] == pytest.approx(LOSSES, abs=1e-5)


def test_train_one_step_cell_on_our_tensors():
    net = build()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, torch.nn.CrossEntropyLoss()), sgd(net))
    assert [float(step(*OURS)) for _ in range(4)] == pytest.approx(LOSSES, abs=1e-5)


def test_value_and_grad_of_a_cell_with_loss():
    net = build()
    optimizer, cell = momentum(net), nn.WithLossCell(as_cell(net), nn.CrossEntropyLoss())
    grad_fn, losses = ms.value_and_grad(cell, None, optimizer.parameters), []
    for _ in range(4):
        loss, grads = grad_fn(*NATIVE)
        optimizer(grads)
        losses.append(float(loss))
    assert losses == pytest.approx(LOSSES, abs=1e-5)


@pytest.mark.parametrize("make", [sgd, momentum], ids=["our optimizer", "native optimizer"])
@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss, torch.nn.CrossEntropyLoss], ids=["native loss", "our loss"])
def test_model(make, loss, tmp_path):
    net, keep = build(), Keep()
    dataset = ms.dataset.NumpySlicesDataset({"data": X, "label": Y.astype(np.int32)}, shuffle=False).batch(8)
    model = ms.train.Model(net, loss(), make(net), metrics={"acc", "loss"})
    saving = ms.train.ModelCheckpoint("net", str(tmp_path), ms.train.CheckpointConfig(save_checkpoint_steps=1))
    model.train(4, dataset, callbacks=[keep, saving], dataset_sink_mode=False)
    assert keep.losses == pytest.approx(LOSSES, abs=1e-5) and keep.epochs == 4
    found = model.eval(dataset, dataset_sink_mode=False)
    with torch.no_grad():
        logits = net.eval()(OURS[0])
    assert found["acc"] == pytest.approx((logits.argmax(1) == OURS[1]).float().mean().item())
    assert found["loss"] == pytest.approx(torch.nn.functional.cross_entropy(logits, OURS[1]).item(), abs=1e-5)
    assert type(model.predict(NATIVE[0])) is ms.Tensor
    np.testing.assert_allclose(model.predict(NATIVE[0]).asnumpy(), logits.numpy(), rtol=1e-5, atol=1e-6)
    other = build()
    files = sorted(path.name for path in tmp_path.glob("*.ckpt"))
    assert files == [f"net-{epoch}_1.ckpt" for epoch in (1, 2, 3, 4)]
    missing, _ = ms.load_param_into_net(other, ms.load_checkpoint(str(tmp_path / files[-1])))
    assert missing == [] and torch.equal(other[2].weight, net[2].weight)


def test_model_fit():
    net, keep = build(), Keep()
    dataset = ms.dataset.NumpySlicesDataset((X, Y.astype(np.int32)), ["data", "label"], shuffle=False).batch(8)
    model = ms.train.Model(net, torch.nn.CrossEntropyLoss(), momentum(net), metrics={"accuracy": ms.train.Accuracy()})
    model.fit(4, dataset, dataset, callbacks=[keep], dataset_sink_mode=False, valid_dataset_sink_mode=False)
    assert keep.losses == pytest.approx(LOSSES, abs=1e-5)


def test_a_learning_rate_schedule_of_ours_in_a_native_loop():
    net = build()
    optimizer = sgd(net)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)
    rates = []
    for _ in range(3):
        step(*NATIVE)
        schedule.step()
        rates.append(float(step.optimizer.get_lr()))
    assert rates == pytest.approx([0.05, 0.025, 0.0125])


def test_experimental_optimizers():
    losses = []
    for make in (lambda n: ms.experimental.optim.Adam(n.parameters(), lr=0.1), lambda n: torch.optim.Adam(n.parameters(), lr=0.1)):
        net, criterion = build(), torch.nn.CrossEntropyLoss()
        optimizer = make(net)
        grad_fn = ms.value_and_grad(lambda x, y: criterion(net(x), y), None, optimizer.parameters)  # noqa: B023
        losses.append([])
        for _ in range(4):
            loss, grads = grad_fn(*OURS)
            optimizer(grads)
            losses[-1].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)


# ------------------------------------------------------------------------------------------------ data
DATASETS = {
    "slices of arrays": lambda: ms.dataset.NumpySlicesDataset((X, Y), ["data", "label"], shuffle=False).batch(8),
    "slices of our tensors": lambda: ms.dataset.NumpySlicesDataset(OURS, ["data", "label"], shuffle=False).batch(8),
    "named slices of our tensors": lambda: ms.dataset.NumpySlicesDataset(dict(zip("dl", OURS)), shuffle=False).batch(8),
    "our dataset": lambda: ms.dataset.GeneratorDataset(torch.utils.data.TensorDataset(*OURS), ["data", "label"], shuffle=False).batch(8),
    "our loader": lambda: ms.dataset.GeneratorDataset(
        torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*OURS), batch_size=8), ["data", "label"], shuffle=False),
    "rows of our tensors": lambda: ms.dataset.GeneratorDataset(list(zip(*OURS)), ["data", "label"], shuffle=False).batch(8),
}


@pytest.mark.parametrize("name", DATASETS)
def test_the_unmodified_loop_over_mindspores_datasets(name):
    net, criterion = build(), torch.nn.CrossEntropyLoss()
    optimizer, losses = sgd(net), []
    for _ in range(4):
        for data, label in DATASETS[name]().create_tuple_iterator():
            assert type(data) is ms.Tensor
            optimizer.zero_grad()
            loss = criterion(net(data), label)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses == pytest.approx(LOSSES, abs=1e-5)


# ------------------------------------------------------------------------------------------------ jit
class Involved(torch.nn.Module):
    """Views written to, random numbers, statistics, and a branch on a value."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(4, 16), torch.nn.Linear(16, 3)
        self.drop, self.norm = torch.nn.Dropout(0.3), torch.nn.BatchNorm1d(16)
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        h = self.norm(self.first(x))
        h[:, 0] = 0
        h.relu_()
        h = self.drop(h)
        self.count += 1
        if self.count.item() % 2 == 0:
            h = h * 1.5
        return self.second(h)


WAYS = {
    "ast": lambda step: ms.jit(step),
    "trace": lambda step: ms.jit(step, capture_mode="trace"),
    "options": lambda step: ms.jit(capture_mode="ast", jit_level="O0")(step),
    "plain": lambda step: step,
}


@pytest.mark.parametrize("way", WAYS)
def test_an_involved_step(way, mode):
    net, criterion = Involved(), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    grad_fn = ms.value_and_grad(lambda x, y: criterion(net(x), y), None, optimizer.parameters)
    torch.manual_seed(5)

    def train_step(x, y):
        loss, grads = grad_fn(x, y)
        optimizer(grads)
        return loss

    step = WAYS[way](train_step)
    assert [step(*OURS).item() for _ in range(6)] == pytest.approx(INVOLVED, abs=1e-4)


def test_jit_of_the_unmodified_step(mode):
    @ms.jit
    def step(net, optimizer, x, y):
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    net = build()
    optimizer = sgd(net)
    assert [step(net, optimizer, *OURS).item() for _ in range(4)] == pytest.approx(LOSSES, abs=1e-5)


def test_jit_inside_of_classes(mode):
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = build()

        @ms.jit
        def forward(self, x):
            return self.net(x) * 2

    class Cell(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net = build()

        @ms.jit
        def construct(self, x):
            return self.net(x) * 2

    class Plain(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net = build()

        def construct(self, x):
            return self.net(x) * 2

    want = (build()(OURS[0]) * 2).detach()
    for make in (Module, Cell, ms.jit(Plain)):
        assert torch.equal(make()(OURS[0]).detach(), want)
    for make in (Cell, ms.jit(Plain)):
        made = make()(NATIVE[0])
        assert type(made) is ms.Tensor
        np.testing.assert_allclose(made.asnumpy(), want.numpy(), rtol=1e-6)
