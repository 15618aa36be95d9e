"""The order in which equal elements are named: small cases recorded from PyTorch, and what any selection must keep."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

ROWS = [
    ([1, 2, 2, 2, 1, 3, 3], 4, [6, 5, 3, 2]),
    ([1, 1, 1, 1, 1], 2, [2, 4]),
]


@pytest.mark.parametrize(("row", "k", "indices"), ROWS)
def test_topk_names_the_same_equal_elements(row, k, indices):
    assert torch.topk(torch.tensor(row), k).indices.tolist() == indices


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.data())
def test_selections_keep_what_they_promise(row, data):
    k = data.draw(st.integers(1, len(row)))
    largest = data.draw(st.booleans())
    x = torch.tensor(row)
    top = torch.topk(x, k, largest=largest)
    assert top.values.tolist() == sorted(row, reverse=largest)[:k]
    assert x[top.indices].tolist() == top.values.tolist() and len(set(top.indices.tolist())) == k
    kth = torch.kthvalue(x, k)
    assert kth.values.item() == sorted(row)[k - 1] == row[kth.indices.item()]
    mode = torch.mode(x)
    assert row.count(mode.values.item()) == max(map(row.count, row)) and row[mode.indices.item()] == mode.values.item()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.floats(-2, 2, width=32), min_size=1, max_size=40), st.booleans())
def test_sorting_is_stable_both_ways(row, descending):
    x = torch.tensor(row)
    values, indices = torch.sort(x, descending=descending, stable=True)
    order = sorted(range(len(row)), key=lambda i: -x[i].item() if descending else x[i].item())
    assert indices.tolist() == order and values.tolist() == x[torch.tensor(order)].tolist()


def test_long_rows_are_partitioned_and_agree_with_sorting():
    x = torch.randn(3, 2000, generator=torch.Generator().manual_seed(1))
    for largest in (True, False):
        values, indices = torch.topk(x, 7, largest=largest)
        whole = torch.sort(x, descending=largest)
        assert torch.equal(values, whole.values[:, :7]) and torch.equal(indices, whole.indices[:, :7])
    x[1, 5] = float("nan")
    assert torch.topk(x, 1).indices[1].item() == 5


@pytest.mark.parametrize("key, place", [
    ((slice(None), [7]), 0), (([0], [7]), 1), ((0, [7]), 0), ((slice(None), None, [-9]), 0), (([0, 1], slice(0, 1), [7]), None)])
def test_an_index_out_of_bounds_is_counted_among_the_indices(key, place):
    x = torch.arange(12.0).view(3, 4)
    if place is None:
        x, place = x[:, None], 1
    with pytest.raises(IndexError, match=f"is out of bounds for dimension {place} with size 4"):
        x[key]
    with pytest.raises(IndexError, match=f"is out of bounds for dimension {place} with size 4"):
        x[key] = 0.0
