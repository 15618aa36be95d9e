"""Mixed precision the functional way: auto_mixed_precision on served modules, the scaler with gradients."""

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn
from mindspore.amp import auto_mixed_precision

from msadapter_hook.interop import as_cell


def train(level, init_scale=1024.0, steps=4):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(),
                                torch.nn.Linear(400, 4))
    x, y = torch.randn(16, 1, 12, 12), torch.randint(0, 4, (16,))
    model.train()
    model = auto_mixed_precision(model, level)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=init_scale)
    criterion = torch.nn.CrossEntropyLoss()
    seen = []

    def forward_fn(data, label):
        logits = torch.cast_to_adapter_tensor(model(data))
        seen.append(logits.dtype)
        return scaler.scale(criterion(logits, label))

    grad_fn = ms.ops.value_and_grad(forward_fn, None, optimizer.parameters)
    losses = []
    for _ in range(steps):
        loss, grads = grad_fn(x, y)
        losses.append(loss.item() / scaler.get_scale())
        scaler.unscale_(optimizer, grads)
        grads = ms.ops.clip_by_global_norm(grads, 1.0)
        scaler.step(optimizer, grads)
        scaler.update()
    return model, losses


# of the same model, data and steps under torch.autocast(dtype=torch.float16), and without
AUTOCAST_LOSSES = [1.4582359790802002, 1.4255510568618774, 1.3658976554870605, 1.286131739616394]
LOSSES = [1.4581620693206787, 1.425557255744934, 1.3659520149230957, 1.286122441291809]


@pytest.mark.parametrize("level", ["O1", "O2", "O3", "auto"])
def test_levels_learn_as_autocast(level):
    model, losses = train(level)
    _, full = train("O0")
    assert full == pytest.approx(LOSSES, abs=1e-5)
    assert losses == pytest.approx(AUTOCAST_LOSSES, abs=1e-4) and losses != full
    assert losses[-1] < losses[0]
    assert all(p.dtype is torch.float32 for p in model.parameters())


def test_the_modules_own_methods_still_work():
    model, _ = train("O2", steps=1)
    assert isinstance(model, torch.nn.Sequential) and len(list(model.parameters())) == 6
    assert model.eval().training is False and set(model.state_dict()) >= {"0.weight", "1.running_mean"}
    assert model(torch.zeros(1, 1, 12, 12)).dtype is torch.float32


def test_precision_inside():
    class Probe(torch.nn.Module):
        def forward(self, x):
            self.seen = torch.matmul(x, x)
            return self.seen

    for level, dtype, other in (("O2", ms.float16, torch.float16), ("O3", ms.bfloat16, torch.bfloat16)):
        probe = auto_mixed_precision(Probe(), level, dtype)
        assert probe(torch.eye(2)).dtype is torch.float32 and probe.seen.dtype is other
    assert torch.matmul(torch.eye(2), torch.eye(2)).dtype is torch.float32


def test_normalization_at_each_level():
    class Norms(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = torch.nn.ModuleList([torch.nn.BatchNorm1d(4), torch.nn.LayerNorm(4), torch.nn.GroupNorm(2, 4)])

        def forward(self, x):
            self.seen = [norm(x) for norm in self.norms]
            return sum(self.seen)

    for level, dtype in (("O2", torch.float32), ("O3", torch.float16)):
        for training in (True, False):
            model = auto_mixed_precision(Norms().train(training), level)
            model(torch.arange(8.0).view(2, 4)).sum().backward()
            assert [y.dtype for y in model.seen] == [dtype] * 3
            assert model.norms[0].running_mean.dtype is torch.float32
            assert model.norms[0].running_mean.tolist() == pytest.approx([0.2, 0.3, 0.4, 0.5] if training else [0] * 4)


def test_writes_reach_the_module_at_each_level():
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x):
            self.seen += 1
            self.seen.mul_(2).add_(x.detach().mean())
            h = x * 2
            h[:1] *= 3
            return h.relu_()

    for level in ("O1", "O2", "O3"):
        model = auto_mixed_precision(Counting(), level)
        assert model(torch.ones(2)).tolist() == [6, 2] and model.seen.tolist() == [3] and model.seen.dtype is torch.float32


