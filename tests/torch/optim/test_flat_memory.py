"""Updates overwrite the memory of parameters and state where nothing else refers to it; whoever holds something sees what PyTorch
shows: aliases the new numbers, copies and graphs the old ones."""

import copy

import pytest
import torch

from msadapter_hook.ops.flat_memory import Flat

LARGE = 140_000  # a parameter that is updated by itself


def parameters():
    return [torch.nn.Parameter(torch.arange(float(n)).reshape(-1, 2).clone()) for n in (LARGE, 4, 6)]


def step(optimizer, params, by=1.0):
    for p in params:
        p.grad = torch.full_like(p, by)
    optimizer.step()


def trained(steps=3, **options):
    params = parameters()
    optimizer = torch.optim.SGD(params, lr=1.0, **options)
    for _ in range(steps):
        step(optimizer, params)
    return params, optimizer


def start(p, less):
    return torch.arange(float(p.numel())).reshape(-1, 2) - less


def addresses(params):
    return [p._history.value._numpy.__array_interface__["data"][0] for p in params]


def test_memory_is_the_same_from_step_to_step():
    params, optimizer = trained()
    before = addresses(params)
    step(optimizer, params)
    assert addresses(params) == before
    assert all(torch.equal(p, start(p, 4)) for p in params)


def test_small_parameters_lie_one_after_the_other():
    params, _ = trained()
    flat = Flat(params[1:])
    assert flat.own and flat.array.tolist() == [n - 3 for n in (0, 1, 2, 3, 0, 1, 2, 3, 4, 5)]


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("hold", [
    lambda p: p.detach().clone(), lambda p: p.clone(), lambda p: copy.deepcopy(p), lambda p: p.detach() + 0, lambda p: torch.stack([p])[0],
    lambda p: p.detach().t().contiguous().t()], ids=["clone", "recorded clone", "deepcopy", "sum", "stack", "transposed copy"])
def test_copies_keep_the_old_numbers(hold, number):
    params, optimizer = trained()
    held = hold(params[number])
    step(optimizer, params)
    step(optimizer, params)
    assert torch.equal(held, start(held, 3))
    assert all(torch.equal(p, start(p, 5)) for p in params)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("hold", [
    lambda p: p.detach(), lambda p: p.data, lambda p: p.detach().numpy(), lambda p: p.detach()[:],
    lambda p: p.view(-1).detach().view(-1, 2), lambda p: p.t().detach().t(),
], ids=["detach", "data", "numpy", "slice", "view", "transposed"])
def test_aliases_show_the_new_numbers(hold, number):
    params, optimizer = trained()
    held = hold(params[number])
    for n in (4, 5):
        step(optimizer, params)
        assert torch.equal(torch.as_tensor(held), start(params[number], n))
    assert all(torch.equal(p, start(p, 5)) for p in params)


def test_writes_through_an_alias_count():
    params, optimizer = trained()
    alias = params[1].data
    step(optimizer, params)
    alias[0, 0] = 100.0
    step(optimizer, params)
    assert params[1].tolist() == [[99, -4], [-3, -2]]


def test_state_dicts_are_aliases_and_their_copies_are_not():
    params, optimizer = trained(momentum=0.5)
    state = optimizer.state_dict()["state"]
    kept = copy.deepcopy(state)
    step(optimizer, params)
    assert state[1]["momentum_buffer"].tolist() == [[1.875] * 2] * 2
    assert kept[1]["momentum_buffer"].tolist() == [[1.75] * 2] * 2


def test_a_graph_keeps_what_it_needs():
    params, optimizer = trained()
    p = params[1]
    x = torch.ones(2, 2, requires_grad=True)
    kept = ((p + 1) * x).sum()  # saves p + 1, which the update does not change
    step(optimizer, params)
    kept.backward()
    assert torch.equal(x.grad, start(p, 2))


@pytest.mark.parametrize("read", [lambda p: p.view(-1), lambda p: p.t()], ids=["view", "transpose"])
def test_a_graph_over_a_view_keeps_what_it_needs(read):
    params, optimizer = trained()
    p = params[1]
    seen = read(p)
    (seen * 2).sum().backward()
    x = torch.ones_like(seen, requires_grad=True)
    kept = ((seen + 1) * x).sum()
    expected = (seen + 1).detach().clone()
    step(optimizer, params)
    kept.backward()
    assert torch.equal(x.grad, expected)


def test_a_graph_that_needs_the_parameter_says_that_it_was_overwritten():
    params, optimizer = trained()
    x = torch.ones(2, 2, requires_grad=True)
    kept = (params[1] * x).sum()
    step(optimizer, params)
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*version 4; expected version 3"):
        kept.backward()


def test_tied_parameters_and_two_optimizers():
    p = torch.nn.Parameter(torch.zeros(3))
    first, second = torch.optim.SGD([p], lr=1.0), torch.optim.Adam([p], lr=1.0)
    other = torch.nn.Parameter(torch.zeros(3))
    both = torch.optim.SGD([other, p], lr=1.0)
    for optimizer in (first, both, second, both, first):
        p.grad, other.grad = torch.ones(3), torch.ones(3)
        optimizer.step()
    assert torch.allclose(p, torch.full((3,), -5.0), atol=1e-6) and other.tolist() == [-2.0] * 3


def test_parameters_that_were_given_other_data():
    params, optimizer = trained()
    params[2].data = torch.zeros(3, 2)
    step(optimizer, params)
    with torch.no_grad():
        params[1].copy_(torch.ones(2, 2))
    step(optimizer, params)
    assert params[2].tolist() == [[-2.0] * 2] * 3 and params[1].tolist() == [[0.0] * 2] * 2
    assert torch.equal(params[0], start(params[0], 5))


def test_parameters_that_are_views():
    base = torch.zeros(10)
    params = [torch.nn.Parameter(base[:4]), torch.nn.Parameter(base[4:].view(2, 3))]
    optimizer = torch.optim.SGD(params, lr=1.0)
    for _ in range(3):
        step(optimizer, params)
    assert base.tolist() == [-3.0] * 10


def test_versions_advance():
    params, optimizer = trained()
    versions = [p._version for p in params]
    step(optimizer, params)
    assert [p._version - v for p, v in zip(params, versions)] == [1, 1, 1]


def test_steps_of_adam_are_counted_one_by_one():
    params = parameters()
    optimizer = torch.optim.Adam(params, lr=0.1)
    step(optimizer, params[:2])
    counter = optimizer.state[params[0]]["step"]
    step(optimizer, params)
    assert counter.item() == 2 and [optimizer.state[p]["step"].item() for p in params] == [2, 2, 1]
