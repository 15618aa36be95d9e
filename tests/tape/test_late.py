"""Late values: what is computed when, and that the numbers do not depend on it."""

import gc
import os
import subprocess
import sys
import weakref

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from msadapter_hook.tape import Primitive, late

pytestmark = pytest.mark.skipif(not late.state.enabled, reason="MSADAPTER_EAGER=1 turns lateness off")


@pytest.fixture
def computed(monkeypatch):
    """The names of the primitives that were run one by one (a replay is not among them)."""
    names = []
    run = Primitive.compute

    def counting(self, inputs, attributes, on_mindspore):
        names.append(self.name)
        return run(self, inputs, attributes, on_mindspore)

    monkeypatch.setattr(Primitive, "compute", counting)
    return names


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5))


FORWARD = {"conv", "batch_norm", "max_pool", "matmul", "bias_add", "sparse_cross_entropy"}


def step(net, optimizer, x, y, read_first=False):
    optimizer.zero_grad()
    out = net(x)
    loss = F.cross_entropy(out, y)
    value = loss.item() if read_first else None
    loss.backward()
    optimizer.step()
    return loss.item() if value is None else value


@pytest.mark.parametrize("read_first", [False, True])
def test_the_forward_runs_once_per_step(computed, read_first):
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    x, y = torch.randn(8, 1, 8, 8), torch.randint(0, 5, (8,))
    first = step(net, optimizer, x, y)
    step(net, optimizer, x, y)
    computed.clear()
    third = step(net, optimizer, x, y, read_first)
    assert not FORWARD & set(computed)  # all of it came out of the one replay, statistics included
    assert third < first


def test_the_same_numbers_late_and_eager():
    def losses():
        net = network()
        optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
        x, y = torch.randn(8, 1, 8, 8), torch.randint(0, 5, (8,))
        made = [step(net, optimizer, x, y, i % 2) for i in range(6)]
        return made, net[1].running_mean.tolist(), net[1].running_var.tolist()

    late_run = losses()
    late.state.enabled = False
    try:
        eager_run = losses()
    finally:
        late.state.enabled = True
    for a, b in zip(late_run, eager_run):
        assert a == pytest.approx(b, rel=1e-5)


def pending(x):
    return x.value.pending


def seen(function, *args):
    """The result of the second call, whose signatures are known."""
    function(*args)
    return function(*args)


def test_reading_computes_once(computed):
    w = torch.ones(3, requires_grad=True)
    y = seen(lambda: (w * 2).exp())
    assert pending(y)
    computed.clear()
    y.tolist(), y.sum().item()
    assert computed.count("exp") == 1


def test_outside_of_recording_nothing_is_late():
    x = torch.ones(3)
    assert not pending(seen(lambda: x * 2 + 1))


def test_what_depends_on_a_pending_value_waits_and_comes_with_backward():
    w = torch.ones(3, requires_grad=True)

    def run():
        y = w * 2
        metric = (y.detach() * 10).sum()
        return y, metric

    run()[0].sum().backward()
    y, metric = run()
    assert pending(metric)
    y.sum().backward()
    assert not pending(metric)
    assert metric.item() == 60


def test_a_write_to_shared_memory_cannot_change_history():
    import numpy as np

    w = torch.ones(3, requires_grad=True)
    a = np.ones(3, "f4")
    x = torch.from_numpy(a)
    (w * x).sum().backward()
    w.grad = None
    y = (w * x).sum()
    a[:] = 100
    y.backward()
    assert w.grad.tolist() == [1, 1, 1]
    assert y.item() == 3


def test_a_parameter_update_cannot_change_what_is_pending():
    w = torch.ones(3, requires_grad=True)
    seen(lambda: w * 3)
    y = w * 3
    assert pending(y)
    with torch.no_grad():
        w.add_(10)
    assert y.tolist() == [3, 3, 3]


def test_shapes_that_depend_on_values_are_never_late():
    w = torch.tensor([1.0, -1.0, 2.0], requires_grad=True)

    def run(scale):
        return (w * scale)[w > 0]

    run(1.0)
    assert run(2.0).shape == (2,)
    with torch.no_grad():
        w[1] = 5.0
    assert run(2.0).shape == (3,)


def test_an_error_of_a_late_execution_names_the_line(monkeypatch):
    w = torch.ones(3, requires_grad=True)
    seen(lambda: w * 7)
    y = w * 7  # the line that is named
    line = sys._getframe().f_lineno - 1
    run = Primitive.compute

    def failing(self, *args):
        if self.name == "mul":
            raise RuntimeError("kernel failed")
        return run(self, *args)

    monkeypatch.setattr(Primitive, "compute", failing)
    with pytest.raises(RuntimeError, match=rf"test_late\.py:{line}"):
        y.tolist()


def test_nothing_leaks():
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    x, y = torch.randn(8, 1, 8, 8), torch.randint(0, 5, (8,))
    step(net, optimizer, x, y)
    gc.disable()
    try:
        out = net(x)
        value, node = weakref.ref(out.value), weakref.ref(out.value.node)
        F.cross_entropy(out, y).backward()
        del out
        assert value() is None and node() is None
    finally:
        gc.enable()


