"""Large sums and means over several axes are taken in stages: as exact as before, with the same gradients."""

import numpy as np
import pytest

from msadapter_hook.prims import reduction

CASES = [((32, 64, 8, 8), (2, 3)), ((32, 64, 8, 8), (0, 2, 3)), ((64, 1000), (0, 1)), ((16, 50, 2, 40), (1, 3)), ((40000, 2), (0, 1)),
         ((8, 16, 16, 32), (0, 1, 2, 3)), ((300, 5, 40), (0, 1))]


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize("shape, axes", CASES, ids=str)
def test_large_reductions_over_several_axes(shape, axes, name, keepdim):
    import torch

    assert np.prod(shape) >= reduction._LARGE
    a = np.random.default_rng(0).random(shape, np.float32)
    wanted = getattr(np, name)(a.astype(np.float64), axis=axes, keepdims=keepdim)
    g = np.random.default_rng(1).standard_normal(wanted.shape).astype(np.float32)
    for _ in range(2):  # computed at once, then late
        x = torch.tensor(a, requires_grad=True)
        made = getattr(x, name)(dim=axes, keepdim=keepdim)
        made.backward(torch.tensor(g))
    assert made.shape == wanted.shape and made.dtype == torch.float32
    np.testing.assert_allclose(made.detach().numpy(), wanted, rtol=5e-7)
    kept = g.reshape([1 if i in axes else n for i, n in enumerate(shape)])
    slope = np.broadcast_to(kept, shape) / (1 if name == "sum" else np.float32(a.size // g.size))
    np.testing.assert_allclose(x.grad.numpy(), slope, rtol=2e-7)
