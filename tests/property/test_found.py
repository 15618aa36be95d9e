"""What the random state machine found, one test for each kind; values are PyTorch's."""

import pytest
import torch


def test_as_strided_view_made_without_recording_claims_what_its_base_does():
    leaf = torch.arange(4.0).requires_grad_()
    inner = leaf * 2
    with torch.no_grad():
        of_leaf, of_inner = leaf.as_strided((2,), (1,), 0), inner.as_strided((2,), (2,), 1)
    assert of_leaf.requires_grad and of_leaf.is_leaf and of_inner.requires_grad and of_inner.is_leaf
    ((of_inner * 3).sum() + inner.sum()).backward()
    assert leaf.grad.tolist() == [2, 2, 2, 2]  # gradients end in the view


def test_view_without_recording_of_a_leaf_that_is_a_view_requires_no_grad():
    leaf = torch.arange(8.0).reshape(2, 4).requires_grad_()
    with torch.no_grad():
        assert not leaf[1].requires_grad and not leaf.as_strided((2,), (1,), 0).requires_grad


def test_as_strided_of_a_view_made_without_recording_reaches_the_whole_storage():
    made = torch.arange(8.0).reshape(2, 4).requires_grad_() * 1
    with torch.no_grad():
        row = made[1]
    window = row.as_strided((3,), (3,), 1)
    assert window.tolist() == [1, 4, 7] and window.requires_grad
    with torch.no_grad():
        window.mul_(10)
    assert row.tolist() == [40, 5, 6, 70]


def test_as_strided_beyond_a_detached_leaf_says_what_to_do():
    leaf = torch.arange(8.0).reshape(2, 4)[1].detach().requires_grad_()
    with pytest.raises(NotImplementedError, match="as_strided"):
        leaf.as_strided((2,), (1,), 0)


def test_early_loss_as_an_input_of_a_later_replay_keeps_the_other_gradients():
    """A part of the loss is computed by a replay of its own, and goes into the next replay together with the same leaf."""
    for _ in range(4):
        leaf = torch.arange(4.0).requires_grad_()
        rolled = torch.stack([leaf.roll(1), leaf])  # roll has a host kernel: it cuts the program in two
        ((rolled * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum() + (leaf * leaf).sum() * 2).backward()
        assert leaf.grad.tolist() == [3, 9, 15, 17]


def test_copy_of_a_leaf_made_without_recording_leaves_the_target_its_own_leaf():
    source, target = torch.ones(2, requires_grad=True), torch.zeros(2, requires_grad=True)
    with torch.no_grad():
        target.copy_(source)
    (source.sum() * 2 + target.sum() * 3).backward()
    assert source.grad.tolist() == [2, 2] and target.grad.tolist() == [3, 3]


@pytest.mark.parametrize("write", ["x.copy_(w)", "x[...] = w", "x[:] = w"])
@pytest.mark.parametrize("leaf", [True, False])
def test_copy_is_a_value_of_its_own(write, leaf):
    w = torch.ones(3, requires_grad=True)
    if not leaf:
        w = w * 1
    w.retain_grad()
    x, seen = torch.zeros(3), []
    exec(write, {"x": x, "w": w})
    assert not x.is_leaf and x.grad_fn is not None
    x.register_hook(lambda g: seen.append(g.tolist()))
    x.add_(1)
    (x.sum() + 3 * w.sum()).backward()
    assert seen == [[1, 1, 1]] and w.grad.tolist() == [4, 4, 4]


@pytest.mark.parametrize("view", [lambda t: t, lambda t: t[:], lambda t: t.view(2, 2).t()])
def test_hook_on_a_view_sees_what_comes_through_as_strided(view):
    leaf, seen = torch.arange(4.0).requires_grad_(), []
    made = view((leaf * 2)[:])
    made.register_hook(lambda g: seen.append(g.flatten().tolist()))
    made.as_strided((2,), (2,), 1).sum().backward()
    assert len(seen) == 1 and sum(seen[0]) == 2 and leaf.grad.tolist() == [0, 2, 0, 2]


def test_as_strided_of_a_permuted_view_writes_in_the_order_of_memory():
    base = torch.arange(6.0)
    base.view(2, 3).t().as_strided((2,), (4,), 1).fill_(9)
    assert base.tolist() == [0, 9, 2, 3, 4, 9]


def test_view_whose_graph_was_freed_passes_gradients_on_where_nothing_was_kept():
    leaf = torch.arange(4.0).requires_grad_()
    windows = leaf.unfold(0, 2, 2)
    (windows * 0.5).sum().backward()
    windows.flip(0).sum().backward()
    assert leaf.grad.tolist() == [1.5] * 4


def test_as_strided_of_a_view_of_a_view_made_without_recording():
    leaf = torch.arange(3.0).reshape(1, 3).clone().requires_grad_()
    with torch.no_grad():
        part = leaf.unbind(1)[1]
    assert part.squeeze().as_strided((2,), (1,), 0).tolist() == [0, 1]


def test_windows_of_windows_read_after_the_graph_was_freed():
    leaf = torch.ones(3, 3, requires_grad=True)
    windows = leaf.unfold(1, 2, 1)
    wide = windows.expand(2, *windows.shape)
    late = wide[0:2:2]  # not read before the first pass
    (windows.sum() + wide.sum()).backward()
    late.sum().backward()
    assert leaf.grad.tolist() == [[4, 8, 4]] * 3
