"""Reading `.grad` of what is no leaf: PyTorch warns where nothing will ever be there."""

import warnings

import pytest
import torch


def test_it_warns_once_at_the_users_line():
    d = torch.ones(2, requires_grad=True) * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed") as seen:
        assert d.grad is None
    assert [w.filename for w in seen] == [__file__]


def test_it_is_quiet_where_a_gradient_may_come():
    a = torch.ones(2, requires_grad=True)
    kept = a * 2
    kept.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert a.grad is None and kept.grad is None and kept.detach().grad is None