@pytest.mark.parametrize("scaler", [ms.amp.DynamicLossScaler(1024, 2, 2), ms.amp.StaticLossScaler(1024)], ids=["dynamic", "static"])
def test_scalers_of_mindspore(scaler):
    w = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([w], lr=0.1)
    grad_fn = ms.value_and_grad(lambda x: scaler.scale((w * w * x).sum()), None, optimizer.parameters)
    for step in range(4):
        x = torch.full((3,), float("inf") if step == 1 else 1.0)
        loss, grads = grad_fn(x)
        loss, grads = scaler.unscale((loss, grads))
        assert isinstance(loss, torch.Tensor) and isinstance(grads, tuple)
        finite = ms.amp.all_finite(grads)
        assert isinstance(finite, torch.Tensor) and bool(finite) == (step != 1)
        if finite:
            optimizer(grads)
        scaler.adjust(finite)
    assert w.tolist() == pytest.approx([0.8**3] * 3) and loss.item() == pytest.approx(3 * 0.8**4)
    assert float(scaler.scale_value) == 1024


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


@pytest.mark.parametrize("level", ["O0", "O2", "O3"])
def test_mindspores_training_networks_under_a_level(level):
    """build_train_network and Model train as the functional loop at the same level."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((6, 3)).astype(np.float32), rng.standard_normal((6, 2)).astype(np.float32)
    net = auto_mixed_precision(network(), level)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    grad_fn = ms.value_and_grad(lambda a, b: torch.nn.functional.mse_loss(net(a), b), None, optimizer.parameters)
    want = []
    for _ in range(3):
        loss, grads = grad_fn(torch.from_numpy(x), torch.from_numpy(y))
        optimizer(grads)
        want.append(loss.item())
    other = network()
    step = ms.amp.build_train_network(other, nn.SGD(other.trainable_params(), 0.1), nn.MSELoss(), level=level, loss_scale_manager=None)
    assert [float(step(ms.Tensor(x), ms.Tensor(y))) for _ in range(3)] == pytest.approx(want, abs=1e-6)
    third, losses = network(), []

    class Keep(ms.train.Callback):
        def step_end(self, run_context):
            losses.append(float(run_context.original_args().net_outputs))

    model = ms.train.Model(third, nn.MSELoss(), nn.SGD(third.trainable_params(), 0.1), amp_level=level, loss_scale_manager=None)
    model.train(3, ms.dataset.GeneratorDataset([(x, y)], ["x", "y"], shuffle=False), callbacks=[Keep()], dataset_sink_mode=False)
    assert losses == pytest.approx(want, abs=1e-6)


def test_a_cell_that_holds_served_modules():
    class Mixed(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(2, 2)
            self.head = nn.Dense(2, 2)

        def construct(self, x):
            return self.head(self.net(x))

    for lower in (lambda c: auto_mixed_precision(c, "O2"), lambda c: c.to_float(ms.float16)):
        cell = Mixed()
        x = np.array([[0.1, 0.2]], np.float32)
        exact = cell(ms.Tensor(x)).asnumpy()
        lower(cell)
        inner = cell.net.module
        assert inner(torch.tensor(x)).tolist() == torch.nn.functional.linear(
            torch.tensor(x).half(), inner.weight.half(), inner.bias.half()).tolist()
        rounded = cell(ms.Tensor(x)).asnumpy()
        assert rounded == pytest.approx(exact, abs=2e-3) and (rounded != exact).any()


def test_an_infinite_gradient_skips_the_step():
    w = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([w], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(torch.ones(1))
    grads = (torch.tensor([float("inf")]),)
    scaler.unscale_(optimizer, grads)
    scaler.step(optimizer, grads)
    scaler.update()
    assert w.item() == 1 and scaler.get_scale() == 2
    scaler.step(optimizer, (torch.tensor([2.0]),))  # not unscaled yet: divided by the scale now
    assert w.item() == 0


def test_custom_mixed_precision_is_refused_by_name():
    for network in (torch.nn.Linear(2, 2), as_cell(torch.nn.Linear(2, 2))):
        with pytest.raises(NotImplementedError, match="custom_mixed_precision.*auto_mixed_precision"):
            ms.amp.custom_mixed_precision(network, white_list=[nn.Dense])
    assert ms.amp.custom_mixed_precision(nn.Dense(2, 2), white_list=[nn.Dense]) is not None


def test_wrong_levels():
    with pytest.raises(ValueError):
        auto_mixed_precision(torch.nn.Linear(2, 2), "O9")
    with pytest.raises(ValueError):
        auto_mixed_precision(torch.nn.Linear(2, 2), "O2", ms.float32)
    native = auto_mixed_precision(ms.nn.Dense(2, 2), "O2")
    result = native(ms.Tensor([[1.0, 2.0]], ms.float32))  # MindSpore's own: half inside, single outside, as ours
    assert type(result) is ms.Tensor and result.dtype == ms.float32
