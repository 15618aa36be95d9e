"""The tangent that a dual tensor was given comes back as it is."""

import torch
import torch.autograd.forward_ad as fwAD


def test_a_tangent_of_the_same_layout_is_kept_and_of_another_copied():
    primal, tangent = torch.randn(3, 3), torch.randn(3, 3)
    with fwAD.dual_level():
        dual = fwAD.make_dual(primal, tangent)
        assert fwAD.unpack_dual(dual).tangent is tangent
        other = fwAD.unpack_dual(fwAD.make_dual(primal, tangent.T)).tangent
        assert other is not tangent and torch.equal(other, tangent.T)
        assert torch.equal(fwAD.unpack_dual(dual * 2).tangent, tangent * 2)


def test_what_is_written_over_a_dual_tensor_has_a_tangent_of_zero():
    writes = [lambda d: d.normal_(), lambda d: d.bernoulli_(0.5), lambda d: d.random_(), lambda d: d.zero_(), lambda d: d.fill_(2.0),
              lambda d: d.copy_(torch.zeros(3))]
    for write in writes:
        with fwAD.dual_level():
            dual = fwAD.make_dual(torch.ones(3), torch.tensor([1.0, 2.0, 3.0]))
            write(dual)
            assert fwAD.unpack_dual(dual).tangent.tolist() == [0, 0, 0]
    with fwAD.dual_level():
        dual = fwAD.make_dual(torch.ones(3), torch.tensor([1.0, 2.0, 3.0]))
        dual[:1].uniform_()
        assert fwAD.unpack_dual(dual).tangent.tolist() == [0, 2, 3]


def test_what_is_drawn_has_a_tangent_of_zero():
    normals = [lambda d: torch.normal(d, 1.0), lambda d: torch.normal(0.0, d), lambda d: torch.normal(d, d)]
    for draw in (torch.bernoulli, torch.poisson, *normals):
        with fwAD.dual_level():
            dual = fwAD.make_dual(torch.full((2,), 0.5), torch.ones(2))
            assert fwAD.unpack_dual(draw(dual)).tangent.tolist() == [0, 0]
