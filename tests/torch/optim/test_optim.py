# Optimizers and schedulers against the numbers PyTorch gives for the same programs.
import copy
import json
import pathlib
import sys
import warnings

import pytest
import torch
from torch import optim

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import optim_cases as cases

GOLDENS = json.loads((pathlib.Path(__file__).parents[2] / "goldens" / "optim.json").read_text())


@pytest.mark.parametrize("name", cases.OPTIMIZERS)
def test_losses_equal_pytorchs(name):
    got, want = cases.run_optimizer(torch, optim, name), GOLDENS["optimizers"][name]
    # Muon works in bfloat16, where one last bit is much
    rel = 2e-2 if name.startswith("muon") else 1e-4
    assert got["losses"] == pytest.approx(want["losses"], rel=rel)
    assert got["params"] == pytest.approx(want["params"], rel=rel)


@pytest.mark.parametrize("name", cases.SCHEDULERS)
def test_rates_equal_pytorchs(name):
    got = cases.run_scheduler(torch, optim, name)
    assert got == GOLDENS["schedulers"][name]


@pytest.mark.parametrize("name", GOLDENS["schedulers_adam"])
def test_rates_and_beta1_equal_pytorchs(name):
    assert cases.run_scheduler(torch, optim, name, adam=True) == GOLDENS["schedulers_adam"][name]


def test_plateau_rates_equal_pytorchs():
    assert cases.run_plateau(torch, optim) == GOLDENS["plateau"]


@pytest.mark.parametrize("cls", GOLDENS["reprs"])
def test_repr_groups_and_state_keys(cls):
    p = torch.ones(2, 2, requires_grad=True)
    optimizer = getattr(optim, cls)([p], lr=0.1)
    if cls != "SparseAdam":
        p.grad = torch.ones(2, 2)
        optimizer.step(lambda: torch.zeros(())) if cls == "LBFGS" else optimizer.step()
    want = GOLDENS["reprs"][cls]
    assert repr(optimizer) == want["repr"]
    assert list(optimizer.state_dict()["param_groups"][0]) == want["group_keys"]
    assert list(optimizer.state_dict()["state"].get(0, {})) == want["state_keys"]


def _param(*shape):
    return torch.nn.Parameter(torch.ones(*(shape or (2,))))


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: optim.SGD([], lr=0.1), ValueError, "optimizer got an empty parameter list"),
        (
            lambda: optim.SGD(_param(), lr=0.1),
            TypeError,
            "params argument given to the optimizer should be an iterable",
        ),
        (lambda: optim.SGD([{"params": {_param()}}], lr=0.1), TypeError, "ordered collections"),
        (
            lambda: optim.SGD([1], lr=0.1),
            TypeError,
            "optimizer can only optimize Tensors, but one of the params is int",
        ),
        (lambda: optim.SGD([_param() * 2], lr=0.1), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: optim.SGD([_param()], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.SGD([_param()], nesterov=True), ValueError, "Nesterov momentum requires"),
        (lambda: optim.Adam([_param()], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda: optim.Adam([_param()], fused=True, foreach=True), RuntimeError, "cannot be `True` together"),
        (lambda: optim.Muon([_param()]), ValueError, "Muon only supports 2D parameters"),
        (lambda: optim.SGD([("a", _param()), _param()]), ValueError, "Some param names are missing"),
    ],
)
def test_errors_in_pytorchs_words(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_same_parameter_in_two_groups_is_refused():
    p = _param()
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        optim.SGD([{"params": [p]}, {"params": [p]}], lr=0.1)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([p, p], lr=0.1)


def _steps(optimizer, p, n, seed=0):
    torch.manual_seed(seed)
    for _ in range(n):
        p.grad = torch.randn(p.shape)
        optimizer.step()


@pytest.mark.parametrize("cls", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "ASGD", "Adafactor"])
def test_state_dict_continues_where_it_was(cls):
    options = {"momentum": 0.9} if cls in ("SGD", "RMSprop") else {}
    p = _param(3, 4)
    first = getattr(optim, cls)([p], lr=0.05, **options)
    _steps(first, p, 3)
    q = torch.nn.Parameter(p.detach().clone())
    second = getattr(optim, cls)([q], lr=0.7, **options)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    assert second.param_groups[0]["lr"] == 0.05
    _steps(first, p, 3, seed=1)
    _steps(second, q, 3, seed=1)
    assert torch.equal(p, q)


def test_load_state_dict_errors():
    optimizer = optim.SGD([_param()], lr=0.1)
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optimizer.load_state_dict({"state": {}, "param_groups": []})
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        optimizer.load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]})


def test_hooks_run_in_order_and_can_be_removed():
    optimizer, log = optim.SGD([_param()], lr=0.1), []
    handles = [
        optimizer.register_step_pre_hook(lambda *a: log.append("pre")),
        optimizer.register_step_post_hook(lambda *a: log.append("post")),
        optimizer.register_state_dict_pre_hook(lambda o: log.append("state")),
        optimizer.register_load_state_dict_post_hook(lambda o: log.append("loaded")),
        optim.optimizer.register_optimizer_step_pre_hook(lambda *a: log.append("global")),
    ]
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    assert log == ["global", "pre", "post", "state", "loaded"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(log) == 5


def test_a_users_optimizer_has_hooks_too():
    class Plain(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.5})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad, alpha=-group["lr"])

    p, log = _param(), []
    optimizer = Plain([p])
    optimizer.register_step_post_hook(lambda *a: log.append(1))
    p.grad = torch.ones(2)
    optimizer.step()
    assert p.tolist() == [0.5, 0.5] and log == [1]


def test_call_with_gradients_steps_and_leaves_grad_alone():
    p, q = _param(2), _param(3)
    optimizer = optim.SGD([{"params": [p]}, {"params": [q], "lr": 1.0}], lr=0.5)
    assert [x is y for x, y in zip(optimizer.parameters, [p, q])] == [True, True]
    optimizer((torch.ones(2), torch.ones(3)))
    assert p.tolist() == [0.5, 0.5] and q.tolist() == [0.0, 0.0, 0.0]
    assert p.grad is None and q.grad is None
    with pytest.raises(ValueError, match="2 parameters, but 1 gradients"):
        optimizer((torch.ones(2),))


def test_scheduler_before_optimizer_warns():
    scheduler = optim.lr_scheduler.StepLR(optim.SGD([_param()], lr=0.1), 1)
    with pytest.warns(UserWarning, match="before `optimizer.step\\(\\)`"):
        scheduler.step()


def test_scheduler_state_continues():
    def make():
        optimizer = optim.SGD([_param()], lr=0.1)
        return optimizer, optim.lr_scheduler.CosineAnnealingLR(optimizer, 7)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        o1, s1 = make()
        for _ in range(3):
            s1.step()
        o2, s2 = make()
        s2.load_state_dict(s1.state_dict())
        o2.load_state_dict(o1.state_dict())
        s1.step()
        s2.step()
    assert o1.param_groups[0]["lr"] == o2.param_groups[0]["lr"]


def test_averaged_model_is_the_mean():
    model = torch.nn.Linear(2, 1)
    averaged = optim.swa_utils.AveragedModel(model)
    weights = []
    for i in range(3):
        with torch.no_grad():
            model.weight.fill_(float(i))
        weights.append(float(i))
        averaged.update_parameters(model)
    assert averaged.module.weight.tolist() == [[1.0, 1.0]]
    assert averaged.n_averaged.item() == 3


def test_zero_grad_forgets_or_fills():
    p = _param()
    optimizer = optim.SGD([p], lr=0.1)
    p.grad = torch.ones(2)
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert p.grad is None
