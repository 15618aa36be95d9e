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
