"""Numbers to the left of a tensor."""

import torch


def test_a_number_over_a_tensor_is_its_reciprocal_times_the_number():
    x = torch.arange(1, 60, dtype=torch.float32)
    assert torch.equal(3 / x, x.reciprocal() * 3)
    assert int(((3 / x) != torch.div(torch.tensor(3.0), x)).sum()) == 13  # PyTorch 2.13 on the CPU
    assert torch.equal(3 / torch.tensor([2, 4]), torch.tensor([1.5, 0.75]))


def test_the_tensor_comes_first_in_the_graph():
    x = torch.ones(3, requires_grad=True)
    for y in (2 * x, 1 + x):
        assert y.grad_fn.next_functions[0][0] is not None
    assert (5 - x).grad_fn.name().startswith("RsubBackward") and (5 - x).tolist() == [4.0, 4.0, 4.0]


def test_gradients_of_reflected_forms():
    x = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
    (3 / x + (2 - x) + 2 ** x + 5 % x.detach()).sum().backward()
    expected = -3 / x.detach() ** 2 - 1 + 2 ** x.detach() * torch.tensor(2.0).log()
    assert torch.allclose(x.grad, expected)
