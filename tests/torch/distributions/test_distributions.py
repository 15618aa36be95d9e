# Distributions against PyTorch: draws seed for seed, densities, moments, divergences, transforms, errors.
import json
import math
import pathlib
import sys

import pytest
import torch
from torch import distributions as D

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import dist_cases as cases

GOLDENS = json.loads((pathlib.Path(__file__).parents[2] / "goldens" / "distributions.json").read_text())


def close(got, want, tolerance):
    if isinstance(want, list):
        return len(got) == len(want) and all(close(g, w, tolerance) for g, w in zip(got, want))
    if isinstance(want, float):
        return got == want or (math.isnan(got) and math.isnan(want)) or abs(got - want) <= tolerance * max(1, abs(want))
    return got == want


@pytest.mark.filterwarnings("ignore:Singular sample detected")
@pytest.mark.parametrize("name", GOLDENS["distributions"])
def test_draws_densities_and_moments(name):
    got = cases.describe(torch, cases.make(torch)[name]())
    want = GOLDENS["distributions"][name]
    assert set(got) == set(want)
    for key, value in want.items():
        assert close(got[key], value, 2e-5), (key, got[key], value)


def test_divergences():
    got = cases.divergences(torch, cases.make(torch))
    want = GOLDENS["kl"]
    assert set(got) == set(want)
    wrong = {pair: (got[pair], want[pair]) for pair in want if not close(got[pair], want[pair], 2e-5)}
    assert not wrong


@pytest.mark.parametrize("name", GOLDENS["transforms"])
def test_transforms(name):
    transform, x = cases.transforms(torch)[name]
    assert close(cases.run_transform(transform, x), GOLDENS["transforms"][name], 2e-5)


@pytest.mark.parametrize(
    "make, error, message",
    [
        (
            lambda: D.Normal(0.0, -1.0),
            ValueError,
            "Expected parameter scale \\(Tensor of shape \\(\\)\\) of distribution",
        ),
        (lambda: D.Bernoulli(), ValueError, "Either `probs` or `logits` must be specified, but not both."),
        (
            lambda: D.Bernoulli(0.5).log_prob(torch.tensor(0.5)),
            ValueError,
            "to be within the support \\(Boolean\\(\\)\\)",
        ),
        (lambda: D.Categorical(torch.tensor(1.0)), ValueError, "must be at least one-dimensional"),
        (lambda: D.MultivariateNormal(torch.zeros(2)), ValueError, "Exactly one of covariance_matrix"),
        (lambda: D.kl_divergence(D.Normal(0.0, 1.0), D.StudentT(1.0)), NotImplementedError, "No KL\\(p \\|\\| q\\)"),
        (lambda: D.biject_to(D.constraints.boolean), NotImplementedError, "Cannot transform _Boolean constraints"),
        (lambda: D.Normal(0.0, 1.0).log_prob(3), ValueError, "must be a Tensor"),
        (lambda: D.Independent(D.Normal(0.0, 1.0), 1), ValueError, "Expected reinterpreted_batch_ndims"),
    ],
)
def test_errors_in_pytorchs_words(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_gradients_reach_parameters_through_rsample():
    loc, scale = torch.tensor([0.5, 1.0], requires_grad=True), torch.tensor([1.0, 2.0], requires_grad=True)
    torch.manual_seed(0)
    x = D.Normal(loc, scale).rsample((5,))
    x.sum().backward()
    assert loc.grad.tolist() == [5.0, 5.0]
    noise = (x.detach() - loc.detach()) / scale.detach()
    assert torch.allclose(scale.grad, noise.sum(0), atol=1e-5)


def test_cache_returns_the_very_input():
    transform = D.TanhTransform(cache_size=1)
    x = torch.tensor([0.3, 20.0])
    assert transform.inv(transform(x)) is x
    assert transform.inv.inv is transform


def test_a_users_pair_is_found_and_the_most_specific_wins():
    class Mine(D.Normal):
        pass

    assert D.kl_divergence(Mine(0.0, 1.0), D.Normal(0.0, 1.0)).item() == 0.0

    @D.register_kl(Mine, D.Normal)
    def kl(p, q):
        return torch.tensor(7.0)

    assert D.kl_divergence(Mine(0.0, 1.0), D.Normal(0.0, 1.0)).item() == 7.0


def test_validation_can_be_turned_off():
    D.Normal(0.0, -1.0, validate_args=False)
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
