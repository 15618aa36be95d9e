"""Programs under MSADAPTER_KERNELS=host, each in a process of its own: losses and gradients are those of MindSpore's kernels,
nothing is replayed, and gradients of gradients go by the primitives' own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

STEPS = """
import json, sys
import torch
import torch.nn.functional as F
sys.path.insert(0, "benchmarks")
import workloads
from msadapter_hook import report
found = {}
for name in ("mlp", "lenet", "resnet", "gpt", "lstm"):
    torch.manual_seed(0)
    model, x, y, _ = workloads.MODELS[name]()
    report.clear()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    sums = [float((p.grad.double() * torch.linspace(-1, 1, p.numel(), dtype=torch.float64).reshape(p.shape)).sum() / p.grad.abs().max())
            for p in model.parameters()]
    found[name] = {"loss": loss.item(), "gradients": sums, "backward": report.backward_passes()}
print(json.dumps(found))
"""

SECOND = """
import torch
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(2, 3, 8, 8, requires_grad=True)
conv, norm, linear = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(36, 5)
inputs = [x, *conv.parameters(), *norm.parameters(), *linear.parameters()]

def run():
    h = F.gelu(F.max_pool2d(F.relu(norm(conv(x))), 2))
    q = linear(F.layer_norm(h.flatten(1), (36,)))
    heads = q[:, None, None]
    return F.cross_entropy(F.scaled_dot_product_attention(heads, heads, heads)[:, 0, 0], torch.tensor([1, 2]))

plain = torch.autograd.grad(run(), inputs)
graph = torch.autograd.grad(run(), inputs, create_graph=True)
for a, b in zip(plain, graph):
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
second = torch.autograd.grad(sum((g * g).sum() for g in graph), inputs)
print(all(bool(torch.isfinite(s).all()) for s in second), len(second))
"""

PACKED = """
import torch
x = torch.randn(3, 4, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 2):
    y = torch.nn.functional.linear(x, torch.eye(4)).tanh()
y.sum().backward()
print(torch.allclose(x.grad, 2 * (1 - 4 * y.detach() ** 2)))  # the weight and the result of tanh are doubled
"""


INFINITIES = """
import torch
x = torch.full((1, 1, 4, 4), -torch.inf)
x[0, 0, 0, 0], x[0, 0, 2, 2] = torch.inf, torch.nan
w = torch.ones((), requires_grad=True)
for _ in range(3):
    print(torch.nn.functional.max_pool2d(x * w, 2).flatten().tolist())
"""


def run(code, kernels, *options):
    variables = {**os.environ, "MSADAPTER_KERNELS": kernels, "PYTHONPATH": str(ROOT), "MSADAPTER_HOOK": "1"}
    done = subprocess.run([sys.executable, "-m", "msadapter_hook", *options, "-c", code], cwd=ROOT, env=variables, text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout + done.stderr if "--report" in options else done.stdout


def test_workloads_have_the_gradients_of_mindspores_kernels_without_a_replay():
    host, native = (json.loads(run(STEPS, kernels, "--report").splitlines()[0]) for kernels in ("host", "mindspore"))
    for name, one in host.items():
        assert one["loss"] == pytest.approx(native[name]["loss"], rel=1e-5)
        assert one["gradients"] == pytest.approx(native[name]["gradients"], rel=1e-4, abs=1e-3)  # sums of up to 400 that cancel
        assert one["backward"] == [1, 0, 0]
        assert native[name]["backward"][1] >= 1


def test_gradients_of_gradients():
    assert run(SECOND, "host").split() == ["True", "7"]


def test_hooks_on_saved_tensors_have_their_say():
    assert run(PACKED, "host").strip() == "True"


def test_max_pooling_keeps_infinities_and_nan():
    assert run(INFINITIES, "host").splitlines() == ["[inf, -inf, -inf, nan]"] * 3


def test_report_counts_backward_passes_and_segments():
    text = run("import torch; x = torch.ones(3, requires_grad=True); (x * 2).sum().backward()", "host", "--report")
    assert "backward passes: 1, with 0 segments replayed through mindspore.grad (at most 0 in one)" in text


def test_info_tells_whether_onednn_is_used():
    text = run("pass", "host", "--info")
    assert "onednn" in text and "kernels of MindSpore's libdnnl" in text
    assert "onednn" not in run("pass", "mindspore", "--info").replace("ONEDNN", "").replace("oneDNN", "")


PUT_OFF = """
import torch
torch.manual_seed(0)
first, second = torch.nn.Linear(300, 400), torch.nn.Linear(400, 300)
x = torch.randn(60, 300)

def gradients(watch):
    for p in (*first.parameters(), *second.parameters()):
        p.grad = None
    seen, handles = [], []
    if watch:
        handles = [second.weight.register_hook(lambda g: seen.append(g.clone())),
                   first.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))]
    h = first(second(first(x).tanh()))  # the weights of the first layer are used twice
    (h * h).mean().backward()
    for handle in handles:
        handle.remove()
    return [p.grad for p in (*first.parameters(), *second.parameters())], seen

plain, _ = gradients(False)
watched, seen = gradients(True)
print(all(torch.equal(a, b) for a, b in zip(plain, watched)), torch.equal(seen[0], plain[2]), torch.equal(seen[1], plain[0]))
h = first(second(first(x).tanh()))
asked = torch.autograd.grad((h * h).mean(), [second.weight, first.bias])
print(torch.equal(asked[0], plain[2]), torch.equal(asked[1], plain[1]))
w = first.weight.detach().double().requires_grad_()
b = first.bias.detach().double()
h = torch.nn.functional.linear(torch.nn.functional.linear(
    torch.nn.functional.linear(x.double(), w, b).tanh(), second.weight.detach().double(), second.bias.detach().double()), w, b)
(h * h).mean().backward()
print(torch.allclose(w.grad, plain[0].double(), rtol=1e-4, atol=1e-6))
first.weight.grad = None
x.requires_grad_()
first(x).sum().backward(retain_graph=True)
once = first.weight.grad.clone()
first(x).sum().backward()
print(torch.equal(first.weight.grad, once * 2))  # what is there already is added to
"""


def test_gradients_that_are_put_off_are_there_for_whoever_reads_them():
    assert run(PUT_OFF, "host").split() == ["True"] * 7
