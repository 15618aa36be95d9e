"""Operators whose `out=` must have the dtype of the result, and other refusals and warnings of single operators. As PyTorch 2.13."""

import pytest
import torch
import torch.nn.functional as F

X = torch.ones(3)
MEDIAN = "Expected tensor for 'values' to have the same type as tensor for argument #2 'self'; but type torch.DoubleTensor does not equal "
SORT = ("Expected out tensor to have dtype float, but got double instead",
        "Expected out tensor to have dtype long int, but got int instead")
WORDS = {
    "mode": ("expected scalar type 'Float' but got 'Double' for values output",
             "expected scalar type 'Long' but got 'Int' for indices output"),
    "kthvalue": ("output values must be of same type as input", "output indices must be of scalar type Long"),
    "median": (MEDIAN, "Expected tensor for argument #1 'indices' to have scalar type Long; but got torch.IntTensor instead"),
    "sort": SORT, "topk": SORT, "max": SORT, "min": SORT,
    "cummax": ("expected scalar_type Float but found Double", "expected scalar_type Long but found Int"),
}


@pytest.mark.parametrize("name", sorted(WORDS))
def test_dtype_of_out(name):
    more = (1,) if name in ("kthvalue", "topk") else ()
    wrong = [(torch.ones(3).double(), torch.ones(3).long()), (torch.ones(3), torch.ones(3).int())]
    for out, text in zip(wrong, WORDS[name]):
        with pytest.raises(RuntimeError) as error:
            getattr(torch, name)(X, *more, dim=0, out=out)
        assert str(error.value).startswith(text)
    values, indices = getattr(torch, name)(X, *more, dim=0, out=(torch.empty(0), torch.empty(0, dtype=torch.long)))
    assert values.dtype is torch.float32 and indices.dtype is torch.int64


def test_cat_of_empty_vectors_along_any_dimension():
    e = torch.empty(0)
    assert torch.cat([e, e], dim=5).shape == torch.cat([e], dim=-2).shape == (0,)
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.cat([e, X], dim=1)


def test_unique_along_a_dimension_without_elements():
    with pytest.raises(RuntimeError, match="Number of zero sized dimensions is more than one"):
        torch.unique(torch.empty(5, 0, 0), dim=1)
    with pytest.raises(RuntimeError, match="There are 0 sized dimensions, and they aren't selected"):
        torch.unique(torch.empty(5, 0, 0), dim=0)


def test_warnings_about_sizes_and_ranges():
    with pytest.warns(UserWarning, match="affine_grid behavior has changed for unit-size grids"):
        F.affine_grid(torch.ones(1, 2, 3), torch.Size([1, 1, 2, 1]), align_corners=True)
    with pytest.warns(UserWarning, match=r"to - 1 is out of bounds \[-\(2\^24\), 2\^24\]. Due to precision limitations float"):
        torch.empty(2).random_(0, 2**25)
