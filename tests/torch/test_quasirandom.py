"""torch.quasirandom.SobolEngine: PyTorch's points. Right values: PyTorch 2.13."""

import pytest
import torch
from torch.quasirandom import SobolEngine


def test_points_of_the_plain_sequence():
    points = SobolEngine(3).draw(5)
    assert points.dtype is torch.float32
    assert points.tolist() == [[0, 0, 0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75], [0.375, 0.375, 0.625]]
    assert SobolEngine(1000).draw(70)[-1, -5:].tolist() == pytest.approx([0.8672, 0.7891, 0.4297, 0.6172, 0.4922], abs=5e-5)


def test_points_of_a_scrambled_sequence():
    engine = SobolEngine(dimension=5, scramble=True, seed=7)
    expected = [[0.1995, 0.1709, 0.7494, 0.1843, 0.5505], [0.7324, 0.8607, 0.2074, 0.8068, 0.1510],
                [0.8502, 0.4206, 0.9000, 0.3733, 0.3176], [0.3172, 0.6101, 0.4244, 0.7429, 0.9806]]
    torch.testing.assert_close(engine.draw(4), torch.tensor(expected), rtol=0, atol=5e-5)
    assert SobolEngine(2, scramble=True, seed=5).shift.tolist() == [515708045, 125905764]


def test_scrambling_without_seed_draws_from_the_global_generator():
    torch.manual_seed(3)
    points = SobolEngine(4, scramble=True).draw(2)
    torch.testing.assert_close(points, torch.tensor([[0.0685, 0.2245, 0.6992, 0.0626], [0.6718, 0.7222, 0.2862, 0.8273]]), rtol=0,
                               atol=5e-5)
    torch.testing.assert_close(torch.rand(2), torch.tensor([0.4063, 0.9293]), rtol=0, atol=5e-5)


@pytest.mark.parametrize("scramble", [False, True])
@pytest.mark.parametrize("passed", [0, 1, 2, 7, 40])
def test_parts_are_the_whole(scramble, passed):
    whole = SobolEngine(3, scramble, seed=1).draw(60, dtype=torch.float64)
    engine = SobolEngine(3, scramble, seed=1)
    assert engine.fast_forward(passed) is engine and engine.num_generated == passed
    first = engine.draw(3, dtype=torch.float64)
    engine.fast_forward(4)
    assert torch.equal(torch.cat([first, engine.draw(5, dtype=torch.float64)]), torch.cat([whole[passed:passed + 3],
                                                                                         whole[passed + 7:passed + 12]]))
    assert torch.equal(engine.reset().draw(4, dtype=torch.float64), whole[:4])


def test_draw_in_powers_of_two_and_into_a_tensor():
    engine = SobolEngine(2)
    assert engine.draw_base2(2).shape == (4, 2)
    with pytest.raises(ValueError, match=r"4 points have been previously generated, then: n=4\+2\*\*1=6"):
        engine.draw_base2(1)
    out = torch.empty(0, dtype=torch.float64)
    assert SobolEngine(2).draw(2, out=out) is out and out.tolist() == [[0, 0], [0.5, 0.5]]
    assert SobolEngine(2).draw(2, dtype=torch.float16).dtype is torch.float16


def test_representation_and_refusals():
    assert repr(SobolEngine(2, scramble=True, seed=1)) == "SobolEngine(dimension=2, scramble=True, seed=1)"
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match=r"Supported range of dimensionality for SobolEngine is \[1, 21201\]"):
            SobolEngine(dimension)
