# In-place operators on expanded tensors, where several elements are one number in memory.
import warnings

import pytest
import torch

AT = torch.tensor([0])
OPERATORS = {  # what it does, the numbers in memory afterwards, what PyTorch warns of
    "fill": (lambda t: t.fill_(7), [[7.0], [7.0]], []),
    "zero": (lambda t: t.zero_(), [[0.0], [0.0]], []),
    "diagonal": (lambda t: t.fill_diagonal_(3.0), [[3.0], [3.0]], []),
    "fill rows": (lambda t: t.index_fill_(0, AT, 7.0), [[7.0], [2.0]], ["index_fill_"]),
    "fill columns": (lambda t: t.index_fill_(1, AT, 7.0), [[7.0], [7.0]], ["index_fill_"]),
    "put": (lambda t: t.index_put_((AT,), torch.tensor(7.0)), [[7.0], [2.0]], ["index_put_"]),
    "accumulate": (lambda t: t.index_put_((AT,), torch.tensor(7.0), accumulate=True), [[22.0], [2.0]], ["index_put_"]),
    "assign at an index": (lambda t: t.__setitem__(AT, 7.0), [[7.0], [2.0]], ["index_put_"]),
    "assign at a mask": (lambda t: t.__setitem__(t > 1.5, 7.0), [[1.0], [7.0]], ["index_put_", "masked_fill_"]),
    "fill a mask": (lambda t: t.masked_fill_(t > 1.5, 7.0), [[1.0], [7.0]], ["masked_fill_"]),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_what_fills_writes_to_expanded_tensors(name):
    operate, memory, warned = OPERATORS[name]
    base = torch.tensor([[1.0], [2.0]])
    view = base.expand(2, 3)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        operate(view)
    assert base.tolist() == memory
    assert view.tolist() == [row * 3 for row in memory]
    assert [str(w.message).split(" on expanded")[0] for w in seen] == [f"Use of {n}" for n in warned]


@pytest.mark.parametrize("operate", [lambda t: t.add_(1), lambda t: t.fill_(torch.tensor(7.0)), lambda t: t.copy_(torch.ones(2, 3))])
def test_elsewhere_expanded_tensors_are_refused(operate):
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        operate(torch.ones(2, 1).expand(2, 3))
