"""Compiled replay computes what plain replay does, of new data in every step."""

import faulthandler

import mindspore
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from msadapter_hook.backend.compiled import Listing, NotListed, list_program
from msadapter_hook.backend.primitives import primitive
from msadapter_hook.tape import late, replay

STEPS = {
    "linear": lambda w, x, t: F.linear(x, w).relu().sum(),
    "gelu": lambda w, x, t: F.gelu(x * w).sum(),
    "gelu tanh": lambda w, x, t: F.gelu(x * w, approximate="tanh").sum(),
    "tanh": lambda w, x, t: torch.tanh(x * w).mean(),
    "sigmoid": lambda w, x, t: torch.sigmoid(x * w).mean(),
    "silu": lambda w, x, t: F.silu(x * w).mean(),
    "mish": lambda w, x, t: F.mish(x * w).mean(),
    "elu": lambda w, x, t: F.elu(x * w).mean(),
    "leaky_relu": lambda w, x, t: F.leaky_relu(x * w, 0.1).mean(),
    "hardswish": lambda w, x, t: F.hardswish(x * w).mean(),
    "hardtanh": lambda w, x, t: F.hardtanh(x * w).mean(),
    "softshrink": lambda w, x, t: F.softshrink(x * w).mean(),
    "clamp": lambda w, x, t: (x * w).clamp(-0.5, 0.7).mean(),
    "softmax": lambda w, x, t: (F.softmax(x * w, 1) * t).sum(),
    "log_softmax": lambda w, x, t: (F.log_softmax(x * w, 1) * t).sum(),
    "logsumexp": lambda w, x, t: torch.logsumexp(x * w, 1).sum(),
    "cross_entropy": lambda w, x, t: F.cross_entropy(x * w, t.argmax(1)),
    "binary_cross_entropy": lambda w, x, t: F.binary_cross_entropy(torch.sigmoid(x * w), t),
    "with_logits": lambda w, x, t: F.binary_cross_entropy_with_logits(x * w, t),
    "mse": lambda w, x, t: F.mse_loss(x * w, t),
    "smooth_l1": lambda w, x, t: F.smooth_l1_loss(x * w, t),
    "kl_div": lambda w, x, t: F.kl_div(F.log_softmax(x * w, 1), F.softmax(t, 1), reduction="batchmean"),
    "layer_norm": lambda w, x, t: (F.layer_norm(x * w, (6,), w[0], w[1]) * t).sum(),
    "batch_norm": lambda w, x, t: (F.batch_norm(x * w, None, None, w[0], w[1], True) * t).sum(),
    "var": lambda w, x, t: (x * w).var(1).sum() + (x * w).std(0).sum(),
    "norm": lambda w, x, t: (x * w).norm(dim=1).sum(),
    "max": lambda w, x, t: (x * w).amax(1).sum(),
    "cumsum": lambda w, x, t: ((x * w).cumsum(1) * t).sum(),
    "power": lambda w, x, t: ((x * w) ** 2 + (x * w).abs() ** 1.5).sum(),
    "where": lambda w, x, t: torch.where(x > 0, x * w, t * w).sum(),
    "where number": lambda w, x, t: (torch.where(x > 0, x * w, 2.0) + torch.where(t > 0.5, 3.0, x * w)).sum(),
    "masked_fill": lambda w, x, t: (x * w).masked_fill(t > 0.5, 2.0).sum(),
    "infinite mask": lambda w, x, t: F.softmax((x * w).masked_fill(t > 0.9, -float("inf")), 1).square().sum(),
    "split": lambda w, x, t: (torch.cat([p * (i + 1) for i, p in enumerate((x * w).split(2, 1))], 1) * t).sum(),
    "stack": lambda w, x, t: (torch.stack([x * w, w.t()], 0) ** 2).sum(),
    "embedding": lambda w, x, t: (F.embedding(t.argmax(1), w) ** 2).sum(),
    "gather": lambda w, x, t: (torch.gather(x * w, 1, t.argsort(1)) * t).sum(),
    "repeat": lambda w, x, t: ((x * w).repeat_interleave(2, 0) ** 2).sum(),
    "conv": lambda w, x, t: F.conv2d(x.view(1, 1, 6, 6), w[:3, :3].reshape(1, 1, 3, 3), padding=1).relu().sum(),
    "conv_transpose": lambda w, x, t: (F.conv_transpose2d(x.view(1, 1, 6, 6), w[:3, :3].reshape(1, 1, 3, 3)) ** 2).sum(),
    "max_pool": lambda w, x, t: (F.max_pool2d((x * w).view(1, 1, 6, 6), 2) ** 2).sum(),
    "max_pool padded": lambda w, x, t: (F.max_pool2d((x * w).view(1, 1, 6, 6), 3, 2, 1) ** 2).sum(),
    "avg_pool": lambda w, x, t: (F.avg_pool2d((x * w).view(1, 1, 6, 6), 2) ** 2).sum(),
    "attention": lambda w, x, t: (F.scaled_dot_product_attention(x[None] @ w, x[None], t[None], is_causal=True) ** 2).sum(),
    "sines": lambda w, x, t: (torch.sin(x * w) + torch.cos(x * w) + torch.atan(x * w)).sum(),
    "exponentials": lambda w, x, t: (torch.exp(w * t) + torch.expm1(w * t) + torch.log1p(w.abs() + t) + torch.log(w.abs() + t)).sum(),
    "roots": lambda w, x, t: (torch.sqrt(w.abs() + t) + torch.rsqrt(w.abs() + t) + 1 / (w.abs() + t + 1)).sum(),
    "extremes": lambda w, x, t: (torch.maximum(x * w, t) + torch.minimum(x * w, t * w)).sum() + (x * w).amin(0).sum(),
    "shrink": lambda w, x, t: (F.hardshrink(x * w) + F.hardsigmoid(x * w) + F.threshold(x * w, 0.1, 0.2)).sum(),
    "soft": lambda w, x, t: (F.softplus(x * w) + F.logsigmoid(x * w) + F.celu(x * w)).sum(),
    "prelu": lambda w, x, t: (F.prelu(x * w, w[0]) ** 2).sum(),
    "expand": lambda w, x, t: (w[:, None, :].expand(6, 6, 6) * x).flip(0).transpose(0, 2).sum(),
    "slices": lambda w, x, t: (w[1:4, ::2] ** 2).sum() + (w[2] * x[0]).sum(),
    "dropout": lambda w, x, t: (F.dropout(x * w, 0.5) ** 2).sum(),
    "lstm": lambda w, x, t: torch.lstm(x[None], (t[None, :, :6], t[None, :, :6]),
                                           [w.repeat(4, 1), w.repeat(4, 1) * 0.5, w.repeat(4, 1)[:, 0], w.repeat(4, 1)[:, 1]],
                                           True, 1, 0.0, True, False, False)[0].sum(),
    "wide": lambda w, x, t: ((torch.ones(1024, 6, 6) * w + x[0]) * t[1] + w).mean((1, 2)).square().sum(),
    "whole": lambda w, x, t: (torch.ones(1024, 1, 6) * w + torch.ones(6, 1) * x[0]).square().mean(),
    "linear bias": lambda w, x, t: F.linear(x, w, w[0]).square().sum() + F.linear(x.repeat(64, 1), w, t[0] * w[1]).sum(),
    "matmul chain": lambda w, x, t: (x @ w @ t.t() @ w.t()).tanh().sum(),
}


