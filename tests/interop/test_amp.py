"""Mixed precision the functional way: auto_mixed_precision on served modules, the scaler with gradients."""

import mindspore as ms
import pytest
import torch
from mindspore.amp import auto_mixed_precision


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


@pytest.mark.parametrize("level", ["O1", "O2", "O3", "auto"])
def test_levels_learn_as_full_precision(level):
    model, losses = train(level)
    _, full = train("O0")
    assert losses == pytest.approx(full, abs=2e-3) and losses != full
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


def test_wrong_levels():
    with pytest.raises(ValueError):
        auto_mixed_precision(torch.nn.Linear(2, 2), "O9")
    with pytest.raises(ValueError):
        auto_mixed_precision(torch.nn.Linear(2, 2), "O2", ms.float32)
    native = auto_mixed_precision(ms.nn.Dense(2, 2), "O2")
    result = native(ms.Tensor([[1.0, 2.0]], ms.float32))  # MindSpore's own: half inside, single outside, as ours
    assert type(result) is ms.Tensor and result.dtype == ms.float32
