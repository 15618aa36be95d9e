# The fused updates take many small parameters at a time: the numbers are those of each parameter by itself.
import pytest
import torch

from msadapter_hook.backend import threads
from msadapter_hook.prims.kernels import update

SHAPES = [(3,), (5, 7), (), (200, 200), (40, 300), (1,), (150, 150), (64, 8, 3), (33000,), (2, 2)]
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1),
    "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
    "nesterov": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
    "maximize": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, dampening=0.5, maximize=True),
    "adam": lambda p: torch.optim.Adam(p, 0.01),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01),
    "amsgrad": lambda p: torch.optim.Adam(p, 0.01, amsgrad=True, weight_decay=0.1, maximize=True),
}


def parameters():
    torch.manual_seed(0)
    made = [torch.randn(s) for s in SHAPES]
    made[3] = made[3].double()
    return [m.requires_grad_() for m in made]


def train(params, optimizers, steps=4):
    torch.manual_seed(1)
    for step in range(steps):
        grads = [torch.randn(p.shape, dtype=p.dtype) for p in params]
        for i, (p, g) in enumerate(zip(params, grads)):
            p.grad = None if step == 1 and i % 3 == 0 else g  # some miss a step: counts and buffers differ
        for optimizer in optimizers:
            optimizer.step()
    return params


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_many_small_parameters_are_updated_as_each_by_itself(name):
    make = OPTIMIZERS[name]
    together, alone = parameters(), parameters()
    joint = make(together)
    train(together, [joint])
    separate = [make([p]) for p in alone]
    train(alone, separate)
    for p, q, optimizer in zip(together, alone, separate):
        assert torch.equal(p, q)
        for key, value in joint.state[p].items():
            other = optimizer.state[q][key]
            assert value is None and other is None or torch.equal(value, other)


@pytest.mark.parametrize("name", ["momentum", "adam"])
@pytest.mark.parametrize("size", [7, 2048, 70_001, (1 << 18) + 5, (1 << 19) + 3 * 1024 + 77])
def test_a_number_does_not_depend_on_where_it_stands(name, size, monkeypatch):
    monkeypatch.setitem(threads._threads, "number", 2)
    torch.manual_seed(0)
    few = torch.randn(128)
    many = few.repeat(size // 128 + 1)[:size].clone()
    found = []
    for start in few, many:
        p = start.requires_grad_()
        optimizer = OPTIMIZERS[name]([p])
        for grad in torch.randn(3, 128, generator=torch.Generator().manual_seed(1)):
            p.grad = grad.repeat(p.numel() // 128 + 1)[:p.numel()].clone()
            optimizer.step()
        found.append(p.detach())
    assert torch.equal(found[1], found[0].repeat(size // 128 + 1)[:size])


def test_what_others_hold_is_not_overwritten():
    params = parameters()
    optimizer = torch.optim.Adam(params, 0.01)
    train(params, [optimizer], 1)
    old = [p.detach() for p in params]
    before = [o.clone() for o in old]
    product = (params[0] * 2).sum() + (params[8] * params[8]).sum()
    train(params, [optimizer], 1)
    assert all(torch.equal(o, p) for o, p in zip(old, params))  # detach shares memory with its source
    assert not torch.equal(before[0], params[0])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_a_value_kept_for_a_gradient_is_that_of_its_time():
    params = parameters()
    optimizer = torch.optim.SGD(params, 0.1)
    x = torch.ones(3, requires_grad=True)
    expected = params[0].detach().clone()
    with torch.no_grad():
        snapshot = params[0] + 0
    y = (x * snapshot).sum()
    train(params, [optimizer], 2)
    y.backward()
    assert torch.equal(x.grad, expected)


@pytest.mark.parametrize("name", ["momentum of 0.9", "adam", "adamw"])
def test_the_library_and_numpy_update_alike(name, monkeypatch):
    make = {**OPTIMIZERS, "momentum of 0.9": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)}[name]
    library, plain = parameters(), parameters()
    train(library, [make(library)])
    monkeypatch.setattr(update._family, "_trusted", False)
    train(plain, [make(plain)])
    assert not torch.equal(library[-2], parameters()[-2])
    for a, b in zip(library, plain):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-7)