#: computed on the host, so there is no program
HOST = ()


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """Programs are compiled at their third run, in a folder of this test."""
    monkeypatch.setattr(replay.policy, "compiled", 0)
    monkeypatch.setenv("MSADAPTER_CACHE", str(tmp_path))

    def ask(wanted):
        monkeypatch.setattr(replay.policy, "wanted", wanted)

    return ask


def train(step, steps=16):  # a compiled gradient may work five times and then hang
    torch.manual_seed(0)
    w = torch.randn(6, 6, requires_grad=True)
    seen = []
    for _ in range(steps):
        x, t = torch.randn(6, 6), torch.rand(6, 6)
        loss = step(w, x, t)
        loss.backward()
        seen.append(np.concatenate([[loss.item()], w.grad.numpy().ravel()]))
        w.grad = None
    return np.stack(seen)


@pytest.mark.skipif(not late.state.enabled, reason="MSADAPTER_EAGER=1 computes before the replay")
@pytest.mark.parametrize("name", STEPS)
def test_compiled_steps_are_the_plain_ones(name, asked):
    asked(0)
    plain = train(STEPS[name])
    asked(1)
    faulthandler.dump_traceback_later(120, exit=True)  # a kernel that hangs cannot be interrupted
    compiled = train(STEPS[name])
    faulthandler.cancel_dump_traceback_later()
    assert replay.policy.compiled or name in HOST
    assert not np.array_equal(plain[-1], plain[-2])
    np.testing.assert_allclose(compiled, plain, rtol=2e-5, atol=2e-6)


@pytest.mark.skipif(not late.state.enabled, reason="MSADAPTER_EAGER=1 computes before the replay")
def test_what_mindspore_cannot_compile_is_replayed_as_before(asked, monkeypatch, tmp_path):
    asked(0)
    plain = train(STEPS["tanh"])
    asked(1)
    monkeypatch.setattr(Listing, "spell", lambda self, arg, spell=Listing.spell: spell(self, arg) + (" + nothing" if self.lines else ""))
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(train(STEPS["tanh"]), plain)
    assert replay.policy.compiled == 0
    assert not (tmp_path / "rank_0").exists()  # where MindSpore would leave its notes


