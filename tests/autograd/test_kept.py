"""What the graph keeps: writing to it before backward is an error, as in PyTorch, and only to that."""

import pytest
import torch
import torch.nn.functional as F


def leaf(*size):
    return torch.rand(size, requires_grad=True)


def index():
    x, i = leaf(4), torch.tensor([0, 1])
    return x[i], i


def mask():
    x = leaf(4)
    i = x.detach() > 0.5
    return x[i], i


def assigned():
    x, i = leaf(4) * 1, torch.tensor([0, 1])
    x[i] = 2.0
    return x, i


def put():
    x, i = leaf(4) * 1, torch.tensor([0, 1])
    return x.index_put((i,), torch.ones(2)), i


def where():
    x = leaf(4)
    c = x.detach() > 0.5
    return torch.where(c, x, x * 2), c


def embedding():
    i = torch.tensor([0, 1])
    return F.embedding(i, leaf(5, 2)), i


def sorted_positions():
    values, i = leaf(3, 4).sort(1)
    return values, i


def largest_positions():
    values, i = leaf(3, 4).topk(2)
    return values, i


def maximum_positions():
    values, i = leaf(3, 4).max(1)
    return values, i


def running_maximum():
    x = leaf(4) * 1
    return x.cummax(0)[0], x


def classes():
    x, t = leaf(3, 4), torch.tensor([0, 1, 2])
    return F.cross_entropy(x, t), t


def image():
    x = leaf(1, 1, 4, 4) * 1
    return F.conv2d(x, torch.rand(1, 1, 2, 2)), x


def filters_of_data():
    w = torch.rand(1, 1, 2, 2)
    return F.conv2d(leaf(1, 1, 4, 4), w), w


def power():
    x = leaf(3) * 1
    return x.pow(2), x


def power_result():
    y = leaf(3).pow(torch.tensor([1.0, 2, 3]))
    return y, y


def probabilities():
    x, e = leaf(3), torch.tensor([1.0, 2, 3])
    return x.pow(e), e


KEPT = [index, mask, assigned, put, where, embedding, sorted_positions, largest_positions, maximum_positions, running_maximum, classes,
        image, filters_of_data, power, power_result, probabilities]


@pytest.mark.parametrize("case", KEPT, ids=lambda f: f.__name__)
def test_writing_to_what_is_kept_is_an_error(case):
    out, kept = case()
    with torch.no_grad():
        kept.copy_(kept.clone())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def scores():
    x = leaf(3, 4) * 1
    return F.cross_entropy(x, torch.tensor([0, 1, 2])), x


def maximum_of():
    x = leaf(3, 4) * 1
    return x.max(1)[0], x


def square():
    y = leaf(3).pow(2)
    return y, y


def dropped():
    y = F.dropout(leaf(3))
    return y, y


def joined():
    x = leaf(3) * 1
    return torch.cat([x, x]), x


def difference():
    x, y = leaf(3) * 1, leaf(3)
    return F.l1_loss(x, y), x


@pytest.mark.parametrize("case", [scores, maximum_of, square, dropped, joined, difference], ids=lambda f: f.__name__)
def test_writing_to_what_is_not_kept_is_none(case):
    out, free = case()
    with torch.no_grad():
        free.copy_(free.clone())
    out.sum().backward()


def test_norm_may_be_called_twice_before_backward():
    norm = torch.nn.BatchNorm1d(4)
    x = leaf(3, 4)
    (norm(x) + norm(x * 2)).sum().backward()
    assert x.grad is not None


def test_pack_hooks_see_positions():
    seen = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(tuple(t.shape)) or t, lambda t: t):
        values, places = leaf(3, 4).topk(2)
    assert seen == [(3, 2)]
    x = leaf(3)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 0 + 3, lambda t: t):
        y = x.pow(2)
    y.sum().backward()
    assert x.grad.tolist() == [6, 6, 6]


def test_errors_name_the_type():
    out, c = where()
    c.logical_not_()
    with pytest.raises(RuntimeError, match=r"\[CPUBoolType \[4\]\] is at version 1; expected version 0"):
        out.sum().backward()


def test_positions_from_inference_mode_cannot_be_kept():
    with torch.inference_mode():
        i = torch.tensor([0, 1])
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        leaf(3)[i]


def test_statistics_of_a_layer_norm_carry_no_gradient():
    out, mean, inverse = torch.native_layer_norm(leaf(2, 3), (3,), None, None, 1e-5)
    assert out.requires_grad and not mean.requires_grad and not inverse.requires_grad


@pytest.mark.parametrize("make, name", [
    (lambda x: x.exp(), "output 0 of Exp"), (lambda x: F.softmax(x, 1), "output 0 of Softmax"), (lambda x: x * 1, "output 0 of Add"),
    (lambda x: (x * 1).view(6), "output 0 of AsStrided"), (lambda x: (x * 1)[0], "output 0 of AsStrided")])
def test_the_error_names_the_maker_of_what_was_written_to(make, name):
    """Of a result the node itself, of another tensor the node that made it what it is now."""
    x = leaf(2, 3)
    y = make(x)
    z = y if name.endswith(("Exp", "Softmax")) else y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match=rf"\[torch.FloatTensor \[[236, ]+\]\], which is {name}, is at version 1; expected version 0 "
                                           r"instead. Hint: enable anomaly .* torch.autograd.set_detect_anomaly\(True, check_nan=False\)"):
        z.sum().backward()


def test_the_error_in_anomaly_mode_and_for_what_nobody_made():
    x, plain = leaf(2), torch.ones(2)
    y = x * plain
    plain.add_(1)
    with pytest.raises(RuntimeError, match=r"\[torch.FloatTensor \[2\]\] is at version 1; expected version 0 instead. Hint: enable"):
        y.sum().backward()
    with pytest.warns(UserWarning), torch.autograd.detect_anomaly():
        y = x.exp()
        y.add_(1)
        with pytest.raises(RuntimeError, match="which is output 0 of Exp, is at version 1; .* Hint: the backtrace further above shows"):
            y.sum().backward()