def test_forward_without_backward_does_not_pile_up():
    net = network()
    x = torch.randn(8, 1, 8, 8)
    for _ in range(300):
        net(x)
    assert len(late.state.waiting) <= late._WAITING
    assert torch.isfinite(net[1].running_mean).all()


def test_hooks_see_late_values():
    w = torch.ones(3, requires_grad=True)
    for _ in range(3):
        w.grad = None
        got = []
        y = w * 2
        y.register_hook(lambda g, got=got: got.append(g.tolist()))
        (y * y).sum().backward()
        assert got == [[4, 4, 4]]
        assert w.grad.tolist() == [8, 8, 8]


def test_compiled_replay_gives_the_same(tmp_path):
    program = (
        "import torch, torch.nn as nn, torch.nn.functional as F\n"
        "torch.manual_seed(0)\n"
        "net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))\n"
        "opt = torch.optim.SGD(net.parameters(), 0.1)\n"
        "x, y = torch.randn(5, 6), torch.randint(0, 3, (5,))\n"
        "for i in range(8):\n"
        "    opt.zero_grad(); loss = F.cross_entropy(net(x), y); loss.backward(); opt.step()\n"
        "    print('%.6f' % loss.item())\n"
        "from msadapter_hook.tape.replay import policy\n"
        "print(policy.compiled)\n")
    runs = {}
    for jit in ("off", "on"):
        environment = {**os.environ, "ENABLE_BACKWARD": "1", "MSADAPTER_JIT": jit, "MSADAPTER_CACHE": str(tmp_path)}
        made = subprocess.run([sys.executable, "-m", "msadapter_hook", "-c", program], env=environment, capture_output=True,
                              text=True, check=True)
        runs[jit] = made.stdout.split()
    assert [float(v) for v in runs["on"][:-1]] == pytest.approx([float(v) for v in runs["off"][:-1]], rel=1e-5)
    assert (runs["off"][-1], runs["on"][-1]) == ("0", "1")
    assert list((tmp_path / "programs").glob("program_*.py"))


@pytest.mark.parametrize("window", [(2,), (3, 2, 1), (2, 2, 1), (3, 1, 1)])
def test_late_max_pooling_keeps_nan_and_infinity(window):
    torch.manual_seed(0)
    for step in range(3):
        x = torch.randn(2, 3, 8, 8)
        if step:
            x[0, 1, 3, 3] = x[1, 2, 0, 0] = float("nan")
            x[0, 0, 7, 7], x[0, 2, 4, 4] = float("inf"), -float("inf")
            x[1, 0] = -float("inf")  # whole windows
            x[0, 2, 0, 0], x[0, 2, 0, 1] = float("inf"), -float("inf")  # both in one
            x[1, 1, :4], x[1, 1, :2, :2] = torch.finfo(torch.float32).min, -float("inf")
        w = torch.ones(1, requires_grad=True)
        y = F.max_pool2d(x * w, *window)
        (y * y).sum().backward()
        expected = F.max_pool2d(x, *window)  # not recorded: NumPy's
        torch.testing.assert_close(y.detach(), expected, rtol=1e-6, atol=0, equal_nan=True)
        assert torch.isnan(w.grad).item() == (step > 0)


@pytest.mark.parametrize("name", ["maximum", "minimum", "amax", "amin", "whole"])
def test_recorded_extremes_keep_nan(name):
    """Values and gradients of PyTorch, in the first step as in later ones."""
    nan, inf = float("nan"), float("inf")
    a = torch.tensor([[1.0, nan, -0.0, inf, -inf], [nan, 2.0, -0.0, -inf, 5.0]], requires_grad=True)
    b = torch.tensor([1.0, 1.0, -0.0, nan, inf], requires_grad=True)
    steps = {
        "maximum": (lambda: torch.maximum(a, b), [[1, nan, -0.0, nan, inf], [nan, 2, -0.0, nan, inf]],
                    [[0.5, 1, 0.5, 1, 0], [1, 1, 0.5, 1, 0]]),
        "minimum": (lambda: torch.minimum(a, b), [[1, nan, -0.0, nan, -inf], [nan, 1, -0.0, nan, 5]],
                    [[0.5, 1, 0.5, 1, 1], [1, 0, 0.5, 1, 1]]),
        "amax": (lambda: a[:, 1:].amax(1), [nan, 5], [[0, nan, nan, nan, nan], [0, 0, 0, 0, 1]]),
        "amin": (lambda: a.amin(0), [nan, nan, -0.0, -inf, -inf], [[nan, nan, 0.5, 0, 1], [nan, nan, 0.5, 1, 0]]),
        "whole": (lambda: a[:, 2:].max(), inf, [[0, 0, 0, 1, 0], [0, 0, 0, 0, 0]]),
    }
    step, values, gradient = steps[name]
    for _ in range(3):
        y = step()
        y.backward(torch.ones_like(y))
        torch.testing.assert_close(y.detach(), torch.tensor(values), rtol=0, atol=0, equal_nan=True)
        torch.testing.assert_close(a.grad, torch.tensor(gradient, dtype=torch.float32), rtol=0, atol=0, equal_nan=True)
        a.grad = b.grad = None