def tensors(*shapes):
    return tuple(mindspore.Tensor(np.random.RandomState(0).rand(*s).astype(np.float32)) for s in shapes)


def test_what_is_computed_beside_the_kernels_is_not_written_out():
    mul, one = primitive("Mul"), mindspore.Tensor(1.0, mindspore.float32)
    inputs = tensors((2, 3))
    listing, outputs = list_program(lambda a: (mul(a, one),), inputs)
    assert outputs == ["v0"] and len(listing.lines) == 1
    with pytest.raises(NotListed):
        list_program(lambda a: (mul(a, one - a),), inputs)
    with pytest.raises(NotListed):
        list_program(lambda a: (mul(a, a) + 1,), inputs)


def test_running_statistics_move_on_in_compiled_steps(asked):
    """They come out of the same replay as the gradients: once they were constants of the compiled program."""
    def run():
        torch.manual_seed(0)
        norm = torch.nn.BatchNorm2d(3)
        for _ in range(8):
            norm(torch.randn(4, 3, 5, 5) * 2 + 1).square().mean().backward()
        return [b.numpy().copy() for b in (norm.running_mean, norm.running_var)]

    asked(0)
    plain = run()
    asked(1)
    for a, b in zip(plain, run()):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    assert replay.policy.compiled or not late.state.enabled


def pooled(w, x):
    y = (x * w).view(1, 1, 6, 6)
    return (F.max_pool2d(y, 2).sum() + F.max_pool2d(y, 3, 2, 1).sum() + torch.maximum(x * w, w).sum() + torch.minimum(x * w, w).sum()
            + (x * w).amax(1).sum() + (x * w).amin(0).sum() + (x * w).max())


@pytest.mark.skipif(not late.state.enabled, reason="MSADAPTER_EAGER=1 computes before the replay")
def test_a_program_compiled_for_numbers_meets_others(asked):
    def results():
        torch.manual_seed(0)
        w = torch.randn(6, 6, requires_grad=True)
        for turn in range(12):
            x = torch.randn(6, 6)
            x[:2, 2:4] = {7: float("nan"), 8: float("inf"), 10: -float("inf")}.get(turn, x[:2, 2:4])
            loss = pooled(w, x)
            loss.backward()
            yield np.concatenate([[loss.item()], w.grad.numpy().ravel()])
            w.grad = None

    asked(0)
    plain = list(results())
    assert [np.isfinite(p).all() for p in plain] == [turn not in (7, 8, 10) for turn in range(12)]
    asked(1)
    compiled = list(results())
    assert replay.policy.compiled
    np.testing.assert_allclose(compiled, plain, rtol=2e-5, atol=2e-6)


@pytest.mark.skipif(not late.state.enabled, reason="MSADAPTER_EAGER=1 computes before the replay")
@pytest.mark.parametrize("make", [lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), lambda p: torch.optim.AdamW(p, 0.01)])
def test_compiled_programs_see_parameters_that_an_optimizer_overwrites(asked, make):
    def losses():
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(6, 300), torch.nn.Tanh(), torch.nn.Linear(300, 500), torch.nn.Linear(500, 3))
        optimizer, x, y = make(model.parameters()), torch.randn(8, 6), torch.randint(0, 3, (8,))
        for _ in range(12):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            yield loss.item()

    asked(0)
    plain = list(losses())
    asked(1)
    compiled = list(losses())
    assert plain[-1] < 0.9 * plain[0]
    np.testing.assert_allclose(compiled, plain, rtol=1e-4)


@pytest.mark.skipif(not late.state.enabled, reason="MSADAPTER_EAGER=1 computes before the replay")
@pytest.mark.parametrize("rows, cotangent", [
    (6, lambda i: torch.full((6, 3), float(i))), (7, lambda i: torch.full((3, 7), float(i)).t()),
    (8, lambda i: torch.full((8, 3, 2), float(i))[:, :, 0])], ids=["new", "transposed", "a view"])
def test_a_program_is_compiled_once_for_all_cotangents(asked, rows, cotangent):
    from mindspore.graph.api import ms_compile_cache

    asked(1)
    w, seen = torch.randn(rows, 3, requires_grad=True), []
    for i in range(6):
        w.grad = None
        (w * 2).backward(cotangent(i))
        assert w.grad.tolist() == [[2.0 * i] * 3] * rows
        seen.append(len(ms_compile_cache))
    assert replay.policy.compiled and seen[2:] == seen[2:3] * 4
