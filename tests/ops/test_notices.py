"""What works, but with a notice that PyTorch gives once: sequences as indices, masks of uint8, experimental reductions."""

import contextlib
import math
import warnings

import numpy as np
import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@contextlib.contextmanager
def always():
    """Notices are given each time."""
    torch.set_warn_always(True)
    try:
        yield
    finally:
        torch.set_warn_always(False)


@pytest.fixture
def m():
    return torch.arange(12.0).reshape(3, 4)


def test_list_of_lists_counts_as_tuple(m):
    assert m[[[0, 1], [1, 2]]].tolist() == [1.0, 6.0]


def test_list_with_slices_counts_as_tuple(m):
    assert m[[slice(0, 1), slice(0, 2)]].tolist() == [[0.0, 1.0]]
    assert m[[None, 0]].shape == (1, 4)


def test_list_of_numbers_is_an_index(m):
    assert m[[1, 0]].shape == (2, 4)


def test_uint8_index_is_a_mask(m):
    assert m[torch.tensor([1, 0, 1], dtype=torch.uint8)].tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]]
    assert m[torch.tensor(1, dtype=torch.uint8)].shape == (1, 3, 4)


def test_index_reduce_shares_the_gradient_among_largest():
    x = torch.tensor([[3.0, -1.0], [0.5, 0.5]], requires_grad=True)
    source = torch.tensor([[3.0, 4.0], [1.0, 4.0]], requires_grad=True)
    found = x.index_reduce(0, torch.tensor([0, 0]), source, "amax")
    assert found.tolist() == [[3.0, 4.0], [0.5, 0.5]]
    found.sum().backward()
    assert x.grad.tolist() == [[0.5, 0.0], [1.0, 1.0]]
    assert source.grad.tolist() == [[0.5, 0.5], [0.0, 0.5]]


def test_index_reduce_without_self():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    found = x.index_reduce(0, torch.tensor([1, 1]), torch.tensor([5.0, 7.0]), "mean", include_self=False)
    assert found.tolist() == [1.0, 6.0, 3.0]
    found.sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 1.0]


def test_scatter_with_reduce_has_no_derivative(m):
    x = m.clone().requires_grad_()
    found = x.scatter(0, torch.tensor([[0, 0]]), torch.ones(1, 2), reduce="add")
    assert found[0].tolist() == [1.0, 2.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match="derivative for aten::scatter is not implemented"):
        found.sum().backward()


def test_new_tensor_of_a_tensor_takes_the_dtype_of_the_receiver(m):
    assert m.new_tensor(torch.tensor([1, 2])).dtype is torch.float32


def test_a_number_asked_of_a_tensor_with_history():
    s = torch.ones(1, requires_grad=True) * 2
    for convert in (float, complex, math.sqrt):
        with always(), pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True to a scalar") as seen:
            convert(s)
        assert seen[0].filename == __file__
    with always(), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (int(s), bool(s), s.item(), s.tolist(), float(s.detach())) == (2, True, 2.0, [2.0], 2.0)


def test_copies_by_torch_tensor():
    for make in (torch.tensor, torch.ones(1).new_tensor):
        with pytest.warns(UserWarning, match="To copy construct from a tensor, it is recommended to use sourceTensor.detach"):
            make(torch.ones(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.as_tensor(torch.ones(1)), torch.asarray(torch.ones(1))


def test_arrays_that_must_not_be_written_to():
    array = np.broadcast_to(1.0, (2,))
    for make in (torch.from_numpy, torch.as_tensor, torch.asarray):
        with always(), pytest.warns(UserWarning, match="The given NumPy array is not writable"):
            assert make(array).tolist() == [1.0, 1.0]
    with always(), warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.tensor(array), torch.from_numpy(array.copy())


def test_backward_with_a_graph_of_its_own():
    x = torch.ones(1, requires_grad=True)
    with always(), pytest.warns(UserWarning, match=r"Using backward\(\) with create_graph=True will create a reference cycle"):
        (x * x).sum().backward(create_graph=True)
    assert x.grad.requires_grad


@pytest.mark.parametrize("call", [
    lambda x, s: torch.full((2,), s), lambda x, s: torch.add(x, x, alpha=s), lambda x, s: torch.addcmul(x, x, x, value=s)])
def test_numbers_are_not_taken_from_tensors_with_history(call):
    with pytest.raises(TypeError):
        call(torch.ones(2), torch.tensor(2.0, requires_grad=True))
    call(torch.ones(2), torch.tensor(2.0))
