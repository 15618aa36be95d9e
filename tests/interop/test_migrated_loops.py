"""Loops migrated to MindSpore's style: their losses equal those of PyTorch's own unmodified loop."""

import mindspore as ms
import numpy as np
import pytest
import torch
from functional_loops import batches, lenet, unmodified
from mindspore import nn

# of functional_loops.py under PyTorch 2.13
LOSSES = [2.296316146850586, 2.3145532608032227, 2.3332104682922363, 2.2725658416748047, 2.311220645904541]
WEIGHTS = 1822.8776558339596
# of the same loop under torch.autocast(dtype=torch.float16), with the scaler and clipping
AUTOCAST_LOSSES = [2.2963082790374756, 2.3145592212677, 2.333240032196045, 2.2725322246551514, 2.3111655712127686]


def close(losses, net=None):
    assert losses == pytest.approx(LOSSES[:len(losses)], abs=1e-4)
    if net is not None:
        assert sum(p.detach().abs().sum().item() for p in net.parameters()) == pytest.approx(WEIGHTS, rel=1e-4)


def optimizer_of(net):
    return torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=0.0005)


def test_unmodified():
    losses, weights = unmodified(torch)
    close(losses)
    assert weights == pytest.approx(WEIGHTS, rel=1e-4)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["dynamic", "graph"])
def test_functional(mode):
    net, criterion = lenet(torch), torch.nn.CrossEntropyLoss()
    optimizer = optimizer_of(net)

    def forward_fn(data, label):
        logits = net(data)
        return criterion(logits, label), logits

    grad_fn = ms.ops.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)
    ms.set_context(mode=mode)
    try:
        losses = []
        for data, label in batches(torch):
            (loss, _), grads = grad_fn(data, label)
            optimizer(grads)
            losses.append(float(loss.asnumpy()))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    close(losses, net)


@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3", "auto"])
def test_functional_mixed_precision(level):
    net, criterion = lenet(torch), torch.nn.CrossEntropyLoss()
    net.train()
    net = ms.amp.auto_mixed_precision(net, level)
    optimizer, scaler = optimizer_of(net), torch.amp.GradScaler("cpu", init_scale=256.0)

    def forward_fn(data, label):
        logits = torch.cast_to_adapter_tensor(net(data))
        return scaler.scale(criterion(logits, label))

    grad_fn = ms.ops.value_and_grad(forward_fn, None, optimizer.parameters)
    losses = []
    for data, label in batches(torch):
        loss, grads = grad_fn(data, label)
        losses.append(loss.item() / scaler.get_scale())
        scaler.unscale_(optimizer, grads)
        grads = ms.ops.clip_by_global_norm(grads, 100.0)
        scaler.step(optimizer, grads)
        scaler.update()
    close(losses)
    assert losses == pytest.approx(AUTOCAST_LOSSES, abs=1e-4)


def test_mixed_precision_as_written_for_pytorch():
    net, criterion = lenet(torch), torch.nn.CrossEntropyLoss()
    optimizer, scaler = optimizer_of(net), torch.amp.GradScaler("cpu", init_scale=256.0)
    losses = []
    for data, label in batches(torch):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = criterion(net(data), label)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 100.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses == pytest.approx(AUTOCAST_LOSSES, abs=1e-4)


def native_optimizer(net):
    return nn.SGD(net.trainable_params(), 0.01, momentum=0.9, weight_decay=0.0005)


def test_train_one_step_cell():
    net = lenet(torch)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), native_optimizer(net))
    step.set_train()
    close([float(step(ms.Tensor(d.numpy()), ms.Tensor(t.numpy().astype(np.int32)))) for d, t in batches(torch)], net)


def test_model_train():
    net, losses = lenet(torch), []
    rows = [(d.numpy(), t.numpy().astype(np.int32)) for d, t in batches(torch)]

    class Keep(ms.train.Callback):
        def step_end(self, run_context):
            losses.append(float(run_context.original_args().net_outputs))

    model = ms.train.Model(net, nn.CrossEntropyLoss(), native_optimizer(net))
    model.train(1, ms.dataset.GeneratorDataset(rows, ["data", "label"], shuffle=False), callbacks=[Keep()], dataset_sink_mode=False)
    close(losses, net)


def test_the_native_tutorials_mlp_and_the_same_network_for_pytorch():
    rng = np.random.default_rng(0)
    torch.manual_seed(2)
    ours = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512),
                               torch.nn.ReLU(), torch.nn.Linear(512, 10))
    dense = [nn.Dense(m.in_features, m.out_features, ms.Tensor(m.weight.detach().numpy().copy()),
                      ms.Tensor(m.bias.detach().numpy().copy())) for m in ours if isinstance(m, torch.nn.Linear)]
    native = nn.SequentialCell(nn.Flatten(), dense[0], nn.ReLU(), dense[1], nn.ReLU(), dense[2])
    native_loss, criterion = nn.CrossEntropyLoss(), torch.nn.CrossEntropyLoss()
    optimizers = nn.SGD(native.trainable_params(), 1e-2), torch.optim.SGD(ours.parameters(), 1e-2)

    def native_forward(data, label):
        logits = native(data)
        return native_loss(logits, label), logits

    def our_forward(data, label):
        logits = ours(data)
        return criterion(logits, label), logits

    native_grad = ms.value_and_grad(native_forward, None, optimizers[0].parameters, has_aux=True)
    our_grad = ms.value_and_grad(our_forward, None, optimizers[1].parameters, has_aux=True)
    for _ in range(5):
        data, label = rng.standard_normal((64, 1, 28, 28)).astype(np.float32), rng.integers(0, 10, 64)
        (a, _), grads = native_grad(ms.Tensor(data), ms.Tensor(label.astype(np.int32)))
        optimizers[0](grads)
        (b, _), grads = our_grad(torch.from_numpy(data), torch.from_numpy(label))
        optimizers[1](grads)
        assert type(a) is ms.Tensor and isinstance(b, torch.Tensor)
        assert float(a) == pytest.approx(b.item(), abs=1e-4)
