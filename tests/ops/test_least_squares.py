"""torch.linalg.lstsq: which shapes go together, and torch.lobpcg's gradient. Right values: PyTorch 2.13."""

import pytest
import torch


@pytest.mark.parametrize("a, b, solution, rank", [
    ((1, 3, 2), (2, 3, 1), (2, 2, 1), (1,)), ((2, 3, 2), (2, 3), (2, 2), (2,)), ((2, 3, 2), (1, 3, 1), (2, 2, 1), (2,)),
    ((3, 2), (3,), (2,), ()), ((2, 1, 2, 3), (1, 4, 2, 1), (2, 4, 3, 1), (2, 1))])
def test_shapes_of_least_squares(a, b, solution, rank):
    found = torch.linalg.lstsq(torch.randn(a), torch.randn(b), driver="gelsd")
    assert (tuple(found.solution.shape), tuple(found.rank.shape)) == (solution, rank)
    assert tuple(found.singular_values.shape) == (*rank, min(a[-2:]))


@pytest.mark.parametrize("a, b, text", [
    ((2, 3, 2), (3, 1), "The size of tensor a .2. must match the size of tensor b .3. at non-singleton dimension 0"),
    ((2, 4, 3, 2), (4, 3, 1), "The size of tensor a .4. must match the size of tensor b .3. at non-singleton dimension 1"),
    ((3, 2), (2, 3, 1), "input.dim.. must be greater or equal to other.dim.. and .input.dim.. - other.dim... <= 1"),
    ((2, 2, 3, 2), (2, 3), "input.dim.. must be greater or equal to other.dim.. and .input.dim.. - other.dim... <= 1"),
    ((3, 2), (4,), "input.size.-2. should match other.size.-1.")])
def test_shapes_that_do_not_go_together(a, b, text):
    with pytest.raises(RuntimeError, match=text):
        torch.linalg.lstsq(torch.randn(a), torch.randn(b))


def test_lstsq_of_integers():
    with pytest.raises(RuntimeError, match="This function doesn't handle types other than float and double"):
        torch.linalg.lstsq(torch.ones(3, 2).int(), torch.ones(3, 1).int())


def test_gradient_of_lobpcg_is_symmetric():
    torch.manual_seed(0)
    a = torch.randn(9, 9, dtype=torch.float64)
    a = (a @ a.T + 2 * torch.eye(9, dtype=torch.float64)).requires_grad_()
    values, vectors = torch.lobpcg(a, k=2)
    (values.sum() + vectors.abs().sum()).backward()
    torch.testing.assert_close(a.grad, a.grad.T, rtol=0, atol=1e-12)
