"""Writing to `out=` in its own shape, drawing into other dtypes, refusals of growing lent memory, and torch.testing.make_tensor."""

import numpy as np
import pytest
import torch
from torch.testing import make_tensor


def test_sequences_fill_out_in_its_own_shape_where_the_number_fits():
    x = torch.zeros(2, 3)
    torch.linspace(0, 5, 6, out=x)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    torch.arange(0, 4, out=x.narrow(1, 1, 2))
    assert x.tolist() == [[0, 0, 1], [3, 2, 3]]
    assert torch.arange(3, out=torch.zeros(2, 2)).shape == (3,)


def test_bernoulli_draws_into_any_dtype():
    torch.manual_seed(0)
    p = torch.full((4,), 0.5)
    assert torch.bernoulli(p, out=torch.empty(4, dtype=torch.int32)).dtype is torch.int32
    assert set(torch.empty(50, dtype=torch.bool).bernoulli_(0.5).tolist()) == {True, False}


def test_memory_lent_to_numpy_does_not_grow():
    x = torch.zeros(3)
    x.data_ptr()
    x.resize_(4)
    shared = x.numpy()
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(10)
    assert x.resize_(2).shape == (2,) and shared.shape == (4,)
    with pytest.raises(RuntimeError, match="not resizable"):
        torch.from_numpy(np.ones(2)).resize_(5)


def test_reversed_is_a_tensor():
    assert reversed(torch.arange(3)).tolist() == [2, 1, 0]


def test_errors_in_pytorchs_words():
    with pytest.raises(RuntimeError, match=r"input.size\(1\) = 3, but got tensor.size\(1\) = 2"):
        torch.ones(2, 3).diff(dim=0, prepend=torch.ones(1, 2))
    with pytest.raises(RuntimeError, match="OPENGL device type not an accelerator"):
        torch.Generator("opengl")
    with pytest.raises(TypeError, match="must be bool, not int"):
        torch.use_deterministic_algorithms(1)
    with pytest.raises(RuntimeError, match="self indexing axis dim should be positive"):
        torch.index_select(torch.ones(0, 3), 0, torch.tensor([0]))


@pytest.mark.parametrize("dtype, expected", [
    (torch.float32, [-0.0674, 4.8280, -7.4074]), (torch.int32, [6, -5, -9]), (torch.uint8, [4, 9, 3]),
    (torch.bool, [False, True, True]), (torch.float16, [-0.0674, 4.8281, -7.4062]),
])
def test_make_tensor_draws_as_pytorch(dtype, expected):
    torch.manual_seed(0)
    found = make_tensor(3, dtype=dtype, device="cpu")
    torch.testing.assert_close(found, torch.tensor(expected, dtype=dtype), atol=1e-4, rtol=1e-3)


def test_make_tensor_options_and_errors():
    torch.manual_seed(0)
    assert make_tensor(2, 3, dtype=torch.float32, device="cpu", noncontiguous=True).stride() == (6, 2)
    assert not (make_tensor(99, dtype=torch.int64, device="cpu", low=-2.5, high=2.5, exclude_zero=True) == 0).any()
    assert make_tensor(9, dtype=torch.float64, device="cpu", low=-float("inf"), high=float("inf")).isfinite().all()
    with pytest.raises(ValueError, match="cannot be NaN"):
        make_tensor(1, dtype=torch.int8, device="cpu", low=float("nan"))
    with pytest.raises(ValueError, match="`low` must be less than `high`, but got 1 >= 1"):
        make_tensor(1, dtype=torch.int8, device="cpu", low=1, high=1)
    with pytest.raises(ValueError, match=r"torch.int8 only supports \[-128, 128\)"):
        make_tensor(1, dtype=torch.int8, device="cpu", low=1000, high=2000)
    with pytest.raises(ValueError, match="not supported for boolean and integral dtypes"):
        make_tensor(1, dtype=torch.int8, device="cpu", requires_grad=True)
    with pytest.warns(FutureWarning):
        assert make_tensor(2, dtype=torch.float32, device="cpu", low=1, high=1).tolist() == [1, 1]


def test_batch_norm_of_an_empty_batch():
    x = torch.ones(0, 3, 2, 2, requires_grad=True)
    norm = torch.nn.BatchNorm2d(3)
    assert norm(x).shape == (0, 3, 2, 2)


def test_frozen_generator():
    torch.manual_seed(0)
    want = torch.rand(2)
    torch.manual_seed(0)
    with torch.testing._utils.freeze_rng_state():
        torch.rand(5)
    assert torch.equal(torch.rand(2), want)


def test_index_select_out_of_range_by_dimension():
    with pytest.raises(IndexError, match="index out of range in self"):
        torch.ones(2, 3).index_select(0, torch.tensor([0, 5]))
    with pytest.raises(RuntimeError, match="INDICES element is out of DATA bounds, id=5 axis_dim=3"):
        torch.ones(2, 3).index_select(1, torch.tensor([0, 5]))
