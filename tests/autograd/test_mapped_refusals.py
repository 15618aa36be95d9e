"""vmap lets Python look at nothing that depends on a sample: PyTorch's errors."""

import pytest
import torch
from torch.func import grad, vmap

X = torch.arange(6.0).reshape(3, 2)

ITEM = "calling .item\\(\\) on a Tensor"
BRANCH = "data-dependent control flow"
DYNAMIC = "output dynamic shape"
REFUSED = [
    ("item", lambda a: a * a.sum().item(), ITEM), ("float", lambda a: a * float(a.sum()), ITEM), ("int", lambda a: a * int(a.sum()), ITEM),
    ("range", lambda a: torch.arange(int(a[0])), ITEM), ("branch", lambda a: a if a.sum() > 2 else -a, BRANCH),
    ("any", lambda a: a if (a > 1).any() else -a, BRANCH), ("and", lambda a: a[0] > 0 and a[1], BRANCH),
    ("max", lambda a: max(a[0], a[1]), BRANCH), ("nonzero", lambda a: a.nonzero(), DYNAMIC),
    ("where", lambda a: torch.where(a > 0), DYNAMIC),
    ("unique", lambda a: a.unique(), DYNAMIC), ("mask", lambda a: a[a > 0], "boolean mask"),
    ("masked_select", lambda a: a.masked_select(a > 0), "differently shaped Tensor"),
    ("tolist", lambda a: torch.tensor(a.tolist()), "doesn't have storage"), ("numpy", lambda a: torch.tensor(a.numpy()), "have storage"),
    ("equal", lambda a: torch.equal(a, a), "aten::equal"), ("inside grad", grad(lambda a: (a * a.sum().item()).sum()), ".item"),
    ("outer sample", lambda r: vmap(lambda a: a * r.sum().item())(r), ITEM), ("nested", vmap(lambda a: a * a.item()), ITEM),
]


@pytest.mark.parametrize("function, text", [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_data_of_samples_are_not_for_python(function, text):
    with pytest.raises(RuntimeError, match=text):
        vmap(function)(X)


def written_mask(a):
    b = a.clone()
    b[a > 1] = 0
    return b


def test_a_mask_cannot_be_assigned_to():
    with pytest.raises(RuntimeError, match="boolean mask"):
        vmap(written_mask)(X)


def test_what_depends_on_no_sample_may_be_read():
    assert vmap(lambda a: a * X.sum().item())(X).tolist() == (X * 15).tolist()
    assert vmap(lambda a: a * torch.ones(()).item())(X).tolist() == X.tolist()
    assert vmap(lambda a: a if torch.ones(()) > 0 else -a)(X).tolist() == X.tolist()
    assert vmap(lambda a: torch.where(a > 1, a, 0 * a))(X).tolist() == [[0, 0], [2, 3], [4, 5]]
    assert X.sum().item() == 15
