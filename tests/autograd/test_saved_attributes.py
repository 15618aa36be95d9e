"""What a node keeps, as users see it: `_saved_*`, and hooks on `_raw_saved_*`. Right values: PyTorch 2.13."""

import pytest
import torch


@pytest.fixture
def x():
    return torch.arange(1.0, 4.0).requires_grad_()


def test_saved_tensors_are_those_that_pytorch_keeps(x):
    y = torch.ones(3)
    node = (x * y).grad_fn
    assert node._saved_self is None and node._saved_other is y
    assert (x * x).grad_fn._saved_self is x
    e = x.exp()
    assert torch.equal(e.grad_fn._saved_result, e) and e.grad_fn._saved_result.grad_fn is e.grad_fn
    values, indices = x.max(0)
    assert values.grad_fn._saved_indices is indices
    for missing in (lambda: x.sin().grad_fn._saved_result, lambda: e.grad_fn._saved_foo):
        with pytest.raises(AttributeError):
            missing()
    assert torch.svd(torch.eye(2, requires_grad=True))[0].grad_fn._saved_U.shape == (2, 2)


def test_dir_lists_what_is_kept(x):
    assert [n for n in dir((x * x).grad_fn) if "saved" in n] == ["_raw_saved_other", "_raw_saved_self", "_saved_other", "_saved_self"]
    assert [n for n in dir(x.exp().grad_fn) if "saved" in n] == ["_raw_saved_result", "_saved_result"]


def test_saved_tensor_that_was_written_to_or_freed(x):
    z = x.exp()
    node = z.grad_fn
    z.add_(1)
    with pytest.raises(RuntimeError, match="which is output 0 of Exp, is at version 1; expected version 0"):
        node._saved_result  # noqa: B018
    z = x * x
    node = z.grad_fn
    z.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        node._saved_self  # noqa: B018
    with pytest.raises(RuntimeError, match="register_hooks on a saved tensor after it has been freed"):
        node._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


@pytest.mark.parametrize("make, name, pack, unpack, expected", [
    (lambda x: x * x, "self", lambda t: t * 2, lambda t: t, [3, 6, 9]),
    (lambda x: x.exp(), "result", lambda t: t * 0 + 3, lambda t: t, [3, 3, 3]),
    (lambda x: x.sin(), "self", lambda t: (t, "a"), lambda t: t[0] * 0, [1, 1, 1])])
def test_hooks_on_one_saved_tensor(x, make, name, pack, unpack, expected):
    for _ in range(2):
        x.grad = None
        z = make(x)
        getattr(z.grad_fn, "_raw_saved_" + name).register_hooks(pack, unpack)
        z.sum().backward()
        assert x.grad.tolist() == expected


def test_refusals_of_hooks_on_one_saved_tensor(x):
    z = x.sin()
    raw = z.grad_fn._raw_saved_self
    assert type(raw).__name__ == "SavedTensor"
    raw.register_hooks(lambda t: t, lambda t: 3)
    with pytest.raises(RuntimeError, match="whose hooks have already been set"):
        raw.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(TypeError, match="expected to be a Tensor but got result of type int"):
        z.sum().backward()
    with pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        x.sin().grad_fn._raw_saved_self.register_hooks(lambda t: t.add_(1), lambda t: t)
