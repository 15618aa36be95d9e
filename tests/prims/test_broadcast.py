"""Large sums and products that broadcast go other ways than small ones: same numbers, same gradients."""

import numpy as np
import pytest

from msadapter_hook.prims import pointwise

SHAPES = [((256, 256), (256,)), ((256,), (256, 256)), ((4, 4, 64, 64), (64, 64)), ((16, 3, 32, 32), (3, 1, 1)), ((512, 1), (1, 256)),
          ((1, 512, 1), (2, 1, 64)), ((65536,), (1,)), ((1, 1), (65536,))]


@pytest.mark.parametrize("name, formula", [("add", np.add), ("mul", np.multiply)])
@pytest.mark.parametrize("one, other", SHAPES, ids=str)
def test_wide_broadcasts_are_exact_and_differentiable(name, formula, one, other):
    import torch

    shape = np.broadcast_shapes(one, other)
    assert np.prod(shape) >= pointwise._WIDE
    random = np.random.default_rng(0)
    a, b, g = (random.standard_normal(s).astype(np.float32) for s in (one, other, shape))
    a.flat[0], b.flat[-1] = -0.0, np.inf
    x, y = (torch.tensor(v, requires_grad=True) for v in (a, b))
    for _ in range(2):  # computed at once, then late
        x.grad = y.grad = None
        made = getattr(torch, name)(x, y)
        made.backward(torch.tensor(g))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(made.detach().numpy(), formula(a, b))
    slopes = (g, g) if name == "add" else (g * b.astype(np.float64), g * a.astype(np.float64))
    for tensor, slope in zip((x, y), slopes):
        lead = slope.ndim - tensor.dim()
        axes = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(tensor.shape) if n == 1)
        wanted = slope.sum(axes, keepdims=True, dtype=np.float64).reshape(tensor.shape)
        np.testing.assert_allclose(tensor.grad.numpy(), wanted, rtol=2e-5, atol=2e-4)


def test_a_wide_sum_keeps_zeros_and_nan():
    import torch

    x = torch.full((256, 256), -0.0, requires_grad=True)
    y = torch.tensor([-0.0, float("nan")] * 128)
    made = (x + y).detach().numpy()
    assert np.signbit(made[:, ::2]).all() and np.isnan(made[:, 1::2]).all()
