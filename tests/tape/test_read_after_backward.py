"""Values that backward went through are read again afterwards."""

import pytest
import torch


def test_a_sum_over_what_was_differentiated_is_printed_each_step():
    torch.manual_seed(0)
    x, y, model = torch.randn(6, 8), torch.randn(6, 1), torch.nn.Linear(8, 1)
    for _ in range(6):  # the reads become part of what a step is known to do
        loss = (model(x) - y) ** 2
        model.zero_grad()
        loss.sum().backward()
        expected = ((model.weight.detach() @ x.T + model.bias.detach()).T - y).pow(2).sum()
        assert abs(loss.sum().item() - expected.item()) < 1e-4 * abs(expected.item())
        model.weight.data[:] -= 0.01 * model.weight.grad


@pytest.mark.parametrize("double", [lambda x: x * x, lambda x: x.exp()])
def test_backward_through_it_is_still_refused(double):
    x = torch.zeros(3, requires_grad=True)
    for _ in range(4):
        y = double(x)
        y.sum().backward()
        total = y.sum()
        assert total.item() == double(torch.zeros(3)).sum().item()
        for again in (total.exp(), total):
            with pytest.raises(RuntimeError, match="a second time"):
                again.backward()
